package import Core

/// Looks up many root hashes in one collaboration of a snapshot. It must not be used after the call of `RootSets.read`
/// that made the snapshot.
package struct MemberLookup {
    private let view: CollaborationView
    /// Keeps the view's directory alive.
    private let directory: BucketDirectory?

    /// `lookups`: how many root hashes will be looked up. Returns `nil` when there is no such collaboration, or when
    /// the bytes are no valid identifier.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package init?(
        _ identifier: UnsafeRawBufferPointer, lookups: Int, in snapshot: borrowing Snapshot
    ) throws(ServiceError) {
        precondition(lookups > 0, "no root hash is looked up")
        guard var view = try snapshot.collaboration(identifier) else { return nil }
        do throws(StorageFailure) {
            directory = view.isLarge ? try snapshot.directory(of: view, lookups: lookups) : nil
        } catch {
            throw error.asServiceError
        }
        view.directory = directory.map { .passUnretained($0) }
        self.view = view
    }

    /// Whether `root` is in the collaboration's set.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func contains(_ root: Digest, in snapshot: borrowing Snapshot) throws(ServiceError) -> Bool {
        try snapshot.contains(root, in: view)
    }
}
