import Transport

/// How long a service waits for its peers, in seconds. A running service can change these.
package struct ServiceTimes: Equatable, Sendable {
    /// How long a connection may be idle.
    package var idle: UInt64 = 300
    /// How long a peer may take for one frame, or leave answers unread.
    package var stall: UInt64 = 30
    /// How long a shutdown waits for requests that were accepted.
    package var drain: UInt64 = 30

    package init() {}

    var timeouts: EventLoop.Timeouts { EventLoop.Timeouts(idle: idle * 1000, stall: stall * 1000) }
}
