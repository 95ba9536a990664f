/// What the service itself does when a share option is selected. An option without an effect means something to the app
/// only; grants and checks report its identifier.
///
/// `readOnly` and `readWrite` set the permission of participants without a permission of their own. Each of the others
/// is an action. If at least one option of the share options has the effect, the action is allowed only while such an
/// option is selected.
public enum OptionEffect: String, Hashable, Sendable, Codable, CaseIterable {
    case readOnly
    case readWrite
    /// Participants may add participants. Allowed to members only while an option says so.
    case addParticipants
    /// Participants may post mentions.
    case mention
    /// Participants may post comments.
    case comment
    /// People may come in with an invitation.
    case joinByInvitation

    /// The permission that the effect sets, if it sets one.
    var permission: Permission? {
        switch self {
        case .readOnly: .readOnly
        case .readWrite: .readWrite
        case .addParticipants, .mention, .comment, .joinByInvitation: nil
        }
    }
}
