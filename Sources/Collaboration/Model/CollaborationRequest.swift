/// One operation of the collaboration layer, as a value: it travels as its name and its JSON, and is answered with
/// another value as JSON.
public protocol CollaborationRequest: Hashable, Codable, Sendable {
    associatedtype Answer: Hashable, Codable, Sendable
    /// The stable name on the wire, listed in PROTOCOL.md.
    static var name: String { get }
}
