// What Swift's Glibc module leaves out; empty elsewhere, so that the package builds there.
#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

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

/// What SO_PEERCRED stores, as unix(7) has it. The header hides `struct ucred` without _GNU_SOURCE.
struct peer_credentials {
    int process;
    unsigned int user;
    unsigned int group;
};

/// Reads who is at the other end of a local socket. Returns 0, or -1 with errno.
static inline int read_peer_credentials(int descriptor, struct peer_credentials *credentials) {
    socklen_t length = sizeof *credentials;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, credentials, &length) != 0) return -1;
    if (length == sizeof *credentials) return 0;
    errno = EINVAL;
    return -1;
}
#endif
