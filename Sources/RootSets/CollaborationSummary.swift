package import Core

/// A collaboration as listings and statistics show it.
package struct CollaborationSummary: Hashable, Sendable {
    package let identifier: CollaborationIdentifier
    package let policy: ProofPolicy
    package let rootCount: UInt64
}
