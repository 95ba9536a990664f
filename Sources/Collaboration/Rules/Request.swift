package import Core
package import Foundation

/// One operation of the collaboration layer, as a value: it travels as its name and its JSON, and is answered with
/// another value as JSON.
public protocol CollaborationRequest: Hashable, Codable, Sendable {
    associatedtype Answer: Hashable, Codable, Sendable
    /// The stable name on the wire, listed in PROTOCOL.md.
    static var name: String { get }
}

/// What a change did.
public struct ChangeReceipt: Hashable, Codable, Sendable {
    /// The change's place in the change log; `nil` when there was nothing to change.
    public let sequence: UInt64?
    /// How many participants, notices, items or settings were changed.
    public let changed: Int

    package init(sequence: UInt64?, changed: Int) {
        self.sequence = sequence
        self.changed = changed
    }
}

/// What the rules read: the records and sets as of one moment.
package protocol RecordReader: ~Copyable {
    /// The record at `key`; `nil` when there is none.
    func record(_ key: [UInt8]) throws(ServiceError) -> StoredRecord?
    /// Up to `limit` records of a range; from its end backwards when `isDescending`.
    func records(in range: RecordRange, limit: Int, isDescending: Bool) throws(ServiceError) -> Page<StoredRecord>
    /// Lends every record of a range, in order, until `body` returns false. Nothing that is lent may be kept.
    func visitRecords(
        in range: RecordRange, _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool
    ) throws(ServiceError)
    /// Whether the gate knows the collaboration: who dropped it past the layer has left our records behind.
    func hasSet(of collaboration: CollaborationIdentifier) throws(ServiceError) -> Bool
    /// Whether the person's root hash is in the collaboration's set.
    func isInSet(_ person: PersonIdentity, of collaboration: CollaborationIdentifier) throws(ServiceError) -> Bool
    /// The last mutation that is in what is read.
    func lastSequence() throws(ServiceError) -> UInt64
}

/// What a request finds around it, apart from records. Time and randomness come from here, so that tests replay.
package struct RuleContext: Sendable {
    /// In whole milliseconds.
    package let now: Date
    package let random: RandomSource
    package let sha256: @Sendable ([UInt8]) -> Digest
    package let settings: CollaborationSettings
    /// The sequence with which the same request was carried out before, if it was.
    package let earlier: UInt64?
    /// What a genuine grant says that has not expired, or why it isn't one.
    package let open: @Sendable (AccessGrant) -> Result<GrantClaim, GrantRefusal>

    package init(
        now: Date, random: RandomSource, sha256: @escaping @Sendable ([UInt8]) -> Digest,
        settings: CollaborationSettings, earlier: UInt64? = nil,
        open: @escaping @Sendable (AccessGrant) -> Result<GrantClaim, GrantRefusal>
    ) {
        self.now = Date(timeIntervalSince1970: (now.timeIntervalSince1970 * 1000).rounded(.down) / 1000)
        self.random = random
        self.sha256 = sha256
        self.settings = settings
        self.earlier = earlier
        self.open = open
    }

    /// The first bytes of the SHA-256 of a text.
    func fingerprint(_ text: String, count: Int = 16) -> [UInt8] {
        Array(sha256(Array(text.utf8)).bytes.prefix(count))
    }
}

/// Why a grant is worth nothing.
package struct GrantRefusal: Error {
    package let status: GrantStatus

    package init(_ status: GrantStatus) {
        self.status = status
    }
}

/// What an operator decides about the collaboration layer.
package struct CollaborationSettings: Hashable, Sendable {
    /// What universal links begin with, as `https://example.com/c`; `nil`: nothing can be started.
    package var linkBase: String?
    /// How long notices are kept.
    package var noticeSeconds: Double = 30 * 24 * 3600
    /// How many posts of a collaboration are kept at least; older ones go by and by.
    package var noticeCount = 1000

    package init() {}
}

/// Something that people wait for news of.
package enum Topic: Hashable, Sendable {
    /// A collaboration's notices and participants.
    case collaboration(CollaborationIdentifier)
    /// Which collaborations an account is linked to.
    case account(Account)
    /// What is on an account's shelf.
    case shelf(Account)
}

/// What the rules decide about a request.
package enum Decision<Answer: Sendable>: Sendable {
    case answer(Answer)
    /// The edit is to be made, `topics` are news then, and the answer follows from its receipt.
    case edit(Edit, topics: [Topic], answer: @Sendable (MutationReceipt) -> Answer)
    /// There is nothing new: decide again when one of `topics` is news, or answer after that many milliseconds.
    case wait(topics: [Topic], milliseconds: Int, answer: Answer)
}

/// A request that has rules.
package protocol RuledRequest: CollaborationRequest {
    /// Whether it only reads: it is never decided with an edit, its identifier means nothing, and equal ones have one
    /// answer. Only queries may wait for news.
    static var isQuery: Bool { get }

    /// Decides without changing anything: on what was read, a pure function.
    ///
    /// Throws the coded error that the peer gets.
    func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer>

    /// Decides, and writes the answer as JSON.
    func decideEncoded(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> EncodedDecision

    /// What is answered when the request was carried out before, with that sequence; `nil` when it is to be decided
    /// anew, because its answer says more.
    func answer(toRepetitionOf sequence: UInt64) -> Answer?
}

extension RuledRequest {
    package static var isQuery: Bool { false }

    package func answer(toRepetitionOf sequence: UInt64) -> Answer? { nil }
}

extension RuledRequest where Answer == ChangeReceipt {
    package func answer(toRepetitionOf sequence: UInt64) -> Answer? { ChangeReceipt(sequence: sequence, changed: 0) }
}

/// A decision about a request of any kind.
package typealias EncodedDecision = Decision<[UInt8]>

extension RuledRequest {
    /// Decides, and writes the answer as JSON.
    package func decideEncoded(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> EncodedDecision {
        switch try decide(context, records) {
        case .answer(let answer): return .answer(try JSON.encode(answer))
        case .edit(let edit, let topics, let answer):
            // Values of the layer's own can always be written.
            return .edit(edit, topics: topics) { (try? JSON.encode(answer($0))) ?? [] }
        case .wait(let topics, let milliseconds, let answer):
            return .wait(topics: topics, milliseconds: milliseconds, answer: try JSON.encode(answer))
        }
    }
}

extension RuledRequest {
    /// `answer(toRepetitionOf:)` as JSON.
    package func encodedAnswer(toRepetitionOf sequence: UInt64) throws(ServiceError) -> [UInt8]? {
        try answer(toRepetitionOf: sequence).map { answer throws(ServiceError) in try JSON.encode(answer) }
    }
}

/// All requests, by their names.
package enum Requests {
    package static let all: [any RuledRequest.Type] = [
        PrepareCollaboration.self, AbandonCollaboration.self, FindHighlight.self, UpdateShareOptions.self,
        StopSharing.self,
        AddParticipants.self, RemoveParticipants.self, UpdateParticipant.self, ListParticipants.self, LinkAccount.self,
        PostNotices.self, ReadNotices.self, ClearNotices.self,
        RecordShare.self, ReadShelf.self, PinHighlight.self, RemoveHighlight.self, SignalHighlight.self,
        SetConsent.self, ReadConsent.self, ReadAttribution.self,
        ReadDetails.self, CustomizeDetails.self,
        CreateInvitation.self, AcceptInvitation.self, ListInvitations.self, RevokeInvitation.self, ListShares.self,
    ]

    private static let byName = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    /// Reads the request of that name.
    ///
    /// Throws `unknownOperation` or `malformedRequest`.
    package static func parse(_ name: String, _ json: [UInt8]) throws(ServiceError) -> any RuledRequest {
        guard let request = byName[name] else {
            throw ServiceError(.unknownOperation, "the collaboration layer has no request “\(name.prefix(64))”")
        }
        return try JSON.decode(request, from: json)
    }
}

/// JSON as the layer writes and reads it: dates in milliseconds since 1970.
package enum JSON {
    /// Beyond these numbers a double skips some.
    private static let millisecondsMax = 9e15

    /// Throws `internalFault` when the value can't be written.
    package static func encode(_ value: some Encodable) throws(ServiceError) -> [UInt8] {
        let encoder = JSONEncoder()
        // Whole ones: far from now a date's own resolution is no millisecond.
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
            guard !context.codingPath.isEmpty else { return "it is no JSON" }
            // Our own reasons begin so; others speak of types that nobody outside has heard of.
            let own =
                context.debugDescription.hasPrefix("not ") ? context.debugDescription : "not a value that is known"
            return "\(path(context)) is \(own)"
        @unknown default: return "for an unknown reason"
        }
    }
}
