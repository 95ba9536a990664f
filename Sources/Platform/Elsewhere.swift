#if !os(Linux)
import Darwin

package enum System {
    /// `SOCK_STREAM` as a number.
    package static let streamSocket = SOCK_STREAM
    /// Milliseconds of a clock that goes on while the machine sleeps, and that nobody can set.
    package static var millisecondsWithSleep: UInt64 { clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW) / 1_000_000 }

    /// `SOCK_DGRAM` as a number.
    package static let datagramSocket = SOCK_DGRAM
    /// Flags of send(2). `silenceBrokenPipe` prevents SIGPIPE here, so no flag is needed.
    package static let sendFlags: CInt = 0

    /// Prevents SIGPIPE when the peer has closed the connection on `socket`.
    package static func silenceBrokenPipe(_ socket: CInt) {
        var on: CInt = 1
        setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<CInt>.size))
    }

    /// Allocates disk blocks for the first `bytes` bytes of the file, so that writing them can't fail for lack of
    /// space. Returns 0 or an errno.
    package static func reserveSpace(_ descriptor: CInt, bytes: Int) -> CInt {
        reserveSpace(descriptor, behind: 0, bytes: bytes)
    }

    /// Allocates disk blocks for `bytes` bytes from `offset` on without making the file longer. Returns 0 or an errno.
    package static func reserveSpace(_ descriptor: CInt, behind offset: Int, bytes: Int) -> CInt {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return errno }
        let missing = off_t(offset + bytes) - status.st_blocks * 512
        guard missing > 0 else { return 0 }
        var request = fstore_t(
            fst_flags: UInt32(F_ALLOCATEALL), fst_posmode: F_PEOFPOSMODE, fst_offset: 0, fst_length: missing,
            fst_bytesalloc: 0)
        return fcntl(descriptor, F_PREALLOCATE, &request) == -1 ? errno : 0
    }

    /// Does nothing here: the system writes no dumps of single pages. Returns false.
    package static func excludeFromDumps(_ pages: UnsafeMutableRawPointer, bytes: Int) -> Bool { false }

    /// Overwrites memory with zeros. The compiler never removes this, as it may a plain `memset`.
    package static func cleanse(_ address: UnsafeMutableRawPointer, bytes: Int) {
        memset_s(address, bytes, 0, bytes)
    }

    /// Raises the number of descriptors that this process may have to the most that the system allows without more
    /// privileges. Returns that number.
    @discardableResult
    package static func raiseDescriptorLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(RLIMIT_NOFILE, &limit) == 0 else { return 0 }
        limit.rlim_cur = min(limit.rlim_max, rlim_t(OPEN_MAX))
        _ = setrlimit(RLIMIT_NOFILE, &limit)
        return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? Int(clamping: limit.rlim_cur) : 0
    }

    /// How much of the resource this process may have; `nil` when there is no limit.
    package static func limit(of resource: LimitedResource) -> Int? {
        let number =
            switch resource {
            case .descriptors: RLIMIT_NOFILE
            case .addresses: RLIMIT_AS
            case .privateMemory: RLIMIT_DATA
            case .stack: RLIMIT_STACK
            }
        var limit = rlimit()
        // No limit is the largest number that is not negative.
        guard getrlimit(number, &limit) == 0, limit.rlim_cur < rlim_t(Int64.max) else { return nil }
        return Int(clamping: limit.rlim_cur)
    }

    /// Does nothing here: the allocator sets no addresses aside.
    package static func limitHeaps(to count: Int) {}

    /// Makes the sleeps of the calling thread end as exactly as the system can.
    package static func sharpenTimers() {}

    /// Does nothing here: the system chooses the processors. Returns false.
    package static func confineThread(toProcessor number: Int?) -> Bool { false }

    /// Does nothing here: the system chooses the time slices.
    package static func shortenTimeSlice(microseconds: Int64) {}

    /// There is none here that other threads can read.
    package static var clockOfThread: CInt? { nil }

    package static func time(ofClock clock: CInt) -> Duration? { nil }

    /// While a socket holds back, it sends full segments only. What is left is sent when it holds back no more.
    package static func holdBack(_ socket: CInt, _ holdsBack: Bool) {
        var value: CInt = holdsBack ? 1 : 0
        setsockopt(socket, CInt(IPPROTO_TCP), TCP_NOPUSH, &value, socklen_t(MemoryLayout<CInt>.size))
    }

    /// Who is at the other end of a local socket, as of the moment it connected; `nil` when the system can't tell.
    package static func peerCredentials(of socket: CInt) -> PeerCredentials? {
        var (user, group): (uid_t, gid_t) = (0, 0)
        guard getpeereid(socket, &user, &group) == 0 else { return nil }
        var process: pid_t = 0
        var length = socklen_t(MemoryLayout<pid_t>.size)
        // SOL_LOCAL, which the module leaves out.
        if getsockopt(socket, 0, LOCAL_PEERPID, &process, &length) != 0 { process = 0 }
        return PeerCredentials(user: user, process: process)
    }

    /// Does nothing here, and reports that.
    package static func enterSandbox(_ rules: SandboxRules) -> SandboxReport {
        var report = SandboxReport()
        report.missing = ["a sandbox (not available on this system)"]
        return report
    }

    /// Lets other threads run before the calling one where not all of them can run.
    package static func yieldToOtherThreads() { pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0) }

    /// Bytes of this process in physical memory; 0 when unknown.
    package static var residentBytes: Int {
        var information = mach_task_basic_info()
        var count = mach_msg_type_number_t(MemoryLayout<mach_task_basic_info>.size / MemoryLayout<natural_t>.size)
        let result = withUnsafeMutablePointer(to: &information) { pointer in
            pointer.withMemoryRebound(to: integer_t.self, capacity: Int(count)) {
                task_info(mach_task_self_, task_flavor_t(MACH_TASK_BASIC_INFO), $0, &count)
            }
        }
        return result == KERN_SUCCESS ? Int(information.resident_size) : 0
    }
}
#endif
