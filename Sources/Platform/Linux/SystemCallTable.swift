#if os(Linux)

/// The system calls that a filter knows, and the numbers of what it compares with their arguments.
enum SystemCallTable {
    typealias Group = SystemCallFilter.Group
    typealias Call = SystemCallFilter.Call
    typealias Condition = SystemCallFilter.Condition

    /// Flags of mmap(2) and mprotect(2).
    private enum Protection {
        static let execution: UInt32 = 4
    }

    /// Requests of ioctl(2): TCGETS and FIONREAD.
    private enum Terminal {
        static let attributes: UInt32 = 0x5401
        static let waitingBytes: UInt32 = 0x541b
    }

    /// Flags of clone(2): CLONE_THREAD.
    private enum Clone {
        static let thread: UInt32 = 0x10000
    }

    /// Options of prctl(2).
    private enum Control {
        static let setName: UInt32 = 15
        static let getName: UInt32 = 16
        static let setTimerSlack: UInt32 = 29
        static let setAreaName: UInt32 = 0x5356_4d41
    }

    /// Every system call that the service needs after its start, with the reason, and those that end the process. What
    /// is not listed fails with EPERM: it may come from a library, on a path that nobody has seen, and then an error of
    /// one request is better than an end for everybody. The numbers are those of x86-64 and of 64-bit ARM; `nil`: the
    /// architecture does not have the call.
    static let groups: [Group] = [
        Group(
            "bytes of sockets, pipes and files; the hot ones come first",
            .allow,
            [
                Call("recvfrom", 45, 207), Call("sendto", 44, 206), Call("read", 0, 63), Call("write", 1, 64),
                Call("epoll_wait", 232, nil), Call("epoll_pwait", 281, 22), Call("futex", 202, 98),
                Call("readv", 19, 65), Call("writev", 20, 66), Call("pread64", 17, 67), Call("pwrite64", 18, 68),
                Call("pwritev", 296, 70), Call("recvmsg", 47, 212), Call("sendmsg", 46, 211),
            ]),
        Group(
            "the date and the time, where the C library asks the kernel",
            .allow,
            [
                Call("clock_gettime", 228, 113), Call("clock_getres", 229, 114), Call("gettimeofday", 96, 169),
                Call("time", 201, nil),
            ]),
        Group(
            "waiting for sockets, timers and other threads; Dispatch makes its own descriptors for that "
                + "when it needs them",
            .allow,
            [
                Call("epoll_create1", 291, 20), Call("epoll_ctl", 233, 21), Call("epoll_pwait2", 441, 441),
                Call("poll", 7, nil), Call("ppoll", 271, 73), Call("select", 23, nil), Call("pselect6", 270, 72),
                Call("eventfd2", 290, 19), Call("pipe2", 293, 59), Call("timerfd_create", 283, 85),
                Call("timerfd_settime", 286, 86), Call("timerfd_gettime", 287, 87), Call("signalfd4", 289, 74),
                Call("nanosleep", 35, 101), Call("clock_nanosleep", 230, 115), Call("sched_yield", 24, 124),
                Call("restart_syscall", 219, 128),
            ]),
        Group(
            "serving connections of sockets that listen already; there is no socket, bind, listen, "
                + "connect or socketpair",
            .allow,
            [
                Call("accept", 43, 202), Call("accept4", 288, 242), Call("shutdown", 48, 210),
                Call("getsockopt", 55, 209), Call("setsockopt", 54, 208), Call("getpeername", 52, 205),
                Call("getsockname", 51, 204),
            ]),
        Group(
            "memory of the heap, of stacks and of the storage, and keeping secrets out of swap areas and "
                + "dumps",
            .allow,
            [
                Call("brk", 12, 214), Call("munmap", 11, 215), Call("mremap", 25, 216), Call("madvise", 28, 233),
                Call("mlock", 149, 228), Call("mlock2", 325, 284), Call("munlock", 150, 229), Call("msync", 26, 227),
                Call("mincore", 27, 232),
            ]),
        Group(
            "the same, but no memory whose contents can be executed: no code comes in after the start",
            .allowWhen([Condition(2, Protection.execution, 0)]),
            [
                Call("mmap", 9, 222), Call("mprotect", 10, 226),
            ]),
        Group(
            "files that are open, and those that Landlock lets be opened: storage, secret, audit, "
                + "certificates",
            .allow,
            [
                Call("openat", 257, 56), Call("open", 2, nil), Call("close", 3, 57), Call("fstat", 5, 80),
                Call("stat", 4, nil), Call("lstat", 6, nil), Call("newfstatat", 262, 79), Call("statx", 332, 291),
                Call("lseek", 8, 62), Call("fcntl", 72, 25), Call("dup", 32, 23), Call("dup2", 33, nil),
                Call("dup3", 292, 24), Call("ftruncate", 77, 46), Call("fallocate", 285, 47),
                Call("fadvise64", 221, 223), Call("fsync", 74, 82), Call("fdatasync", 75, 83),
                Call("sync_file_range", 277, 84), Call("flock", 73, 32), Call("statfs", 137, 43),
                Call("fstatfs", 138, 44), Call("getcwd", 79, 17), Call("getdents64", 217, 61),
                Call("access", 21, nil), Call("faccessat", 269, 48), Call("faccessat2", 439, 439),
                Call("readlink", 89, nil), Call("readlinkat", 267, 78),
            ]),
        Group(
            "replacing the secret's and the audit's file, and removing the file of a local socket",
            .allow,
            [
                Call("rename", 82, nil), Call("renameat", 264, 38), Call("renameat2", 316, 276),
                Call("unlink", 87, nil), Call("unlinkat", 263, 35), Call("fchmod", 91, 52),
            ]),
        Group(
            "whether standard output is a terminal, and how many bytes wait: nothing else of what ioctl "
                + "can do",
            .allowWhen([Condition(1, .max, Terminal.attributes), Condition(1, .max, Terminal.waitingBytes)]),
            [
                Call("ioctl", 16, 29)
            ]),
        Group(
            "new threads, but no new processes",
            .allowWhen([Condition(0, Clone.thread, Clone.thread)]),
            [
                Call("clone", 56, 220)
            ]),
        Group(
            "the C library tries this first, and the filter can't read its arguments: the library falls "
                + "back to clone",
            .unsupported,
            [
                Call("clone3", 435, 435)
            ]),
        Group(
            "running and ending threads",
            .allow,
            [
                Call("exit", 60, 93), Call("exit_group", 231, 94), Call("set_robust_list", 273, 99),
                Call("get_robust_list", 274, 100), Call("rseq", 334, 293), Call("gettid", 186, 178),
                Call("getpid", 39, 172), Call("getcpu", 309, 168), Call("sched_getaffinity", 204, 123),
                Call("sched_getparam", 143, 121), Call("sched_getscheduler", 145, 120), Call("getpriority", 140, 141),
                Call("setpriority", 141, 140),
            ]),
        Group(
            "the time slices of the calling thread",
            .allowWhen([Condition(0, .max, 0)]),
            [
                Call("sched_getattr", 315, 275), Call("sched_setattr", 314, 274),
            ]),
        Group(
            "names of threads and of memory areas, and exact timers",
            .allowWhen([
                Condition(0, .max, Control.setName), Condition(0, .max, Control.getName),
                Condition(0, .max, Control.setTimerSlack), Condition(0, .max, Control.setAreaName),
            ]),
            [
                Call("prctl", 157, 167)
            ]),
        Group(
            "signals to this process's own threads: aborting after a failed precondition",
            .allowWhen([Condition(0, .max, .ownProcess)]),
            [
                Call("tgkill", 234, 131)
            ]),
        Group(
            "handling signals, and the main thread's wait for them: Dispatch would try that again and again",
            .allow,
            [
                Call("rt_sigaction", 13, 134), Call("rt_sigprocmask", 14, 135), Call("rt_sigreturn", 15, 139),
                Call("rt_sigtimedwait", 128, 137), Call("rt_sigpending", 127, 136), Call("rt_sigsuspend", 130, 133),
                Call("sigaltstack", 131, 132),
            ]),
        Group(
            "this process's own limits",
            .allowWhen([Condition(0, .max, 0)]),
            [
                Call("prlimit64", 302, 261)
            ]),
        Group(
            "facts about this process and this machine, and random bytes",
            .allow,
            [
                Call("getrandom", 318, 278), Call("getuid", 102, 174), Call("geteuid", 107, 175),
                Call("getgid", 104, 176), Call("getegid", 108, 177), Call("getppid", 110, 173),
                Call("getrusage", 98, 165), Call("getrlimit", 97, 163), Call("times", 100, 153),
                Call("uname", 63, 160), Call("sysinfo", 99, 179),
            ]),
        Group(
            "what only an attacker would do: execute a program, look into other processes, load code into "
                + "the kernel, get around this filter, change users, mounts, namespaces, keys or the machine",
            .kill,
            [
                Call("execve", 59, 221), Call("execveat", 322, 281), Call("fork", 57, nil), Call("vfork", 58, nil),
                Call("ptrace", 101, 117), Call("process_vm_readv", 310, 270), Call("process_vm_writev", 311, 271),
                Call("process_madvise", 440, 440), Call("pidfd_getfd", 438, 438), Call("kcmp", 312, 272),
                Call("mount", 165, 40), Call("umount2", 166, 39), Call("pivot_root", 155, 41),
                Call("chroot", 161, 51), Call("move_mount", 429, 429), Call("open_tree", 428, 428),
                Call("fsopen", 430, 430), Call("fsconfig", 431, 431), Call("fsmount", 432, 432),
                Call("fspick", 433, 433), Call("mount_setattr", 442, 442), Call("bpf", 321, 280),
                Call("perf_event_open", 298, 241), Call("userfaultfd", 323, 282), Call("io_uring_setup", 425, 425),
                Call("io_uring_enter", 426, 426), Call("io_uring_register", 427, 427), Call("keyctl", 250, 219),
                Call("add_key", 248, 217), Call("request_key", 249, 218), Call("unshare", 272, 97),
                Call("setns", 308, 268), Call("kexec_load", 246, 104), Call("kexec_file_load", 320, 294),
                Call("init_module", 175, 105), Call("finit_module", 313, 273), Call("delete_module", 176, 106),
                Call("open_by_handle_at", 304, 265), Call("setuid", 105, 146), Call("setgid", 106, 144),
                Call("setreuid", 113, 145), Call("setregid", 114, 143), Call("setresuid", 117, 147),
                Call("setresgid", 119, 149), Call("setgroups", 116, 159), Call("setfsuid", 122, 151),
                Call("setfsgid", 123, 152), Call("capset", 126, 91), Call("personality", 135, 92),
                Call("modify_ldt", 154, nil), Call("iopl", 172, nil), Call("ioperm", 173, nil),
                Call("reboot", 169, 142), Call("swapon", 167, 224), Call("swapoff", 168, 225), Call("acct", 163, 89),
                Call("syslog", 103, 116), Call("settimeofday", 164, 170), Call("clock_settime", 227, 112),
                Call("adjtimex", 159, 171), Call("clock_adjtime", 305, 266), Call("sethostname", 170, 161),
                Call("setdomainname", 171, 162), Call("quotactl", 179, 60), Call("vhangup", 153, 58),
                Call("fanotify_init", 300, 262),
            ]),
    ]

    /// What is needed besides for connections to other services and for looking up their names.
    static let connectingGroups: [Group] = [
        Group(
            "sockets of IPv4 and IPv6, and the one that tells which of both this machine has",
            .allowWhen([
                Condition(0, .max, Family.ipv4), Condition(0, .max, Family.ipv6), Condition(0, .max, Family.routes),
            ]),
            [
                Call("socket", 41, 198)
            ]),
        Group(
            "connecting, and asking servers of names; nothing listens",
            .allow,
            [
                Call("connect", 42, 203), Call("bind", 49, 200), Call("sendmmsg", 307, 269),
            ]),
    ]

    /// Domains of socket(2): AF_INET, AF_INET6 and AF_NETLINK.
    private enum Family {
        static let ipv4: UInt32 = 2
        static let ipv6: UInt32 = 10
        static let routes: UInt32 = 16
    }

    /// The table of a process that makes connections, or of one that does not.
    static func groups(connecting: Bool) -> [Group] { connecting ? groups + connectingGroups : groups }

    /// The newest call that the filter was written for. For newer ones the filter answers that the kernel has no such
    /// call, and the C library falls back to an older one.
    static let newestNumber: UInt32 = 450
}
#endif
