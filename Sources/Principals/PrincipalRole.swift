/// What a principal may ask of the service. `RoleTable` has the requests of each role.
public enum PrincipalRole: String, Hashable, Sendable, Codable, CaseIterable {
    /// Challenges, proofs, grants.
    case verify
    /// Root sets, participants, invitations: who may open a document.
    case enrol
    /// Notices, shelves, and what else the collaboration layer has.
    case collaborate
    /// Lists, statistics and the change log.
    case observe
    /// Principals and their keys.
    case administer
}
