/// Authenticates the grants that it has issued.
package protocol GrantAuthority: Sendable {
    /// Whether the tag of the grant is this authority's.
    func isGenuine(_ grant: AccessGrant) -> Bool
    /// The present time on the clock by which grants expire, in milliseconds.
    var now: UInt64 { get }
}
