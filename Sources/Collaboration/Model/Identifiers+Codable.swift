public import Core

// Values of the gate as they stand in JSON.

extension Digest: Codable {
    /// Reads 64 hexadecimal characters.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let digest = Digest(hexadecimal: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not 64 hexadecimal characters")
        }
        self = digest
    }

    /// Writes 64 hexadecimal characters.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension CollaborationIdentifier: Codable {
    /// Reads a string of 1 to 128 bytes of UTF-8 without control characters.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let identifier = CollaborationIdentifier(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a collaboration's identifier")
        }
        self = identifier
    }

    /// Writes the identifier as a string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
