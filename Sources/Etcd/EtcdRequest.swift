import Foundation

// The messages of etcd's JSON gateway (API v3). Bytes are base64, integers of 64 bits are strings, and what is false,
// zero or empty is left out of answers.

/// What a member is sent.
protocol EtcdRequest: Encodable {}

/// An integer of 64 bits as the gateway writes it.
struct LongInteger: Codable, Hashable, Sendable {
    var value: Int64

    init(_ value: Int64) { self.value = value }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let number = try? container.decode(Int64.self) {
            value = number
        } else if let number = Int64(try container.decode(String.self)) {
            value = number
        } else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "it is no integer of 64 bits")
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(String(value))
    }
}

/// An unsigned integer of 64 bits: the number of a member.
struct MemberNumber: Codable, Hashable, Sendable {
    var value: UInt64

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let number = UInt64(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "it is no number of a member")
        }
        value = number
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(String(value))
    }
}

struct AnswerHeader: Decodable {
    var member_id: MemberNumber?
    var revision: LongInteger?
    var raft_term: LongInteger?
}

struct EmptyRequest: EtcdRequest {}

struct RangeRequest: EtcdRequest {
    var key: Data
    var range_end: Data?
    var limit: LongInteger?
}

struct RangeAnswer: Decodable {
    var header: AnswerHeader?
    var kvs: [KeyValue]?
    var more: Bool?
}

struct KeyValue: Decodable {
    var key: Data
    var value: Data?
    var mod_revision: LongInteger?
    var lease: LongInteger?
}

struct PutRequest: EtcdRequest {
    var key: Data
    var value: Data
    var lease: LongInteger?
}

struct DeleteRequest: EtcdRequest {
    var key: Data
    var range_end: Data?
}

/// A comparison of a key's, or all of a range's, revision of creation with 0, which a key has that does not exist; or
/// of a key's value, or of the revision in which it was put last, with another.
struct Compare: Encodable {
    var key: Data
    var range_end: Data?
    var target = "CREATE"
    var result = "EQUAL"
    var create_revision: LongInteger? = LongInteger(0)
    var mod_revision: LongInteger?
    var value: Data?

    /// Whether the key exists and has that value.
    static func value(of key: [UInt8], is value: [UInt8]) -> Compare {
        Compare(key: Data(key), target: "VALUE", create_revision: nil, value: Data(value))
    }

    /// Whether the key was put last in that revision; 0: it does not exist.
    static func revision(of key: [UInt8], is revision: Int64) -> Compare {
        Compare(key: Data(key), target: "MOD", create_revision: nil, mod_revision: LongInteger(revision))
    }
}

/// A transaction that puts a key.
struct ReplaceRequest: EtcdRequest {
    var compare: [Compare]
    var success: [CreateRequest.Put]
}

/// A transaction that removes keys.
struct RemoveRequest: EtcdRequest {
    struct Deletion: Encodable { var request_delete_range: DeleteRequest }

    var compare: [Compare]
    var success: [Deletion]
}

/// A transaction that puts a key that does not exist, and otherwise reads from it on.
struct CreateRequest: EtcdRequest {
    struct Put: Encodable { var request_put: PutRequest }

    struct Range: Encodable { var request_range: RangeRequest }

    var compare: [Compare]
    var success: [Put]
    var failure: [Range]
}

/// A transaction that reads in either case, and tells whether its comparison held.
struct ReadRequest: EtcdRequest {
    var compare: [Compare]
    var success: [CreateRequest.Range]
    var failure: [CreateRequest.Range]
}

struct CreateAnswer: Decodable {
    struct Response: Decodable { var response_range: RangeAnswer? }

    var header: AnswerHeader?
    var succeeded: Bool?
    var responses: [Response]?
}

struct CompactRequest: EtcdRequest { var revision: LongInteger }

struct HeaderAnswer: Decodable { var header: AnswerHeader? }

struct LeaseRequest: EtcdRequest {
    var TTL: LongInteger?
    var ID: LongInteger?
}

struct LeaseAnswer: Decodable {
    var header: AnswerHeader?
    var ID: LongInteger?
    var TTL: LongInteger?
    var grantedTTL: LongInteger?
}

/// An answer of a stream: one of these in a line.
struct Streamed<Result: Decodable>: Decodable {
    var result: Result?
    var error: StreamFailure?
}

struct StreamFailure: Decodable {
    var grpc_code: Int?
    var http_code: Int?
    var message: String?
}

struct StatusAnswer: Decodable {
    var header: AnswerHeader?
    var version: String?
    var dbSize: LongInteger?
    var leader: MemberNumber?
    var raftTerm: LongInteger?
}

struct AlarmRequest: EtcdRequest {
    var action: String
    var memberID: MemberNumber?
    var alarm: String?
}

struct AlarmAnswer: Decodable {
    struct Alarm: Decodable {
        var memberID: MemberNumber?
        var alarm: String?
    }

    var alarms: [Alarm]?
}

struct CredentialsRequest: EtcdRequest {
    var name: String
    var password: String
}

struct TokenAnswer: Decodable { var token: String? }

struct WatchRequest: EtcdRequest {
    struct Create: Encodable {
        var key: Data
        var range_end: Data
        var start_revision: LongInteger
    }

    var create_request: Create
}

struct WatchAnswer: Decodable {
    /// Of an event only that it is there counts.
    struct Event: Decodable {}

    var header: AnswerHeader?
    var created: Bool?
    var canceled: Bool?
    var cancel_reason: String?
    var compact_revision: LongInteger?
    var events: [Event]?
}

/// An answer whose status is not 200.
struct ErrorAnswer: Decodable {
    var error: String?
    var message: String?
    var code: Int?
}
