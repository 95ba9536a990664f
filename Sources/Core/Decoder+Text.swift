// Values that stand in JSON as one string.

extension Decoder {
    /// Reads a string and makes a value of it. Throws a `DecodingError` that says `reason` when `make` returns `nil`.
    package func value<Value>(orElse reason: String, _ make: (String) -> Value?) throws -> Value {
        let container = try singleValueContainer()
        guard let value = make(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: reason)
        }
        return value
    }
}

extension Encoder {
    /// Writes a string.
    package func write(_ text: String) throws {
        var container = singleValueContainer()
        try container.encode(text)
    }
}
