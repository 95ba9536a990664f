public import Core

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
