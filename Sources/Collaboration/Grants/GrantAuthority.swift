/// Issues grants, and recognizes those that it issued.
package protocol GrantAuthority: Sendable {
    /// Whether the tag of the grant is this authority's.
    func isGenuine(_ grant: AccessGrant) -> Bool
    /// Milliseconds of the clock by which grants expire.
    var now: UInt64 { get }
}
