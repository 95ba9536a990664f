// What a sandbox needs of the kernel. The C library has no functions for most of it. A restriction that the kernel
// applies to one thread has to be applied by each thread itself, in the handler of a signal, where Swift can't run.
#ifdef __linux__
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/// syscall(2), which is variadic and so can't be called from Swift. Returns -1 with errno when the call fails.
static inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
    return syscall(number, a, b, c, d, e, f);
}

/// prctl(2) with one argument, for the same reason.
static inline int process_control(int option, unsigned long argument) { return prctl(option, argument, 0UL, 0UL, 0UL); }

/// The numbers of Landlock's calls, which are the same on all architectures. Older headers don't have them.
enum {
    landlock_create_ruleset_call = 444,
    landlock_add_rule_call = 445,
    landlock_restrict_self_call = 446,
};

/// O_PATH, which the header hides without _GNU_SOURCE: a descriptor that only names a file or a folder.
enum { open_place = 010000000 };

/// Replaces the effective capabilities of the calling thread; with `forever` the permitted and the inheritable ones
/// too. Returns 0, or -1 with errno.
static inline int set_capabilities(unsigned long long capabilities, int forever) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0) return -1;
    for (int half = 0; half < 2; half++) {
        data[half].effective = (unsigned)(capabilities >> 32 * half);
        if (!forever) continue;
        data[half].permitted = data[half].effective;
        data[half].inheritable = 0;
    }
    return (int)syscall(SYS_capset, &header, data);
}

/// The effective capabilities of the calling thread, or the permitted ones; 0 when the system can't tell.
static inline unsigned long long capabilities(int effective) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0) return 0;
    unsigned long long high = effective ? data[1].effective : data[1].permitted;
    return high << 32 | (effective ? data[0].effective : data[0].permitted);
}

struct restrictions {
    /// What each thread applies to itself. Written before the first thread is asked, and not changed after it.
    int ruleset;
    int drops_capabilities;
    /// How many threads have answered, and the errno of the last one that failed.
    atomic_int answers;
    atomic_int error;
};

/// The one value, which the handler of the signal reads. It is local, because Swift emits no variable of a header.
static inline struct restrictions *restrictions(void) {
    static struct restrictions value = {.ruleset = -1};
    return &value;
}

/// Applies the restrictions to the calling thread. Returns 0, or -1 with errno. Makes nothing but system calls, so that
/// a handler of a signal may call it.
static inline int restrict_thread(void) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) != 0) return -1;
    int ruleset = restrictions()->ruleset;
    if (ruleset >= 0 && syscall(landlock_restrict_self_call, ruleset, 0) != 0) return -1;
    if (!restrictions()->drops_capabilities) return 0;
    // The bounding set limits what a program that is executed may get. Nothing can be executed, so a thread that may
    // not shrink it is no failure.
    for (unsigned long number = 0; number < 64; number++) prctl(PR_CAPBSET_DROP, number, 0UL, 0UL, 0UL);
    return set_capabilities(0, 1);
}

static inline void restrict_thread_on_signal(int number) {
    (void)number;
    int before = errno;
    if (restrict_thread() != 0) atomic_store(&restrictions()->error, errno);
    atomic_fetch_add(&restrictions()->answers, 1);
    errno = before;
}

/// Prepares `restrict_other_thread`: `ruleset` is a ruleset of Landlock, or -1 for none. Returns 0, or -1 with errno.
/// SIGSYS is the signal, because it is one that no part of this process blocks or handles.
static inline int begin_restrictions(int ruleset, int drops_capabilities) {
    restrictions()->ruleset = ruleset;
    restrictions()->drops_capabilities = drops_capabilities;
    atomic_store(&restrictions()->error, 0);
    struct sigaction action = {0};
    action.sa_handler = restrict_thread_on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGSYS, &action, NULL);
}

static inline int end_restrictions(void) {
    struct sigaction action = {0};
    action.sa_handler = SIG_DFL;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGSYS, &action, NULL);
}

/// Lets another thread of this process apply the restrictions to itself, and waits for up to `milliseconds`. Returns 0,
/// also when the thread has ended meanwhile, or an errno; ETIMEDOUT when it does not answer.
static inline int restrict_other_thread(int thread, int milliseconds) {
    int answers = atomic_load(&restrictions()->answers);
    if (syscall(SYS_tgkill, getpid(), thread, SIGSYS) != 0) return errno == ESRCH ? 0 : errno;
    for (int waited = 0; atomic_load(&restrictions()->answers) == answers; waited++) {
        if (waited == milliseconds * 10) return ETIMEDOUT;
        if (syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH) return 0;
        struct timespec pause = {0, 100000};
        nanosleep(&pause, NULL);
    }
    return atomic_load(&restrictions()->error);
}

/// Installs a filter of system calls for all threads of the process. Returns 0, -1 with errno, or the number of a
/// thread that can't have the filter.
static inline long install_filter(const struct sock_filter *instructions, unsigned short count) {
    struct sock_fprog program = {count, (struct sock_filter *)instructions};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

/// Whether the kernel has an action of filters.
static inline int has_filter_action(unsigned int action) {
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}
#endif
