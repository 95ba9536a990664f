/// What both kinds of groups have.
public protocol CollaborationOptionsGroup: Hashable, Sendable, Codable {
    var identifier: String { get set }
    var title: String { get set }
    var footer: String { get set }
    var options: [CollaborationOption] { get set }
    /// The group as share options keep it.
    var kept: ShareOptions.Group { get }
}
