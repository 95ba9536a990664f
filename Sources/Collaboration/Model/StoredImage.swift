import Core

/// A thumbnail that the service has stored.
public struct StoredImage: Hashable, Sendable, Codable {
    public let bytes: [UInt8]
    public let type: ImageType

    private enum Key: String, CodingKey { case data, mediaType }

    init(bytes: [UInt8], type: ImageType) {
        self.bytes = bytes
        self.type = type
    }

    /// Reads `{"data": ..., "mediaType": ...}`, with the data in base64url without padding.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        guard let bytes = Base64URL.bytes(try container.decode(String.self, forKey: .data)) else {
            throw DecodingError.dataCorruptedError(
                forKey: .data, in: container, debugDescription: "not base64url without padding")
        }
        self.init(bytes: bytes, type: try container.decode(ImageType.self, forKey: .mediaType))
    }

    /// Writes what `init(from:)` reads.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(Base64URL.text(bytes), forKey: .data)
        try container.encode(type, forKey: .mediaType)
    }
}
