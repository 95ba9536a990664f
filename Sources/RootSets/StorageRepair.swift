package import Core
import Foundation
import Platform

/// Writes the storage of a data directory anew from what is intact in it. The damaged file stays beside the new one.
///
/// With a change log that goes back to the first change, everything is made again from the log, whatever else is
/// damaged (`RepairFromLog`): the log's chain leads to its end as the totals tell it. Otherwise the intact entries are
/// kept, and what the log has is taken from it (`RepairFromEntries`): the number of entries of each database and the
/// sum of their checksums are those of the totals. So everything is exactly what was written last, or nothing is
/// repaired: an old entry could let in somebody who was removed.
package enum StorageRepair {
    /// Repairs the storage. Returns what was done, a line each.
    ///
    /// Throws `storageInUse` while a service has the directory, `storageDamaged` when the storage can't be repaired, or
    /// what the storage throws. Then the directory is as it was.
    package static func repair(_ directory: String) throws(ServiceError) -> [String] {
        try StorageRestore.checkFinished(directory)
        let environment: StorageEnvironment
        switch try look(directory) {
        case .intact(let lines): return lines
        case .damaged(let found): environment = found
        }
        let target = directory + "/repaired"
        try? FileManager.default.removeItem(atPath: target)
        do throws(StorageFailure) {
            let source = try RepairSource(environment, directory)
            let done = try write(source, to: target)
            let isCertain = environment.possibleLoss == nil
            let kept = "the damaged file is kept as \(try exchange(directory, target, isNoted: isCertain))"
            return done + [environment.restoration, environment.possibleLoss].compactMap { $0 } + [kept]
        } catch {
            try? FileManager.default.removeItem(atPath: target)
            throw error.asServiceError
        }
    }

    /// Makes the storage anew in `target`, and checks all of it.
    private static func write(_ source: RepairSource, to target: String) throws(StorageFailure) -> [String] {
        if source.log.first == 1 {
            do throws(StorageFailure) {
                let done = try RepairFromLog.write(source, to: target)
                try check(target)
                return done
            } catch {
                guard error.isDamage else { throw error }
                // What is intact may be enough.
                try? FileManager.default.removeItem(atPath: target)
            }
        }
        let done = try RepairFromEntries.write(source, to: target)
        try check(target)
        return done
    }

    private static func check(_ target: String) throws(StorageFailure) {
        guard let finding = try StorageInspection.findings(in: try open(target)).first else { return }
        throw RepairSource.refusal("\(finding.what): \(finding.meaning)")
    }

    private enum Look {
        /// Nothing is damaged, as these lines say.
        case intact([String])
        case damaged(StorageEnvironment)
    }

    /// Opens the storage, also when trees of it have a damaged structure, and looks whether anything is damaged.
    private static func look(_ directory: String) throws(ServiceError) -> Look {
        let environment: StorageEnvironment
        do throws(ServiceError) {
            environment = try StorageInspection.open(directory)
        } catch {
            guard error.code == .storageDamaged else { throw error }
            let trees = DatabaseName.allCases.filter { $0 != .meta }
            guard let environment = try? StorageInspection.open(directory, deferring: trees) else { throw error }
            return .damaged(environment)
        }
        do throws(StorageFailure) {
            guard try StorageInspection.findings(in: environment).isEmpty else { return .damaged(environment) }
            let lines = [environment.restoration, environment.possibleLoss].compactMap { $0 }
            return .intact(lines.isEmpty ? ["nothing is damaged"] : ["no entry is damaged"] + lines)
        } catch {
            throw error.asServiceError
        }
    }

    /// Opens what a repair has made, or makes it. `random`: gives a new storage its key for hashing names.
    static func open(
        _ directory: String, random: RandomSource = .system
    ) throws(StorageFailure) -> StorageEnvironment {
        var surroundings = StorageSurroundings()
        surroundings.random = random
        do throws(ServiceError) {
            return try StorageEnvironment(
                directory: directory, bytesMax: RootSets.Configuration(directory: directory).sizeLimitBytes,
                reserveBytes: 0, surroundings)
        } catch {
            throw .damaged("opening the repaired storage: \(error.reason)")
        }
    }

    /// Puts the new file into the place of the damaged one. Returns the path of the damaged one.
    ///
    /// `isNoted`: false leaves the folder without a note of the newest commit, so that the next start says that the
    /// last changes may be missing.
    private static func exchange(
        _ directory: String, _ target: String, isNoted: Bool
    ) throws(StorageFailure) -> String {
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
        let (note, former) = ("\(directory)/\(CommitMark.fileName)", target + "/former-note")
        do throws(StorageFailure) {
            guard rename(note, former) == 0 || errno == ENOENT else {
                throw StorageFailure(errno, "removing the note of the newest commit")
            }
            // No power cut leaves a note beside data of another storage.
            try DataFile.makeNamesDurable(in: directory)
            guard rename(target + "/data.mdb", directory + "/data.mdb") == 0 else {
                throw StorageFailure(errno, "exchanging the data file")
            }
        } catch {
            // The directory gets back what it had.
            rename(former, note)
            unlink(kept)
            throw error
        }
        try DataFile.makeNamesDurable(in: directory)
        // The start after a repair that ends here finds no note, and says so.
        if isNoted {
            try giveOwner(of: directory + "/data.mdb", to: "\(target)/\(CommitMark.fileName)")
            guard rename("\(target)/\(CommitMark.fileName)", note) == 0 else {
                throw StorageFailure(errno, "putting the note of the newest commit in its place")
            }
            try DataFile.makeNamesDurable(in: directory)
        }
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
