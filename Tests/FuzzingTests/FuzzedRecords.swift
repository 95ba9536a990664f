import Core
import Foundation
import Principals

@testable import Collaboration

/// Records of the layers above the storage. The first byte says which kind of record it is.
enum FuzzedRecords {
    static let subject = FuzzSubject("records", bytesMax: 1024, seeds: seeds) { input in
        guard let first = input.first else { return }
        let value = Array(input.dropFirst())
        do {
            switch first {
            case 0: try json(StoredCollaboration.self, value)
            case 1: try json(StoredParticipant.self, value)
            case 2: try json(StoredInvitation.self, value)
            case 3: try json(PrincipalRecord.self, value)
            case 4: try post(value)
            case 5: try share(value)
            case 6: try access(value)
            default: break
            }
        } catch let error as ServiceError {
            try demand(
                [.storageDamaged, .malformedRequest, .limitExceeded].contains(error.code), "the error is \(error)")
        }
    }

    private static func json<Value: Codable>(_ type: Value.Type, _ value: [UInt8]) throws {
        let record = try StoredRecord(key: [], version: 1, value: value).decoded(type)
        let written = try JSON.encode(record)
        let again = try JSON.decode(type, from: written)
        try demand(try JSON.encode(again) == written, "a record is written in another way the second time")
        if let principal = record as? PrincipalRecord { try principal.check() }
    }

    private static func post(_ value: [UInt8]) throws {
        let post = try StoredPost(value)
        for text in post.texts {
            for language in Language.all {
                for isReader in [false, true] {
                    let json = appended { post.append(text, addressing: isReader, language, to: &$0) }
                    try demand(json.count <= post.byteCountMax(of: text), "a text is longer than was computed")
                }
            }
        }
    }

    private static func share(_ value: [UInt8]) throws {
        guard let share = StoredShare(value) else { return }
        let again = StoredShare(share.bytes)
        try demand(again?.bytes == share.bytes, "a share is read in another way when it is written again")
        for scope in [ShelfScope.everyApp, .app("app")] {
            _ = appended { share.appendAttribution(for: scope, to: &$0) }
        }
        _ = try share.app()
    }

    private static func access(_ value: [UInt8]) throws {
        guard let own = value.withRawBytes({ OwnAccess(version: 1, value: $0) }) else { return }
        try demand(
            OwnAccess.value(role: own.role, permission: own.permission) == value,
            "an access record is written in another way than it was read")
    }

    private static func seeds() throws -> [[UInt8]] {
        guard let deck = CollaborationIdentifier("deck-42"), let name = PrincipalName("backend") else { return [] }
        let author = PersonIdentity(rootHash: Digest([UInt8](repeating: 0xe3, count: 32)) ?? .zero)
        let date = Date(timeIntervalSince1970: 1_760_000_000)
        let collaboration = #"""
            {"owner":"ana","localIdentifier":"7","shareOptions":{"groups":[]},"createdAt":1760000000000,
            "formerOwners":[],"customItems":[]}
            """#
        let participant = #"{"role":"member","followsShareOptions":true,"invitedAt":1760000000000}"#
        let invitation = #"{"role":"member","createdAt":1760000000000,"isRevoked":false}"#
        let post = try StoredPost.bytes(
            of: [.mention(person: author), .change(trigger: .edit)], by: author, on: deck,
            title: "A \"deck\"", at: date, name: { _ in "Ana" })
        return [
            [0] + Array(collaboration.utf8), [1] + Array(participant.utf8), [2] + Array(invitation.utf8),
            [3] + (try JSON.encode(PrincipalRecord(name, roles: [], localUser: 1000, createdAt: date))),
            [4] + post, [5] + [UInt8](repeating: 0, count: 44), [6, 1, 1], [6, 0, 2],
        ]
    }
}
