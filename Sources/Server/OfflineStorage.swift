package import Core
package import Foundation
import Hashing
import RootSets

/// The storage of a data directory that this process has not open as a service.
package enum OfflineStorage {
    /// Something that is not what was written.
    package struct Finding: Sendable {
        package let kind: String
        /// What is damaged, with its key.
        package let what: String
        /// What it means, and for whom.
        package let meaning: String
    }

    /// What a backup has.
    package struct Backup: Sendable {
        /// When it was made.
        package let date: Date
        /// The sequences of its last change and of the first one in its log.
        package let sequence: UInt64
        package let firstSequence: UInt64
        package let digest: Digest
        /// Bytes that were written; 0 of a backup that was read.
        package var bytes: UInt64 = 0
        package var collaborations: UInt64 = 0
        package var roots: UInt64 = 0

        fileprivate init(_ header: BackupHeader, _ digest: Digest) {
            date = Date(timeIntervalSince1970: Double(header.time) / 1000)
            (sequence, firstSequence, self.digest) = (header.sequence, header.firstSequence, digest)
        }
    }

    /// What was restored.
    package struct Restored: Sendable {
        package let backup: Backup
        /// The last change that is there; above that of the backup when a log was applied.
        package let sequence: UInt64
    }

    /// Checks everything that is stored. While a service has the directory, its newest commit is checked.
    ///
    /// Throws `storageFailed` when there is no storage or when it has a format without checksums, and `busy` when the
    /// check would take the service's room.
    package static func findings(in directory: String) throws(ServiceError) -> [Finding] {
        try StorageInspection.findings(in: directory).map { finding in
            Finding(kind: finding.kind.rawValue, what: finding.what, meaning: finding.meaning)
        }
    }

    /// Restores what is damaged from what is intact and the change log. Returns what was done, a line each.
    ///
    /// Throws `storageInUse` while a service has the directory, what `findings` throws, and `storageDamaged` when the
    /// storage can't be repaired.
    package static func repair(_ directory: String) throws(ServiceError) -> [String] {
        try StorageRepair.repair(directory)
    }

    /// Writes everything that is stored to an open file or pipe. A service may have the directory.
    ///
    /// `rate`: bytes a second; `nil`: as fast as it goes. `progress` gets the part that is done, from 0 to 1. Throws
    /// `storageFailed` when there is no storage or when the backup can't be written, `storageDamaged` when the storage
    /// is damaged, and `busy` when the backup would take the service's room.
    package static func backUp(
        _ directory: String, to descriptor: CInt, rate: Int?, progress: @escaping (Double) -> Void = { _ in }
    ) throws(ServiceError) -> Backup {
        let date = UInt64(max(0, Date().timeIntervalSince1970 * 1000))
        // The time by which the service's grants expire may be ahead of the date.
        let time = max(date, try DurableClock.time(in: directory))
        let summary = try StorageBackup.write(directory, to: descriptor, time: time, rate: rate, progress: progress)
        var backup = Backup(summary.header, summary.digest)
        (backup.bytes, backup.collaborations, backup.roots) = (summary.bytes, summary.collaborations, summary.roots)
        return backup
    }

    /// Checks a backup without restoring it.
    ///
    /// Throws `storageDamaged` when it is not what was written.
    package static func checkBackup(_ descriptor: CInt) throws(ServiceError) -> Backup {
        let (header, digest) = try StorageRestore.check(descriptor)
        return Backup(header, digest)
    }

    /// Restores a backup to a new directory, which is there whole or not at all. `logs`: data directories and backups
    /// with later changes, which are applied up to `until`; `nil`: all that there are. `progress` gets about the part
    /// that is done, from 0 to 1.
    ///
    /// Throws `storageFailed` when the directory exists and is not empty, `storageFull` when the disk is full,
    /// `storageDamaged` when the backup or a log is not what was written, or does not go so far.
    package static func restore(
        _ descriptor: CInt, to directory: String, logs: [String], until: UInt64?,
        progress: (Double) -> Void = { _ in }
    ) throws(ServiceError) -> Restored {
        let plan = StorageRestore.Plan(backup: descriptor, directory: directory, logs: logs, until: until)
        let summary = try StorageRestore.restore(
            plan, progress: { bytes, all in progress(min(1, Double(bytes) / Double(max(1, all)))) },
            finish: { folder, summary throws(ServiceError) in
                // What had expired when the logs were written stays so, though the date was set back since.
                var time = summary.time
                for log in logs { time = max(time, try DurableClock.time(in: log)) }
                try DurableClock.write(time, in: folder)
                try RestoreNote(summary).write(in: folder)
            })
        var backup = Backup(summary.header, summary.digest)
        (backup.collaborations, backup.roots) = (summary.collaborations, summary.roots)
        return Restored(backup: backup, sequence: summary.sequence)
    }
}
