// What Swift's Glibc module leaves out; empty elsewhere, so that the package builds there.
#ifdef __linux__
#include <sys/epoll.h>
#include <sys/prctl.h>

/// Lets the calling thread's sleeps end when they should instead of up to 50 us later; variadic functions
/// can't be called from Swift.
static inline void sharpen_timers(void) { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }
#endif
