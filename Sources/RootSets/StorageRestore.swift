package import Core
import Foundation
import Platform

/// Makes a data directory of a backup. Everything is built and checked in a folder beside it, which gets the
/// directory's name at the end. So there is a whole directory or none.
package enum StorageRestore {
    /// What was restored.
    package struct Summary: Sendable {
        /// What the backup said of itself.
        package let header: BackupHeader
        /// The sequence of the last change that is there. It is above that of the backup when a log was applied.
        package let sequence: UInt64
        package let collaborations: UInt64
        package let roots: UInt64
        /// The SHA-256 at the end of the backup.
        package let digest: Digest
        /// When the backup was made, or the newest one whose log was applied (milliseconds since 1970).
        package let time: UInt64
    }

    /// What to restore, and how far.
    package struct Plan: Sendable {
        /// The backup, open for reading.
        package let backup: CInt
        /// The new directory.
        package let directory: String
        /// Data directories and backups with later logs, in their order.
        package let logs: [String]
        /// The sequence of the last change; `nil`: all that there are.
        package let until: UInt64?

        package init(backup: CInt, directory: String, logs: [String] = [], until: UInt64? = nil) {
            (self.backup, self.logs, self.until) = (backup, logs, until)
            var path = directory
            while path.count > 1, path.hasSuffix("/") { path.removeLast() }
            self.directory = path
        }
    }

    /// A file that is in the folder until the folder holds what it should.
    private static let unfinishedMark = "restore-unfinished"

    /// Throws when a restore to this directory was ended before it was done.
    static func checkFinished(_ directory: String) throws(ServiceError) {
        var status = stat()
        guard lstat(directory + "/" + unfinishedMark, &status) == 0 else { return }
        throw ServiceError(
            .storageFailed,
            "a restore to \(directory) was ended before it was done: restore to another directory")
    }

    /// The least size of LMDB's map while data are restored.
    private static let mapBytesMin = 1 << 30

    /// Checks a backup without restoring it.
    package static func check(_ backup: CInt) throws(ServiceError) -> (header: BackupHeader, digest: Digest) {
        do throws(StorageFailure) {
            let reader = try BackupReader(backup)
            try reader.checkRest()
            guard let digest = reader.digest else { throw .refused("the backup has no end") }
            return (reader.header, digest)
        } catch {
            throw error.asServiceError
        }
    }

    /// Restores a backup. `progress` gets the bytes that were read, and about how many there are. `finish` may add
    /// files to the folder before it becomes the directory.
    ///
    /// Throws `storageFailed` when the directory exists and is not empty or can't be made, `storageFull` when the disk
    /// is full, `storageDamaged` when the backup or a log is not what was written or does not go so far. Then there is
    /// no directory.
    package static func restore(
        _ plan: Plan, progress: (_ bytes: UInt64, _ all: UInt64) -> Void = { _, _ in },
        finish: (_ folder: String, Summary) throws(ServiceError) -> Void = { _, _ in }
    ) throws(ServiceError) -> Summary {
        try checkTarget(plan.directory)
        let reader: BackupReader
        do throws(StorageFailure) {
            reader = try BackupReader(plan.backup)
            try checkReach(plan, reader.header)
        } catch {
            throw error.asServiceError
        }
        var name = Array((plan.directory + ".restoring-XXXXXX").utf8CString)
        guard mkdtemp(&name) != nil else { throw failure("making a folder beside \(plan.directory)") }
        let folder = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        do throws(ServiceError) {
            try mark(folder)
            let summary = try fill(folder, plan, reader, progress)
            try finish(folder, summary)
            try publish(folder, as: plan.directory)
            return summary
        } catch {
            try? FileManager.default.removeItem(atPath: folder)
            throw error
        }
    }

    private static func mark(_ folder: String) throws(ServiceError) {
        let path = folder + "/" + unfinishedMark
        do throws(SystemFailure) {
            close(try System.create(path, Data()))
            try System.synchronizeFolder(of: path)
        } catch {
            throw ServiceError(
                error.number == ENOSPC ? .storageFull : .storageFailed, detail: UInt32(bitPattern: error.number),
                "making \(path): \(error.reason)")
        }
    }

    private static func failure(_ action: String) -> ServiceError {
        let failure = SystemFailure(action)
        return ServiceError(
            failure.number == ENOSPC ? .storageFull : .storageFailed, detail: UInt32(bitPattern: failure.number),
            "\(action): \(failure.reason)")
    }

    private static func checkTarget(_ directory: String) throws(ServiceError) {
        guard !directory.isEmpty, directory != "/" else {
            throw ServiceError(.storageFailed, "a directory to restore to is needed")
        }
        var status = stat()
        guard lstat(directory, &status) == 0 else {
            guard errno == ENOENT else { throw failure("looking at \(directory)") }
            return
        }
        // The finished folder gets the directory's name, which these can't give away.
        var above = stat()
        let isMount = stat(System.folder(of: directory), &above) == 0 && above.st_dev != status.st_dev
        guard status.st_mode & S_IFMT != S_IFLNK, !isMount, ![".", ".."].contains(System.name(of: directory)) else {
            throw ServiceError(
                .storageFailed, "\(directory) is a mount point, a link or a path of dots: name a folder below it")
        }
        let entries = try? FileManager.default.contentsOfDirectory(atPath: directory)
        guard status.st_mode & S_IFMT == S_IFDIR, entries?.isEmpty == true else {
            throw ServiceError(
                .storageFailed,
                "\(directory) exists and is no empty directory: nothing is overwritten, restore to "
                    + "another one")
        }
    }

    /// Throws unless the change to which the plan goes can be reached.
    private static func checkReach(_ plan: Plan, _ header: BackupHeader) throws(StorageFailure) {
        guard let until = plan.until else { return }
        guard until >= header.sequence else {
            throw .unsuitable(
                "the backup has changes up to \(header.sequence), and none can be taken back: for change \(until), "
                    + "restore an earlier backup with a log")
        }
        guard until == header.sequence || !plan.logs.isEmpty else {
            throw .unsuitable(
                "the backup has changes up to \(header.sequence): a log with change \(until) is needed (--log)")
        }
    }

    private static func fill(
        _ folder: String, _ plan: Plan, _ reader: BackupReader, _ progress: (UInt64, UInt64) -> Void
    ) throws(ServiceError) -> Summary {
        let header = reader.header
        let mapBytes = max(mapBytesMin, 4 * Int(header.usedBytes))
        do throws(StorageFailure) {
            let storage = try UnfinishedStorage(directory: folder, mapBytes: mapBytes)
            var entries = 0
            while let entry = try reader.next() {
                try storage.append(entry)
                entries += 1
                if entries % 1024 == 0 { progress(reader.byteCount, header.usedBytes) }
            }
            try storage.finish(header)
        } catch {
            throw error.asServiceError
        }
        guard let digest = reader.digest else { throw ServiceError(.internalFault, "a backup has no end") }
        let later = plan.logs.isEmpty ? 0 : try replay(plan, in: folder, header, mapBytes)
        return try check(folder, header, digest, time: max(header.time, later))
    }

    /// Returns when the newest of the backups among the logs was made; 0: there is none.
    private static func replay(
        _ plan: Plan, in folder: String, _ header: BackupHeader, _ mapBytes: Int
    ) throws(ServiceError) -> UInt64 {
        let environment = try StorageEnvironment(
            directory: folder, bytesMax: max(mapBytes, RootSets.Configuration(directory: folder).sizeLimitBytes),
            reserveBytes: 0)
        let replay: LogReplay
        do throws(StorageFailure) {
            replay = try LogReplay(environment, until: plan.until)
        } catch {
            throw error.asServiceError
        }
        for log in plan.logs where !replay.isDone { try replay.apply(logOf: log) }
        if let until = plan.until, replay.sequence != until {
            throw ServiceError(
                .storageFailed,
                "the logs end with change \(replay.sequence), and \(until) is not there: give a later log, too "
                    + "(--log), or an earlier --until")
        }
        return replay.time
    }

    /// Checks all of the restored storage as `rootgate fsck` does.
    private static func check(
        _ folder: String, _ header: BackupHeader, _ digest: Digest, time: UInt64
    ) throws(ServiceError) -> Summary {
        let environment = try StorageInspection.open(folder)
        do throws(StorageFailure) {
            if let finding = try StorageInspection.findings(in: environment).first {
                throw .refused("what was restored contradicts itself: \(finding.what): \(finding.meaning)")
            }
            let transaction = try ReadTransaction(environment)
            try transaction.renew()
            defer { transaction.reset() }
            let totals = try transaction.totals()
            return Summary(
                header: header, sequence: totals.sequence, collaborations: totals.collaborations, roots: totals.roots,
                digest: digest, time: time)
        } catch {
            throw error.asServiceError
        }
    }

    /// Makes the folder durable, and gives it the directory's name. Fails if there is such a directory by now that is
    /// not empty.
    private static func publish(_ folder: String, as directory: String) throws(ServiceError) {
        // LMDB makes it anew.
        unlink(folder + "/lock.mdb")
        guard unlink(folder + "/" + unfinishedMark) == 0 else { throw failure("removing the mark of \(folder)") }
        do throws(SystemFailure) {
            try System.synchronizeFolder(of: folder + "/data.mdb")
        } catch {
            throw ServiceError(.storageFailed, "making \(folder) durable: \(error.reason)")
        }
        guard rename(folder, directory) == 0 else { throw failure("naming \(folder) \(directory)") }
        do throws(SystemFailure) {
            try System.synchronizeFolder(of: directory)
        } catch {
            throw ServiceError(
                .storageFailed, "\(directory) is there, but its name may be lost in a power cut: \(error.reason)")
        }
    }
}
