public import Core

// Values of the gate as they stand in JSON.

extension Digest: Codable {
    /// Reads 64 hexadecimal characters.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(orElse: "not 64 hexadecimal characters") { Digest(hexadecimal: $0) }
    }

    /// Writes 64 hexadecimal characters.
    public func encode(to encoder: any Encoder) throws {
        try encoder.write(description)
    }
}

extension CollaborationIdentifier: Codable {
    /// Reads a string of 1 to 128 bytes of UTF-8 without control characters.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(orElse: "not a collaboration's identifier") { CollaborationIdentifier($0) }
    }

    /// Writes the identifier as a string.
    public func encode(to encoder: any Encoder) throws {
        try encoder.write(description)
    }
}
