/// A participant to be added.
public struct NewParticipant: Hashable, Sendable, Codable {
    public var identity: PersonIdentity
    public var displayName: String?
    /// `nil`: member.
    public var role: ParticipantRole?
    /// `nil`: by the share options.
    public var permission: Permission?

    public init(
        _ identity: PersonIdentity, displayName: String? = nil, role: ParticipantRole? = nil,
        permission: Permission? = nil
    ) {
        self.identity = identity
        self.displayName = displayName
        self.role = role
        self.permission = permission
    }
}
