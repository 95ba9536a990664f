public import Core
public import Foundation

/// An event as it stands in a feed.
public struct Notice: Hashable, Sendable, Codable {
    public let collaboration: CollaborationIdentifier
    /// The post's place in the change log.
    public let sequence: UInt64
    /// The event's place among those that were posted together, from 0.
    public let place: Int
    public let date: Date
    public let author: PersonIdentity
    public let event: HighlightEvent
    /// The event in a sentence for people.
    public let sentence: String

    /// Tells the notice from every other one of the service.
    public var identifier: String { "\(sequence).\(place)" }
}
