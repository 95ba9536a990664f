import Core
import Foundation

extension StoredRecord {
    /// The value, read from JSON.
    ///
    /// Throws `storageDamaged` when it is something else.
    func decoded<Value: Decodable>(_ type: Value.Type) throws(ServiceError) -> Value {
        do throws(ServiceError) {
            return try JSON.decode(type, from: value)
        } catch {
            throw ServiceError(.storageDamaged, "a record of the collaboration layer can't be read: \(error.reason)")
        }
    }

    /// The value as a number of eight bytes.
    ///
    /// Throws `storageDamaged` when it is something else.
    func number() throws(ServiceError) -> UInt64 {
        guard value.count == 8 else {
            throw ServiceError(.storageDamaged, "a record of the collaboration layer is not a number")
        }
        return value.reduce(0) { $0 << 8 | UInt64($1) }
    }
}

extension RecordEdit {
    /// Writes a value as JSON.
    ///
    /// Throws `limitExceeded` when it is longer than a record.
    static func json(
        _ key: [UInt8], _ value: some Encodable, expecting expectation: Expectation = .anything
    ) throws(ServiceError) -> RecordEdit {
        let bytes = try JSON.encode(value)
        try checkLimit(bytes.count, Limits.recordValueBytesMax, "bytes in one record")
        return RecordEdit(key, value: bytes, expecting: expectation)
    }
}
