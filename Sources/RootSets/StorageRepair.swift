package import Core
import Foundation
import Platform

/// Writes the storage of a data directory anew by applying its whole change log to an empty one. So everything is
/// restored exactly, whatever else is damaged. The damaged file stays beside the new one.
///
/// A storage whose log is damaged, or does not go back to the first change, is not repaired: entries may be missing or
/// out of date without a trace, and an old entry could let in somebody who was removed.
package enum StorageRepair {
    /// Repairs the storage. Returns what was done, a line each.
    ///
    /// Throws `storageInUse` while a service has the directory, `storageDamaged` when the storage can't be repaired, or
    /// what the storage throws. Then the directory is as it was.
    package static func repair(_ directory: String) throws(ServiceError) -> [String] {
        try StorageRestore.checkFinished(directory)
        let damaged = try StorageInspection.open(directory)
        do throws(StorageFailure) {
            guard !(try StorageInspection.findings(in: damaged)).isEmpty else {
                return ["nothing is damaged"] + (damaged.possibleLoss.map { [$0] } ?? [])
            }
        } catch {
            throw error.asServiceError
        }
        let target = directory + "/repaired"
        try? FileManager.default.removeItem(atPath: target)
        do throws(StorageFailure) {
            let count = try restore(damaged, in: target)
            guard try StorageInspection.findings(in: try open(target)).isEmpty else {
                throw .damaged("the storage can't be repaired: what was restored contradicts itself: restore a backup")
            }
            let kept = try exchange(directory, target)
            return [
                "restored everything by applying the change log again: \(count) changes",
                "the damaged file is kept as \(kept)",
            ]
        } catch {
            try? FileManager.default.removeItem(atPath: target)
            throw error.asServiceError
        }
    }

    private static func open(_ directory: String) throws(StorageFailure) -> StorageEnvironment {
        do throws(ServiceError) {
            return try StorageEnvironment(
                directory: directory, bytesMax: RootSets.Configuration(directory: directory).sizeLimitBytes,
                reserveBytes: 0)
        } catch {
            throw .damaged("opening the repaired storage: \(error.reason)")
        }
    }

    /// Applies the whole log to an empty storage. Returns how many changes there were.
    private static func restore(
        _ damaged: StorageEnvironment, in target: String
    ) throws(StorageFailure) -> UInt64 {
        let reader = try ReadTransaction(damaged)
        try reader.renew()
        defer { reader.reset() }
        guard let totals = try? reader.totals() else {
            throw .damaged("the storage can't be repaired: its totals are damaged: restore a backup")
        }
        guard (try? reader.sharedPlace()) == .some(nil) else {
            throw .damaged(
                "the storage can't be repaired: it shares a log with others, and would come to differ from them: "
                    + "restore a backup of another one")
        }
        guard totals.firstSequence == 1 else {
            throw .damaged(
                "the storage can't be repaired: the change log begins at \(totals.firstSequence), not at the first "
                    + "change: restore a backup")
        }
        let environment = try open(target)
        var next: UInt64 = 1
        while next <= totals.sequence {
            let transaction = try WriteTransaction(environment.handle)
            var applier = try Applier(transaction, environment)
            for _ in 0..<256 where next <= totals.sequence {
                try apply(next, of: damaged, reader, to: &applier)
                next += 1
            }
            try applier.finish(trimmingLogTo: .max, count: 0)
            try transaction.commit()
        }
        let written = try ReadTransaction(environment)
        try written.renew()
        defer { written.reset() }
        guard try written.totals().chainHead == totals.chainHead else {
            throw .damaged("the storage can't be repaired: the last changes of its log are not there: restore a backup")
        }
        return totals.sequence
    }

    /// Applies one change of the damaged storage's log.
    private static func apply(
        _ sequence: UInt64, of damaged: StorageEnvironment, _ reader: ReadTransaction, to applier: inout Applier
    ) throws(StorageFailure) {
        guard let record = try? reader.value(damaged.log, bigEndianBytes(sequence)) else {
            throw .damaged(
                "the storage can't be repaired: change \(sequence) of its log is damaged or missing: restore a backup")
        }
        let mutation = try LogRecord.decode(record.contents, sequence: sequence).mutation
        guard case .success(let receipt) = try applier.apply(mutation, lack: nil), receipt.sequence == sequence else {
            throw .damaged("the storage can't be repaired: change \(sequence) of its log can't be applied again")
        }
    }

    /// Puts the new file into the place of the damaged one. Returns the path of the damaged one.
    private static func exchange(_ directory: String, _ target: String) throws(StorageFailure) -> String {
        var kept = directory + "/data.mdb.damaged"
        var number = 1
        while FileManager.default.fileExists(atPath: kept) {
            number += 1
            kept = directory + "/data.mdb.damaged-\(number)"
        }
        try giveOwner(of: directory + "/data.mdb", to: target + "/data.mdb")
        // A link first: at every moment there is a file of that name.
        guard link(directory + "/data.mdb", kept) == 0 else { throw StorageFailure(errno, "keeping the damaged file") }
        // It is of the damaged file's newest commit. A folder without it starts, too.
        guard unlink("\(directory)/\(CommitMark.fileName)") == 0 || errno == ENOENT else {
            throw StorageFailure(errno, "removing the note of the newest commit")
        }
        // No power cut leaves a note beside data of another storage.
        try DataFile.makeNamesDurable(in: directory)
        guard rename(target + "/data.mdb", directory + "/data.mdb") == 0 else {
            throw StorageFailure(errno, "exchanging the data file")
        }
        try DataFile.makeNamesDurable(in: directory)
        // The start after a repair that ends here finds no note, and says so.
        try giveOwner(of: directory + "/data.mdb", to: "\(target)/\(CommitMark.fileName)")
        guard rename("\(target)/\(CommitMark.fileName)", "\(directory)/\(CommitMark.fileName)") == 0 else {
            throw StorageFailure(errno, "putting the note of the newest commit in its place")
        }
        try DataFile.makeNamesDurable(in: directory)
        try? FileManager.default.removeItem(atPath: target)
        return kept
    }

    /// The service's user must be able to open what another user, such as root, has repaired.
    private static func giveOwner(of path: String, to other: String) throws(StorageFailure) {
        var status = stat()
        guard stat(path, &status) == 0, chmod(other, status.st_mode & 0o777) == 0,
            chown(other, status.st_uid, status.st_gid) == 0
        else { throw StorageFailure(errno, "giving the repaired file to the damaged one's owner") }
    }
}
