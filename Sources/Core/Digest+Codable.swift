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
