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
    /// Whether a usual addition has no room, either: see `CommitRoom.hasUsualRoom`.
    var isGeneral = true

    var error: ServiceError { ServiceError(.storageFull, "\(what): \(remedy); removals still work") }

    var what: String {
        let place = isOfDisk ? "the disk" : "the storage"
        return isGeneral ? "\(place) is full" : "\(place) has no room for an addition of this size"
    }

    var remedy: String {
        if let holder { return holder.remedy }
        let less = isGeneral ? "" : "add less at a time, "
        let removals = "drop collaborations, remove most root hashes of large ones"
        if !isOfDisk { return "\(less)\(removals), or raise --storage-max" }
        return canBeRemoved ? "\(less)free some of it, \(removals)" : "\(less)only more room on it helps"
    }
}
