import Core

/// Which generations of the cluster's secret a service accepts, by their names, and how many other services take what
/// this one authenticates for forged, or the other way round. The names tell nothing about the secret.
package final class SecretNames: Sendable {
    private let accepted: Lock<[String]>
    private let foreign = Lock<UInt64?>(nil)

    /// `accepted`: the present generation comes first.
    package init(_ accepted: [String]) { self.accepted = Lock(accepted) }

    /// The names of the generations that are accepted, the present one first.
    package var names: [String] { accepted.withLock { $0 } }

    /// The service accepts other generations from now on.
    package func accept(_ names: [String]) { accepted.withLock { $0 = names } }

    /// How many other services, whose keys are in etcd, have another secret; `nil`: the others are not known.
    package var foreignServices: UInt64? { foreign.withLock { $0 } }

    func found(foreignServices count: Int?) { foreign.withLock { $0 = count.map { UInt64($0) } } }
}
