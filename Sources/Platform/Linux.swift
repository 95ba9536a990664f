// Code that only Linux has. `Elsewhere.swift` has the same declarations for other systems.
#if os(Linux)
import CLinux
import Foundation

final class EpollPoller: Poller {
    private let descriptor: CInt
    /// A socket that becomes ready is told after those that were ready before, and these are told again in each wait.
    /// So a newly ready one may have to wait for as many waits as there are ready sockets, divided by this number.
    private var events = [epoll_event](repeating: epoll_event(), count: 1024)

    init() throws(SystemFailure) {
        descriptor = epoll_create1(CInt(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw SystemFailure("epoll_create1") }
    }

    deinit {
        close(descriptor)
    }

    func watch(_ watched: CInt, for interest: Interest, isNew: Bool) throws(SystemFailure) {
        var event = epoll_event()
        if interest.contains(.reading) { event.events |= EPOLLIN.rawValue }
        if interest.contains(.writing) { event.events |= EPOLLOUT.rawValue }
        event.data.fd = watched
        guard epoll_ctl(descriptor, isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, watched, &event) == 0 else {
            throw SystemFailure("epoll_ctl")
        }
    }

    func forget(_ watched: CInt) {
        var event = epoll_event()
        _ = epoll_ctl(descriptor, EPOLL_CTL_DEL, watched, &event)
    }

    func wait(milliseconds: CInt, into ready: inout [Readiness]) {
        ready.removeAll(keepingCapacity: true)
        let count = epoll_wait(descriptor, &events, CInt(events.count), milliseconds)
        guard count > 0 else { return }
        for event in events[..<Int(count)] {
            var interest: Interest = []
            if event.events & EPOLLOUT.rawValue != 0 { interest.insert(.writing) }
            if event.events & ~EPOLLOUT.rawValue != 0 { interest.insert(.reading) }
            if event.events & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 { interest.insert(.ended) }
            ready.append(Readiness(descriptor: event.data.fd, interest: interest))
        }
    }
}

package enum System {
    /// `SOCK_STREAM` as a number.
    package static let streamSocket = CInt(SOCK_STREAM.rawValue)
    /// Milliseconds of a clock that goes on while the machine sleeps, and that nobody can set.
    package static var millisecondsWithSleep: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return UInt64(time.tv_sec) * 1000 + UInt64(time.tv_nsec) / 1_000_000
    }

    /// `SOCK_DGRAM` as a number.
    package static let datagramSocket = CInt(SOCK_DGRAM.rawValue)
    /// Flags of send(2) that prevent SIGPIPE when the peer has closed the connection.
    package static let sendFlags = CInt(MSG_NOSIGNAL)

    /// Does nothing here: `sendFlags` prevents SIGPIPE.
    package static func silenceBrokenPipe(_ socket: CInt) {}

    /// Allocates disk blocks for the first `bytes` bytes of the file, so that writing them can't fail for lack of
    /// space. Returns 0 or an errno.
    package static func reserveSpace(_ descriptor: CInt, bytes: Int) -> CInt {
        posix_fallocate(descriptor, 0, off_t(bytes))
    }

    /// Raises the number of descriptors that this process may have to the most that the system allows without more
    /// privileges. Returns that number.
    @discardableResult
    package static func raiseDescriptorLimit() -> Int {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return 0 }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(resource, &limit)
        return getrlimit(resource, &limit) == 0 ? Int(clamping: limit.rlim_cur) : 0
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
        // No limit is the largest number.
        guard getrlimit(__rlimit_resource_t(number.rawValue), &limit) == 0, limit.rlim_cur < .max else { return nil }
        return Int(clamping: limit.rlim_cur)
    }

    /// Makes the allocator use at most `count` heaps, each for some of the threads. It sets addresses aside for each.
    package static func limitHeaps(to count: Int) {
        limit_heaps(CInt(clamping: count))
    }

    /// Allocates disk blocks for `bytes` bytes from `offset` on without making the file longer. Returns 0 or an errno;
    /// EOPNOTSUPP when the file system can't do so.
    package static func reserveSpace(_ descriptor: CInt, behind offset: Int, bytes: Int) -> CInt {
        reserve_behind_end(descriptor, off_t(offset), off_t(bytes)) == 0 ? 0 : errno
    }

    /// Leaves whole pages out of core dumps. Returns whether the system does so.
    package static func excludeFromDumps(_ pages: UnsafeMutableRawPointer, bytes: Int) -> Bool {
        madvise(pages, bytes, MADV_DONTDUMP) == 0
    }

    /// Overwrites memory with zeros. The compiler never removes this, as it may a plain `memset`.
    package static func cleanse(_ address: UnsafeMutableRawPointer, bytes: Int) {
        explicit_bzero(address, bytes)
    }

    /// Makes the sleeps of the calling thread end as exactly as the system can.
    package static func sharpenTimers() { sharpen_timers() }

    /// The processors that this program may use, as they were when it first asked.
    private static let processors = processors_of_thread()

    /// How many processors the calling thread may use.
    package static var processorsOfThread: Int { Int(count_processors(processors_of_thread())) }

    /// Lets the calling thread, and threads that it starts from now on, run only on the processor of this number,
    /// counted from 0 among those that the program may use; `nil`: on all of these. Returns false when that is not
    /// possible. For measurements.
    package static func confineThread(toProcessor number: Int?) -> Bool {
        use_processors(number.map { one_processor(processors, CInt(clamping: $0)) } ?? processors) == 0
    }

    /// Asks the system for time slices of so many microseconds for the calling thread. A thread that lets others run
    /// gives away the rest of its slice, so it loses less with short ones. Does nothing on systems before Linux 6.12.
    package static func shortenTimeSlice(microseconds: Int64) {
        shorten_time_slice(UInt64(1000 * microseconds))
    }

    /// The clock of the calling thread's processor time, which any thread may read.
    package static var clockOfThread: CInt? {
        var clock: clockid_t = 0
        return pthread_getcpuclockid(pthread_self(), &clock) == 0 ? clock : nil
    }

    /// The time of a clock; `nil` when its thread has ended.
    package static func time(ofClock clock: CInt) -> Duration? {
        var time = timespec()
        guard clock_gettime(clock, &time) == 0 else { return nil }
        return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    }

    /// While a socket holds back, it sends full segments only. What is left is sent when it holds back no more.
    package static func holdBack(_ socket: CInt, _ holdsBack: Bool) {
        var value: CInt = holdsBack ? 1 : 0
        setsockopt(socket, CInt(IPPROTO_TCP), TCP_CORK, &value, socklen_t(MemoryLayout<CInt>.size))
    }

    /// Who is at the other end of a local socket, as of the moment it connected; `nil` when the system can't tell.
    package static func peerCredentials(of socket: CInt) -> PeerCredentials? {
        var found = peer_credentials()
        guard read_peer_credentials(socket, &found) == 0 else { return nil }
        return PeerCredentials(user: found.user, process: found.process)
    }

    /// Lets other threads run before the calling one where not all of them can run.
    package static func yieldToOtherThreads() { lower_priority(5) }

    /// Bytes of this process in physical memory; 0 when unknown.
    package static var residentBytes: Int {
        let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return 0 }
        defer { close(file) }
        var text = [UInt8](repeating: 0, count: 128)
        let count = read(file, &text, text.count)
        guard count > 0 else { return 0 }
        let fields = String(decoding: text[..<count], as: UTF8.self).split(separator: " ")
        guard fields.count > 1, let pages = Int(fields[1]) else { return 0 }
        return pages * Int(getpagesize())
    }
}
#endif
