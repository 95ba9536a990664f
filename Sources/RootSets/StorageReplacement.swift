package import Core
import Foundation
import Platform

/// Puts a backup in the place of the storage in a data directory. Other files of the directory stay.
package enum StorageReplacement {
    private static let folder = "replacing"

    /// Restores a backup and checks it as a restore does. Only then it takes the place of the storage. Until then, and
    /// after a failure, the directory has the storage that it had. No service may have the directory.
    ///
    /// `backup`: open for reading. `accept` gets where the restored storage is in the shared log, and throws when it
    /// must not take the place. Throws what a restore throws, what `accept` throws, and `storageInUse`.
    package static func replace(
        in directory: String, by backup: CInt, accept: (SharedPlace?) throws(ServiceError) -> Void
    ) throws(ServiceError) -> StorageRestore.Summary {
        let lock = try DirectoryLock(directory: directory)
        return try withExtendedLifetime(lock) { () throws(ServiceError) in
            removeLeftovers(in: directory)
            let fresh = directory + "/" + folder
            let summary = try StorageRestore.restore(StorageRestore.Plan(backup: backup, directory: fresh))
            do throws(ServiceError) {
                try accept(try RootSets.sharedPlace(in: fresh))
            } catch {
                removeLeftovers(in: directory)
                throw error
            }
            // The note belongs to the old data file. Without one, a storage is taken as it is.
            for name in [CommitMark.fileName, "lock.mdb"] {
                let path = directory + "/" + name
                guard unlink(path) == 0 || errno == ENOENT else { throw failure("removing \(path)") }
            }
            // No power cut leaves a note beside data of another storage.
            try makeNamesDurable(in: directory)
            for name in ["/" + DataFile.fileName, "/" + CommitMark.fileName] {
                guard rename(fresh + name, directory + name) == 0 else { throw failure("moving \(fresh + name)") }
                try makeNamesDurable(in: directory)
            }
            removeLeftovers(in: directory)
            return summary
        }
    }

    private static func makeNamesDurable(in directory: String) throws(ServiceError) {
        do throws(StorageFailure) {
            try DataFile.makeNamesDurable(in: directory)
        } catch {
            throw error.asServiceError
        }
    }

    /// Removes what a replacement has left that was ended before it was done.
    private static func removeLeftovers(in directory: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        for name in names where name == folder || name.hasPrefix(folder + ".") {
            try? FileManager.default.removeItem(atPath: directory + "/" + name)
        }
    }

    private static func failure(_ action: String) -> ServiceError {
        let failure = SystemFailure(action)
        return ServiceError(.storageFailed, detail: UInt32(bitPattern: failure.number), "\(action): \(failure.reason)")
    }
}
