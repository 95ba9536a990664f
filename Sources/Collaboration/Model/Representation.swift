public import Foundation

/// One form of something that is shared: the receiver takes the one it understands best.
public struct Representation: Hashable, Sendable {
    /// Uniform type identifier, as `public.json`.
    public let typeIdentifier: String
    /// The same as a media type, as `application/json`, where there is one.
    public let mediaType: String?
    /// A name for a file with the content.
    public let fileName: String
    public let content: Data
}
