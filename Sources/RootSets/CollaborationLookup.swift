import CLMDB
package import Core

/// Looks up many collaborations at once. One object serves one thread and has its own scratch memory.
///
/// A single look-up mostly waits for memory: first for the bucket's directory, then for the record and its roots. Here
/// each step is done for the whole batch before the next, so that the waits overlap.
package final class CollaborationLookup {
    /// The most collaborations in a batch.
    package static let capacity = Limits.proofsPerPassMax
    private static let line = 64

    private let hashes = ScratchBuffer<UInt64>(repeating: 0, count: CollaborationLookup.capacity)
    private let isPossible = ScratchBuffer<Bool>(repeating: false, count: CollaborationLookup.capacity)
    private let firsts = ScratchBuffer<Int>(repeating: 0, count: CollaborationLookup.capacity)
    private let buckets = ScratchBuffer<UnsafeRawBufferPointer>(
        repeating: UnsafeRawBufferPointer(start: nil, count: 0), count: CollaborationLookup.capacity)

    /// The directories of large collaborations that the views use.
    private var directories: [BucketDirectory] = []

    package init() {}

    /// Writes the collaboration of every name to `views`; `nil` where there is none or the name is not valid.
    ///
    /// `names`: at most `capacity`. `lookups`: how many roots will be looked up in all of them together. `views`: at
    /// least as long as `names`. A view is valid until the next call, and not after the snapshot's `read` returns.
    /// Throws `storageDamaged` or `storageFailed`.
    package func find(
        _ names: UnsafeBufferPointer<UnsafeRawBufferPointer>, for lookups: Int = 1, in snapshot: borrowing Snapshot,
        into views: UnsafeMutableBufferPointer<CollaborationView?>
    ) throws(ServiceError) {
        precondition(names.count <= CollaborationLookup.capacity, "a batch has more names than its capacity")
        precondition(views.count >= names.count, "there is no room for every view")
        do throws(StorageFailure) {
            let directory = try snapshot.directory(lookups: names.count)
            for index in names.indices {
                buckets[index] = UnsafeRawBufferPointer(start: nil, count: 0)
                isPossible[index] = CollaborationIdentifier.isValid(names[index])
                guard isPossible[index] else { continue }
                hashes[index] = snapshot.hash(of: names[index])
                directory?.prefetchStart(hashes[index])
            }
            if let directory {
                for index in names.indices where isPossible[index] {
                    firsts[index] = directory.prefetchEntry(hashes[index])
                }
            }
            for index in names.indices where isPossible[index] {
                let bytes =
                    if let directory {
                        directory.bucket(hashes[index], from: firsts[index])
                    } else {
                        try snapshot.bucketBytes(atOrAfter: hashes[index])?.bytes
                    }
                guard let bytes else { continue }
                buckets[index] = bytes
                // The directory of a full bucket covers two or three cache lines.
                prefetch(bytes, from: 0, lines: 3)
            }
            for index in names.indices where buckets[index].count > 0 {
                let bucket = try PackedBucket(buckets[index])
                let tag = UInt32(truncatingIfNeeded: hashes[index])
                for place in 0..<bucket.count where bucket.tag(place) == tag {
                    prefetch(buckets[index], from: bucket.start(place), lines: 4)
                    break
                }
            }
            for index in names.indices {
                guard buckets[index].count > 0 else {
                    views[index] = nil
                    continue
                }
                let bucket = try PackedBucket(buckets[index])
                let place = try bucket.find(names[index], hash: hashes[index])
                views[index] = if let place { CollaborationView(try bucket.record(place)) } else { nil }
            }
            // Views of the last call are no longer valid, so their directories can be released.
            directories.removeAll(keepingCapacity: true)
            for index in names.indices {
                guard let view = views[index], view.isLarge,
                    let directory = try snapshot.directory(of: view, lookups: max(1, lookups / names.count))
                else { continue }
                directories.append(directory)
                views[index]?.directory = .passUnretained(directory)
            }
        } catch {
            throw error.asServiceError
        }
    }

    /// Prefetches some cache lines of `bytes`. An offset outside of them prefetches nothing.
    private func prefetch(_ bytes: UnsafeRawBufferPointer, from offset: Int, lines: Int) {
        guard let start = bytes.baseAddress, offset < bytes.count else { return }
        for line in 0..<lines { lmdb_prefetch(start + min(offset + line * CollaborationLookup.line, bytes.count - 1)) }
    }
}
