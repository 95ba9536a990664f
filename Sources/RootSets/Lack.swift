import Core

/// Why there is no room for an addition.
struct Lack: Sendable {
    let need: PageNeed
    /// Whether the disk has no more room, not the storage.
    let isOfDisk: Bool
    /// Whether removing makes room.
    let canBeRemoved: Bool
    /// The other process that reads an old snapshot, so that what is removed makes no room before the end of that.
    var holder: SnapshotReader?

    var error: ServiceError { ServiceError(.storageFull, "\(what): \(remedy); removals still work") }

    var what: String { isOfDisk ? "the disk is full" : "the storage is full" }

    var remedy: String {
        if let holder { return holder.remedy }
        if !isOfDisk { return "remove many root hashes or collaborations, or raise --storage-max" }
        return canBeRemoved
            ? "free some of it, or remove many root hashes or collaborations" : "only more room on it helps"
    }
}
