package import Core
import Hashing

/// What a storage holds at its place in a shared log, as one digest. Storages at the same place have the same digest,
/// or one of them is not what the log says.
package struct SharedContents: Equatable, Sendable {
    package let place: SharedPlace
    /// SHA-256 of the place and of the totals: they have the number and the sum of the checksums of all values, and
    /// the checksum of the last change. It finds faults. It does not protect against somebody who chooses values.
    package let digest: Digest

    init(at place: SharedPlace, _ totals: Totals) {
        self.place = place
        var common = totals
        // What belongs to one storage alone: how many commits it has made, and when.
        common.transaction = 0
        common.tallies[.meta] = DatabaseTally()
        digest = SHA256.hash(place.bytes + common.bytes)
    }
}

extension Snapshot {
    /// What the storage holds; `nil` when it shares no log, or has not begun with it.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func sharedContents() throws(ServiceError) -> SharedContents? {
        do throws(StorageFailure) {
            guard let place = try transaction.sharedPlace() else { return nil }
            return SharedContents(at: place, try transaction.totals())
        } catch {
            throw error.asServiceError
        }
    }
}
