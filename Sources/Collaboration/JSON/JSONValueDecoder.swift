/// Decodes one value of a reading.
struct JSONValueDecoder: Decoder, SingleValueDecodingContainer {
    let reading: JSONReading
    let node: Int

    var codingPath: [any CodingKey] { reading.path(to: node) }
    var userInfo: [CodingUserInfoKey: Any] { [:] }
    /// The value as it is written, if it is a number.
    var numberText: String? { reading.numberText(node) }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(try JSONObjectContainer<Key>(reading, node))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try JSONArrayContainer(reading, node) }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { reading.isNull(node) }
    func decode(_ type: Bool.Type) throws -> Bool { try reading.truth(node) }
    func decode(_ type: String.Type) throws -> String { try reading.text(node) }
    func decode(_ type: Double.Type) throws -> Double { try reading.number(type, node) }
    func decode(_ type: Float.Type) throws -> Float { try reading.number(type, node) }
    func decode(_ type: Int.Type) throws -> Int { try reading.integer(type, node) }
    func decode(_ type: Int8.Type) throws -> Int8 { try reading.integer(type, node) }
    func decode(_ type: Int16.Type) throws -> Int16 { try reading.integer(type, node) }
    func decode(_ type: Int32.Type) throws -> Int32 { try reading.integer(type, node) }
    func decode(_ type: Int64.Type) throws -> Int64 { try reading.integer(type, node) }
    func decode(_ type: UInt.Type) throws -> UInt { try reading.integer(type, node) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try reading.integer(type, node) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try reading.integer(type, node) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try reading.integer(type, node) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try reading.integer(type, node) }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try reading.value(type, at: node) }
}
