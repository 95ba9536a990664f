/// What is to change of a participant. What is left out stays.
public struct ParticipantChange: Hashable, Sendable, Codable {
    public var identity: PersonIdentity
    /// Cleared: the participant has no name.
    public var displayName: Patch<String>
    /// `nil`: the role stays.
    public var role: ParticipantRole?
    /// Cleared: the participant follows the share options.
    public var permission: Patch<Permission>

    public init(
        _ identity: PersonIdentity, displayName: Patch<String> = .keep, role: ParticipantRole? = nil,
        permission: Patch<Permission> = .keep
    ) {
        self.identity = identity
        self.displayName = displayName
        self.role = role
        self.permission = permission
    }
}
