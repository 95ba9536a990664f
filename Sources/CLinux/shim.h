// What Swift's Glibc module leaves out; empty elsewhere, so that the package builds there.
#ifdef __linux__
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/// Lets the calling thread's sleeps end when they should instead of up to 50 us later; variadic functions
/// can't be called from Swift.
static inline void sharpen_timers(void) { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

/// Lowers the priority of the calling thread by `steps`; on Linux each thread has a priority of its own.
static inline void lower_priority(int steps) {
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + steps);
}
#endif
