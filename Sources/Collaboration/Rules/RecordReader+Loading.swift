import Core
import Foundation

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
