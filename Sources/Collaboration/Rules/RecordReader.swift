package import Core

/// The snapshot that the rules read: records and sets at one moment.
package protocol RecordReader: ~Copyable {
    /// The record at `key`; `nil` when there is none.
    func record(_ key: [UInt8]) throws(ServiceError) -> StoredRecord?
    /// Up to `limit` records of a range; from its end backwards when `isDescending`.
    func records(in range: RecordRange, limit: Int, isDescending: Bool) throws(ServiceError) -> Page<StoredRecord>
    /// Calls `body` with every record of a range, in order, until it returns false. `body` must not keep the bytes.
    func visitRecords(
        in range: RecordRange, _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool
    ) throws(ServiceError)
    /// Whether the collaboration has a set. A client that drops a collaboration without the layer removes the set and
    /// leaves the layer's records behind.
    func hasSet(of collaboration: CollaborationIdentifier) throws(ServiceError) -> Bool
    /// Whether the person's root hash is in the collaboration's set.
    func isInSet(_ person: PersonIdentity, of collaboration: CollaborationIdentifier) throws(ServiceError) -> Bool
    /// The sequence of the last mutation in the snapshot.
    func lastSequence() throws(ServiceError) -> UInt64
}
