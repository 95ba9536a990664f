/// What a request says about an optional value that is stored: absent leaves it, null clears it, a value replaces it.
///
/// A property of this type in a request needs no code of its own for JSON: the compiler's `Codable` finds the container
/// methods below. `var displayName: Patch<String> = .keep` is absent from the JSON of `.keep` and null in that of
/// `.clear`.
public enum Patch<Value> {
    /// The stored value stays.
    case keep
    /// There is no value any more.
    case clear
    /// The value is replaced.
    case set(Value)

    /// Replaces the value, or clears it when `value` is `nil`.
    public init(_ value: Value?) {
        self = value.map { .set($0) } ?? .clear
    }

    /// The new value, if there is one.
    public var value: Value? {
        if case .set(let value) = self { value } else { nil }
    }

    /// The stored value after the patch.
    public func applied(to stored: Value?) -> Value? {
        switch self {
        case .keep: stored
        case .clear: nil
        case .set(let value): value
        }
    }
}

extension Patch: Sendable where Value: Sendable {}
extension Patch: Equatable where Value: Equatable {}
extension Patch: Hashable where Value: Hashable {}

extension Patch: Decodable where Value: Decodable {
    /// Reads null or a value. What is absent is read by `KeyedDecodingContainer.decode`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        self = container.decodeNil() ? .clear : .set(try container.decode(Value.self))
    }
}

extension Patch: Encodable where Value: Encodable {
    /// Writes null or a value. Throws for `.keep`, which only an object can express, by leaving the value out.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .keep:
            let context = EncodingError.Context(
                codingPath: encoder.codingPath, debugDescription: "only a field of an object can be left out")
            throw EncodingError.invalidValue(self, context)
        case .clear: try container.encodeNil()
        case .set(let value): try container.encode(value)
        }
    }
}

extension KeyedDecodingContainer {
    /// Reads a patch: `.keep` when the key is absent, `.clear` when its value is null.
    public func decode<Value: Decodable>(_ type: Patch<Value>.Type, forKey key: Key) throws -> Patch<Value> {
        guard contains(key) else { return .keep }
        return try decodeNil(forKey: key) ? .clear : .set(try decode(Value.self, forKey: key))
    }
}

extension KeyedEncodingContainer {
    /// Writes a patch: nothing for `.keep`, null for `.clear`.
    public mutating func encode<Value: Encodable>(_ patch: Patch<Value>, forKey key: Key) throws {
        switch patch {
        case .keep: break
        case .clear: try encodeNil(forKey: key)
        case .set(let value): try encode(value, forKey: key)
        }
    }
}
