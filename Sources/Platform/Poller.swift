import Foundation

/// What a descriptor is watched for, and what it is ready for.
package struct Interest: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    package static let reading = Interest(rawValue: 1)
    package static let writing = Interest(rawValue: 2)
    /// Nothing more can be sent or received. This is always reported, together with `reading`; nobody needs to watch
    /// for it.
    package static let ended = Interest(rawValue: 4)
}

/// A descriptor that is ready. Errors and hang-ups also make it readable; the read that follows returns the error.
package struct Readiness: Sendable {
    package let descriptor: CInt
    package let interest: Interest

    package init(descriptor: CInt, interest: Interest) {
        self.descriptor = descriptor
        self.interest = interest
    }
}

/// Level-triggered readiness of many descriptors. Serves one thread.
package protocol Poller: AnyObject {
    /// Starts to watch `descriptor`, or changes what it is watched for. An empty interest reports only errors.
    ///
    /// Throws when the kernel refuses.
    func watch(_ descriptor: CInt, for interest: Interest, isNew: Bool) throws(SystemFailure)
    /// Stops watching. Must be called before the descriptor is closed.
    func forget(_ descriptor: CInt)
    /// Waits up to `milliseconds` (-1: without limit) and replaces the contents of `ready`.
    func wait(milliseconds: CInt, into ready: inout [Readiness])
}

/// Makes the best poller that the system has.
package func makePoller() throws(SystemFailure) -> any Poller {
    #if os(Linux)
    try EpollPoller()
    #else
    PollPoller()
    #endif
}

/// A poller on poll(2), which every system has. Its cost grows with the number of descriptors.
package final class PollPoller: Poller {
    private var entries: [pollfd] = []
    private var places: [CInt: Int] = [:]

    package init() {}

    package func watch(_ descriptor: CInt, for interest: Interest, isNew: Bool) {
        var events: Int16 = 0
        if interest.contains(.reading) { events |= Int16(POLLIN) }
        if interest.contains(.writing) { events |= Int16(POLLOUT) }
        if let place = places[descriptor] {
            entries[place].events = events
        } else {
            places[descriptor] = entries.count
            entries.append(pollfd(fd: descriptor, events: events, revents: 0))
        }
    }

    package func forget(_ descriptor: CInt) {
        guard let place = places.removeValue(forKey: descriptor) else { return }
        let last = entries.removeLast()
        if last.fd != descriptor {
            entries[place] = last
            places[last.fd] = place
        }
    }

    package func wait(milliseconds: CInt, into ready: inout [Readiness]) {
        ready.removeAll(keepingCapacity: true)
        guard poll(&entries, nfds_t(entries.count), milliseconds) > 0 else { return }
        for entry in entries where entry.revents != 0 {
            var interest: Interest = []
            if entry.revents & Int16(POLLOUT) != 0 { interest.insert(.writing) }
            if entry.revents & ~Int16(POLLOUT) != 0 { interest.insert(.reading) }
            if entry.revents & Int16(POLLHUP | POLLERR | POLLNVAL) != 0 { interest.insert(.ended) }
            ready.append(Readiness(descriptor: entry.fd, interest: interest))
        }
    }
}
