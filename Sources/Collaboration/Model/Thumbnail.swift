import Core
public import Foundation

/// The picture of a shared item as it is given: a link to it, or the picture itself.
public enum Thumbnail: Hashable, Sendable, Codable {
    /// A link with the scheme https or http.
    case link(URL)
    /// At most 64 KiB, of the stated format.
    case image([UInt8], ImageType)

    private enum Key: String, CodingKey { case url, data, mediaType }

    /// Reads `{"url": ...}` or `{"data": ..., "mediaType": ...}`, with the data in base64url without padding.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        guard let text = try container.decodeIfPresent(String.self, forKey: .data) else {
            guard try container.decodeIfPresent(ImageType.self, forKey: .mediaType) == nil else {
                throw DecodingError.dataCorruptedError(
                    forKey: .mediaType, in: container, debugDescription: "not to be given without data")
            }
            self = .link(try container.decode(URL.self, forKey: .url))
            return
        }
        guard try container.decodeIfPresent(URL.self, forKey: .url) == nil else {
            throw DecodingError.dataCorruptedError(
                forKey: .url, in: container, debugDescription: "not to be given together with data")
        }
        guard let bytes = Base64URL.bytes(text) else {
            throw DecodingError.dataCorruptedError(
                forKey: .data, in: container, debugDescription: "not base64url without padding")
        }
        self = .image(bytes, try container.decode(ImageType.self, forKey: .mediaType))
    }

    /// Writes what `init(from:)` reads.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        switch self {
        case .link(let url): try container.encode(url, forKey: .url)
        case .image(let bytes, let type):
            try container.encode(Base64URL.text(bytes), forKey: .data)
            try container.encode(type, forKey: .mediaType)
        }
    }
}
