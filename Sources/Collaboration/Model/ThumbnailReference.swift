public import Core
public import Foundation

/// Where the picture of an item of a shelf is.
public enum ThumbnailReference: Hashable, Sendable, Codable {
    /// Behind a link.
    case link(URL)
    /// With the service: `ReadThumbnail` reads it by its SHA-256.
    case stored(hash: Digest, ImageType, byteCount: Int)

    private enum Key: String, CodingKey { case url, hash, mediaType, byteCount }

    /// Reads `{"url": ...}` or `{"hash": ..., "mediaType": ..., "byteCount": ...}`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        if let url = try container.decodeIfPresent(URL.self, forKey: .url) {
            self = .link(url)
        } else {
            self = .stored(
                hash: try container.decode(Digest.self, forKey: .hash),
                try container.decode(ImageType.self, forKey: .mediaType),
                byteCount: try container.decode(Int.self, forKey: .byteCount))
        }
    }

    /// Writes what `init(from:)` reads.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        switch self {
        case .link(let url): try container.encode(url, forKey: .url)
        case .stored(let hash, let type, let byteCount):
            try container.encode(hash, forKey: .hash)
            try container.encode(type, forKey: .mediaType)
            try container.encode(byteCount, forKey: .byteCount)
        }
    }
}
