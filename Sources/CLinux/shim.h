// What Swift's Glibc module leaves out; empty elsewhere, so that the package builds there.
#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/// Lets the calling thread's sleeps end when they should instead of up to 50 us later; variadic functions
/// can't be called from Swift.
static inline void sharpen_timers(void) { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

/// The processors that the calling thread may use, as bits, of the first 1,024.
struct processor_set {
    unsigned long long words[16];
};

static inline struct processor_set processors_of_thread(void) {
    struct processor_set set = {{0}};
    syscall(SYS_sched_getaffinity, 0, sizeof set, &set);
    return set;
}

static inline int count_processors(struct processor_set set) {
    int count = 0;
    for (int word = 0; word < 16; word++) count += __builtin_popcountll(set.words[word]);
    return count;
}

/// Lets the calling thread use only these processors. Returns 0, or -1 with errno.
static inline int use_processors(struct processor_set set) {
    return (int)syscall(SYS_sched_setaffinity, 0, sizeof set, &set);
}

/// The one processor of a set that has `number` others before it; an empty set when there are fewer.
static inline struct processor_set one_processor(struct processor_set set, int number) {
    struct processor_set one = {{0}};
    for (int bit = 0; bit < 1024; bit++) {
        if (!(set.words[bit / 64] >> bit % 64 & 1)) continue;
        if (number-- == 0) one.words[bit / 64] = 1ULL << bit % 64;
    }
    return one;
}

/// Asks for time slices of so many nanoseconds for the calling thread, with its policy and niceness as they are.
/// sched_setattr(2) has no function in the C library. Kernels before 6.12 ignore the slice.
static inline void shorten_time_slice(unsigned long long nanoseconds) {
    struct {
        unsigned size, policy;
        unsigned long long flags;
        int nice;
        unsigned priority;
        unsigned long long runtime, deadline, period;
    } attributes = {.size = sizeof attributes};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
    // Other policies than SCHED_OTHER have no such slices.
    if (attributes.policy != 0) return;
    attributes.flags = 0;
    attributes.runtime = nanoseconds;
    syscall(SYS_sched_setattr, 0, &attributes, 0);
}

// Makes the allocator use at most so many heaps. Only glibc's has several.
static inline void limit_heaps(int count) {
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, count);
#else
    (void)count;
#endif
}

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
