#if !os(Linux)
import Darwin

package enum System {
    /// `SOCK_STREAM` as a number.
    package static let streamSocket = SOCK_STREAM
    /// Flags of send(2) that keep a broken connection from raising SIGPIPE; here `silenceBrokenPipe` does.
    package static let sendFlags: CInt = 0

    /// Keeps a broken connection on `socket` from raising SIGPIPE.
    package static func silenceBrokenPipe(_ socket: CInt) {
        var on: CInt = 1
        setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<CInt>.size))
    }

    /// Allocates blocks on disk for the first `bytes` bytes of the file, so that writing them can't fail
    /// for lack of space. 0, or an errno.
    package static func reserveSpace(_ descriptor: CInt, bytes: Int) -> CInt {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return errno }
        let missing = off_t(bytes) - status.st_blocks * 512
        guard missing > 0 else { return 0 }
        var request = fstore_t(
            fst_flags: UInt32(F_ALLOCATEALL), fst_posmode: F_PEOFPOSMODE, fst_offset: 0, fst_length: missing,
            fst_bytesalloc: 0)
        return fcntl(descriptor, F_PREALLOCATE, &request) == -1 ? errno : 0
    }

    /// Allows this process as many descriptors as the system lets it have without further rights. Returns
    /// how many that are.
    @discardableResult
    package static func raiseDescriptorLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(RLIMIT_NOFILE, &limit) == 0 else { return 0 }
        limit.rlim_cur = min(limit.rlim_max, rlim_t(OPEN_MAX))
        _ = setrlimit(RLIMIT_NOFILE, &limit)
        return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? Int(clamping: limit.rlim_cur) : 0
    }

    /// Lets the calling thread's sleeps end as exactly as the system can.
    package static func sharpenTimers() {}

    /// Bytes of this process that are in memory now; 0 when unknown.
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
