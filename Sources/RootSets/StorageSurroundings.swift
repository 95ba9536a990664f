package import Core
import Dispatch

/// What the storage takes from the system. A simulation replaces it.
package struct StorageSurroundings: Sendable {
    /// Gives a new storage its key for hashing names.
    package var random = RandomSource.system
    /// The clock by which a commit of several peers' mutations ends.
    package var now: @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    /// Runs a function on another thread than the readers'.
    package var inBackground: @Sendable (@escaping @Sendable () -> Void) -> Void = { body in
        DispatchQueue.global(qos: .utility).async(execute: body)
    }
    /// Look-ups in one version of the sets before a directory of their buckets is built.
    package var directoryLookupsMin = 4096
    /// How long after a check of everything that is stored the next one begins.
    package var checkInterval = CheckInterval()
    /// `nil`: the storage starts a thread for the writer. Otherwise it starts none, and calls this once when there is
    /// something to write after `RootSets.write` returned false.
    package var wakeWriter: (@Sendable () -> Void)?
    /// Called before a commit. It fails with the number of the system's error that this returns, unless that is 0.
    package var willCommit: @Sendable () -> CInt = { 0 }
    /// Called behind a commit that was made. It is taken for failed with the number of the system's error that this
    /// returns, unless that is 0.
    package var commitOutcome: @Sendable () -> CInt = { 0 }
    /// Called with the last sequence after a commit, before the mutations are answered.
    package var didCommit: @Sendable (_ sequence: UInt64) -> Void = { _ in }
    /// The log that a service's storage shares although it is in no cluster; `nil`: none.
    package var sharedLog: (any SharedLog)?

    package init() {}
}
