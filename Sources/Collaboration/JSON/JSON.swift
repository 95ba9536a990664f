package import Core
import Foundation

/// JSON as the layer writes and reads it: dates in whole milliseconds since 1970.
package enum JSON {
    /// The range of dates. A double represents every whole number in it.
    package static let dateMilliseconds: ClosedRange<Int64> = -9_000_000_000_000_000...9_000_000_000_000_000

    /// Throws `internalFault` when the value can't be written.
    package static func encode(_ value: some Encodable) throws(ServiceError) -> [UInt8] {
        let encoder = JSONEncoder()
        // Whole milliseconds: a date far from now is stored less precisely than that.
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            let range = JSON.dateMilliseconds
            let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
            try container.encode(Int64(max(Double(range.lowerBound), min(milliseconds, Double(range.upperBound)))))
        }
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return Array(try encoder.encode(value))
        } catch {
            throw ServiceError(.internalFault, "a value can't be written as JSON")
        }
    }

    /// Reads an answer or a record: fields that the type does not have are ignored, since a later version may add some.
    ///
    /// Throws `malformedRequest` or `limitExceeded`; the reason says where.
    package static func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: [UInt8]
    ) throws(ServiceError) -> Value {
        try read(type, JSONReading(JSONParser.parse(bytes)))
    }

    /// Reads a request: a field that the type does not have is refused, at every depth.
    ///
    /// Throws `malformedRequest` or `limitExceeded`; the reason says where.
    package static func decodeStrictly<Value: Decodable>(
        _ type: Value.Type, from bytes: [UInt8]
    ) throws(ServiceError) -> Value {
        let reading = JSONReading(try JSONParser.parse(bytes))
        let value = try read(type, reading)
        if let unknown = reading.firstUnknownName {
            throw ServiceError(.malformedRequest, "the request's JSON: \(unknown.shown) is not a known field")
        }
        return value
    }

    private static func read<Value: Decodable>(
        _ type: Value.Type, _ reading: JSONReading
    ) throws(ServiceError) -> Value {
        do {
            return try reading.value(type, at: 0)
        } catch let error as DecodingError {
            throw ServiceError(.malformedRequest, "the request's JSON: \(error.place)")
        } catch {
            throw ServiceError(.malformedRequest, "the JSON can't be read")
        }
    }
}

extension DecodingError {
    fileprivate var place: String {
        func shown(_ path: [any CodingKey]) -> String { path.isEmpty ? "the value" : path.shown }
        switch self {
        case .keyNotFound(let key, let context): return "\(shown(context.codingPath + [key])) is missing"
        case .valueNotFound(_, let context): return "\(shown(context.codingPath)) is null"
        case .typeMismatch(_, let context):
            return "\(shown(context.codingPath)) is of another kind than it should be"
        case .dataCorrupted(let context):
            // The reasons of our own types begin with “not”. Others name Swift types, which mean nothing to a client.
            let own =
                context.debugDescription.hasPrefix("not ") ? context.debugDescription : "not a value that is known"
            return "\(shown(context.codingPath)) is \(own)"
        @unknown default: return "for an unknown reason"
        }
    }
}
