/// The elements of an array, one after the other.
struct JSONArrayContainer: UnkeyedDecodingContainer {
    private let reading: JSONReading
    private let node: Int
    /// The node of the next element.
    private var next: Int
    private(set) var currentIndex = 0

    /// Throws unless the value is an array.
    init(_ reading: JSONReading, _ node: Int) throws {
        try reading.expect(.array, "not an array", [Any].self, at: node)
        self.reading = reading
        self.node = node
        next = node + 1
    }

    var codingPath: [any CodingKey] { reading.path(to: node) }
    var count: Int? { Int(reading.tree.nodes[node].count) }
    var isAtEnd: Bool { currentIndex >= Int(reading.tree.nodes[node].count) }

    /// The next element, which stays the next one until `advance`.
    private func element() throws -> JSONValueDecoder {
        guard !isAtEnd else {
            let path = codingPath + [JSONStep.element(currentIndex)]
            throw DecodingError.valueNotFound(Any.self, .init(codingPath: path, debugDescription: "not there"))
        }
        return JSONValueDecoder(reading: reading, node: next)
    }

    private mutating func advance() {
        next = reading.tree.end(of: next)
        currentIndex += 1
    }

    private mutating func take<Value>(_ read: (JSONValueDecoder) throws -> Value) throws -> Value {
        let value = try read(try element())
        advance()
        return value
    }

    mutating func decodeNil() throws -> Bool {
        guard try element().decodeNil() else { return false }
        advance()
        return true
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try take { try $0.decode(type) } }
    mutating func decode(_ type: String.Type) throws -> String { try take { try $0.decode(type) } }
    mutating func decode(_ type: Double.Type) throws -> Double { try take { try $0.decode(type) } }
    mutating func decode(_ type: Float.Type) throws -> Float { try take { try $0.decode(type) } }
    mutating func decode(_ type: Int.Type) throws -> Int { try take { try $0.decode(type) } }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try take { try $0.decode(type) } }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try take { try $0.decode(type) } }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try take { try $0.decode(type) } }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try take { try $0.decode(type) } }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try take { try $0.decode(type) } }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try take { try $0.decode(type) } }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try take { try $0.decode(type) } }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try take { try $0.decode(type) } }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try take { try $0.decode(type) } }
    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try take { try $0.decode(type) } }

    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try take { try $0.container(keyedBy: type) }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try take { try $0.unkeyedContainer() }
    }

    mutating func superDecoder() throws -> any Decoder { try take { $0 } }
}
