import Core
import Foundation

// What the records hold as JSON.

/// `c`: a collaboration.
struct StoredCollaboration: Codable {
    var owner: Account
    var localIdentifier: LocalCollaborationIdentifier
    var title: String?
    var initiatorHandle: String?
    var initiatorNameComponents: NameComponents?
    var shareOptions: ShareOptions
    var createdAt: Date
    var customItems: [CustomItem] = []
    var manageButtonTitle: String?
}

/// `p`: a participant.
struct StoredParticipant: Codable {
    var displayName: String?
    var role: ParticipantRole
    var permission: Permission?
    var invitedAt: Date
    var removedAt: Date?
}

/// `t`: an invitation.
struct StoredInvitation: Codable {
    var role: ParticipantRole
    var permission: Permission?
    var createdAt: Date
    var expiresAt: Date?
    var isRevoked = false
    var acceptedBy: Account?
    var acceptedAt: Date?
}

/// A record with what it holds.
struct Loaded<Value> {
    var value: Value
    let version: UInt64
}

extension RecordReader where Self: ~Copyable {
    /// The record at `key`, read from JSON.
    ///
    /// Throws `storageDamaged` when it is something else.
    func load<Value: Decodable>(_ type: Value.Type, at key: [UInt8]) throws(ServiceError) -> Loaded<Value>? {
        guard let record = try record(key) else { return nil }
        return Loaded(value: try record.decoded(type), version: record.version)
    }

    /// The collaboration, or `unknownCollaboration`.
    func collaboration(_ identifier: CollaborationIdentifier) throws(ServiceError) -> Loaded<StoredCollaboration> {
        guard let found = try load(StoredCollaboration.self, at: RecordKeys.collaboration(identifier)) else {
            throw ServiceError(.unknownCollaboration, "no collaboration \(identifier) was started")
        }
        return found
    }
}

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

/// Throws `limitExceeded` unless the text has at most that many bytes of UTF-8.
func check(_ text: String?, _ what: String, bytesMax: Int = Limits.textBytesMax) throws(ServiceError) {
    try checkLimit(text?.utf8.count ?? 0, bytesMax, "bytes of \(what)")
}

/// Throws `malformedRequest` unless the text may name something, as an account's name does.
func checkName(_ text: String, _ what: String) throws(ServiceError) {
    guard CollaborationIdentifier.isValid(Array(text.utf8)) else {
        throw ServiceError(.malformedRequest, "\(what) is 1 to 128 bytes of UTF-8 without control characters")
    }
}
