import Core
import Foundation
import Hashing
import TestSupport

@testable import Collaboration

/// The JSON of the collaboration layer's requests. The first byte says which request it is. What is read is decided
/// over an empty storage.
enum FuzzedLayerRequests {
    static let subject = FuzzSubject(
        "layer-requests", bytesMax: 2048, seeds: { try examples("-request") },
        run: { input in
            guard let (type, json) = request(in: input) else { return }
            try check(type, json)
        })

    /// The request that the first byte names, and the other bytes.
    static func request(in input: UnsafeRawBufferPointer) -> (any RuledRequest.Type, [UInt8])? {
        guard let first = input.first, Int(first) < Requests.all.count else { return nil }
        return (Requests.all[Int(first)], Array(input.dropFirst()))
    }

    /// The examples of PROTOCOL.md whose names end so, each behind the number of its request.
    static func examples(_ suffix: String) throws -> [[UInt8]] {
        try ProtocolDocument().jsonBlocks.filter { $0.name.hasSuffix(suffix) }.compactMap { block in
            let name = block.name.dropLast(suffix.count)
            guard let number = Requests.all.firstIndex(where: { $0.name == name }) else { return nil }
            let value = try JSONSerialization.jsonObject(with: Data(block.text.utf8))
            return [UInt8(number)]
                + Array(
                    try JSONSerialization.data(withJSONObject: value, options: [.withoutEscapingSlashes, .sortedKeys]))
        }
    }

    private static func check<Request: RuledRequest>(_ type: Request.Type, _ json: [UInt8]) throws {
        let request: Request
        do throws(ServiceError) {
            request = try JSON.decodeStrictly(type, from: json)
        } catch {
            try demand([.malformedRequest, .limitExceeded].contains(error.code), "the error is \(error)")
            return try demand(error.reason.utf8.count <= Limits.errorTextBytesMax, "the error's text is too long")
        }
        let written = try JSON.encode(request)
        let again = try JSON.decodeStrictly(type, from: written)
        try demand(again == request, "a request is read in another way when it is written again")
        try demand(try JSON.encode(again) == written, "a request is written in another way the second time")
        try demand(type.isQuery == (request.subject == nil), "a query has a subject, or a change has none")
        _ = request.roleScope
        var settings = CollaborationSettings()
        settings.linkBase = "https://example.com/c"
        let context = RuleContext(
            now: Date(timeIntervalSince1970: 1_760_000_000), random: .seeded(1), sha256: { SHA256.hash($0) },
            settings: settings, grants: NoGrants())
        do throws(ServiceError) {
            switch try request.decideEncoded(context, EmptyStorage()) {
            case .answer, .wait: break
            case .edit(let edit, _, _), .note(let edit, _):
                try checkEdit(edit, isQuery: type.isQuery)
            }
        } catch {
            try demand(error.code.rawValue >= 16 && error.code.rawValue < 256, "the error is \(error)")
            try demand(error.code != .storageDamaged && error.code != .internalFault, "the error is \(error)")
        }
    }

    /// The edits that the rules make fit into the change log.
    private static func checkEdit(_ edit: Edit, isQuery: Bool) throws(ServiceError) {
        func refuse(_ what: String) throws(ServiceError) { throw ServiceError(.internalFault, what) }
        if isQuery { try refuse("a query changes something") }
        let bytes = appended { edit.append(to: &$0) }
        guard bytes.withRawBytes({ Edit($0, collaboration: edit.collaboration) }) == edit else {
            return try refuse("an edit is read in another way than it was written")
        }
        if bytes.count > Limits.editBytesMax { try refuse("an edit has \(bytes.count) bytes") }
        for record in edit.records where record.key.count > Limits.recordKeyBytesMax { try refuse("a key is too long") }
    }

    private struct NoGrants: GrantAuthority {
        func isGenuine(_ grant: AccessGrant) -> Bool { false }
        var now: UInt64 { 1_760_000_000_000 }
    }

    /// A storage without records and sets.
    private struct EmptyStorage: RecordReader {
        func record(_ key: [UInt8]) -> StoredRecord? { nil }

        func records(in range: RecordRange, limit: Int, isDescending: Bool) -> Page<StoredRecord> {
            Page(items: [], hasMore: false)
        }

        func visitRecords(
            in range: RecordRange, _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool
        ) {}

        func hasSet(of collaboration: CollaborationIdentifier) -> Bool { false }

        func isInSet(_ person: PersonIdentity, of collaboration: CollaborationIdentifier) -> Bool { false }

        func lastSequence() -> UInt64 { 7 }
    }
}

/// The JSON of the layer's answers, as a client reads it. The first byte says which request is answered.
enum FuzzedLayerAnswers {
    static let subject = FuzzSubject(
        "layer-answers", bytesMax: 2048, seeds: { try FuzzedLayerRequests.examples("-answer") },
        run: { input in
            guard let (type, json) = FuzzedLayerRequests.request(in: input) else { return }
            try check(type, json)
        })

    private static func check<Request: RuledRequest>(_ type: Request.Type, _ json: [UInt8]) throws {
        guard let answer = try? JSON.decode(Request.Answer.self, from: json) else { return }
        let written = try JSON.encode(answer)
        let again = try JSON.decode(Request.Answer.self, from: written)
        try demand(again == answer, "an answer is read in another way when it is written again")
        try demand(try JSON.encode(again) == written, "an answer is written in another way the second time")
    }
}
