package import Platform

/// The two ways to wait for sockets: tests of what is above them run with both.
package enum PollerKind: CaseIterable, Sendable {
    case portable
    case systems

    package func make() throws -> any Poller {
        switch self {
        case .portable: PollPoller()
        case .systems: try makePoller()
        }
    }
}
