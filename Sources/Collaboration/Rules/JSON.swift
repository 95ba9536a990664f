package import Core
import Foundation

/// JSON as the layer writes and reads it: dates in milliseconds since 1970.
package enum JSON {
    /// A double represents every whole number up to this one.
    private static let millisecondsMax = 9e15

    /// Throws `internalFault` when the value can't be written.
    package static func encode(_ value: some Encodable) throws(ServiceError) -> [UInt8] {
        let encoder = JSONEncoder()
        // Whole milliseconds: a date far from now is stored less precisely than that.
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
            try container.encode(Int64(max(-JSON.millisecondsMax, min(milliseconds, JSON.millisecondsMax))))
        }
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return Array(try encoder.encode(value))
        } catch {
            throw ServiceError(.internalFault, "a value can't be written as JSON")
        }
    }

    /// Throws `malformedRequest`; the reason says where.
    package static func decode<T: Decodable>(_ type: T.Type, from bytes: [UInt8]) throws(ServiceError) -> T {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .millisecondsSince1970
        do {
            return try decoder.decode(type, from: Data(bytes))
        } catch let error as DecodingError {
            throw ServiceError(.malformedRequest, "the JSON can't be read: \(error.place)")
        } catch {
            throw ServiceError(.malformedRequest, "the JSON can't be read")
        }
    }
}

extension DecodingError {
    fileprivate var place: String {
        func path(_ context: Context, _ last: (any CodingKey)? = nil) -> String {
            (context.codingPath + (last.map { [$0] } ?? [])).map(\.stringValue).joined(separator: ".")
        }
        switch self {
        case .keyNotFound(let key, let context): return "\(path(context, key)) is missing"
        case .valueNotFound(_, let context): return "\(path(context)) is null"
        case .typeMismatch(_, let context): return "\(path(context)) is of another kind than it should be"
        case .dataCorrupted(let context):
            guard !context.codingPath.isEmpty else { return "it is not JSON" }
            // The reasons of our own types begin with “not”. Others name Swift types, which mean nothing to a client.
            let own =
                context.debugDescription.hasPrefix("not ") ? context.debugDescription : "not a value that is known"
            return "\(path(context)) is \(own)"
        @unknown default: return "for an unknown reason"
        }
    }
}
