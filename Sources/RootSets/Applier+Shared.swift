import Core
import Hashing

extension Applier {
    /// Applies the next segment of a shared log, and writes the place behind it. `hash`: that of the segment's bytes.
    /// `place`: where the storage is; `nil` before the first segment. Returns the new place, and what came of each
    /// mutation: it is the same in every storage.
    ///
    /// What a storage lacks refuses nothing here, because others do not lack it: then this throws, and the storage
    /// stays behind. Throws `mismatched` when the segment is not the next one.
    mutating func apply(
        _ segment: Segment, hash: Digest, at place: SharedPlace?
    ) throws(StorageFailure) -> (place: SharedPlace, results: [Result<MutationReceipt, ServiceError>]) {
        switch (segment.contents, place) {
        case (.founding(let founding), nil):
            guard sequence == 0 else {
                throw .mismatched("the storage has changes of its own, which are not in the shared log")
            }
            guard try hasHashKey(founding.hashKey) else {
                throw .mismatched("the storage was not made for the shared log: its names have other places")
            }
            let next = SharedPlace(founding: hash, founding)
            try finish(at: next, mutations: 0)
            return (next, [])
        case (.mutations(let mutations), let place?):
            guard segment.previous == place.hash else {
                throw .mismatched(
                    "segment \(place.number + 1) of the shared log does not follow the one that was applied before it")
            }
            var results: [Result<MutationReceipt, ServiceError>] = []
            for mutation in mutations { results.append(try apply(mutation, lack: nil)) }
            let next = place.following(hash: hash)
            try finish(at: next, mutations: mutations.count)
            return (next, results)
        case (.founding, _?): throw .mismatched("the shared log is founded twice")
        case (.mutations, nil): throw .mismatched("the shared log does not begin with its founding")
        }
    }

    /// What the storage will hold behind a segment that was applied last.
    func contents(at place: SharedPlace) -> SharedContents {
        var all = totals
        all.tallies += transaction.tallies
        return SharedContents(at: place, all)
    }

    private func hasHashKey(_ key: [UInt8]) throws(StorageFailure) -> Bool {
        guard let value = try transaction.get(environment.meta, StorageFormat.hashKey) else { return false }
        return value.contents.elementsEqual(key)
    }

    /// The change log is trimmed after each segment, so that it is the same in every storage.
    private mutating func finish(at place: SharedPlace, mutations count: Int) throws(StorageFailure) {
        try transaction.put(environment.meta, SharedPlace.key, place.bytes, version: sequence)
        try finish(
            trimmingLogTo: place.logRetentionBytes, count: Applier.trimmedRecordsMax(mutations: count))
    }
}
