// What Swift's Glibc module leaves out; empty elsewhere, so that the package builds there.
#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/// Lets the calling thread's sleeps end when they should instead of up to 50 us later; variadic functions
/// can't be called from Swift.
static inline void sharpen_timers(void) { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

/// Lowers the priority of the calling thread by `steps`; on Linux each thread has a priority of its own.
static inline void lower_priority(int steps) { setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + steps); }

/// fallocate(2) that keeps the file's length. Declared here because the header hides it without _GNU_SOURCE.
extern int fallocate(int descriptor, int mode, __off_t offset, __off_t bytes);

static inline int reserve_behind_end(int descriptor, long offset, long bytes) {
    return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, offset, bytes);
}
#endif
