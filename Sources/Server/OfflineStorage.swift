package import Core
import RootSets

/// The storage of a data directory that no service has open.
package enum OfflineStorage {
    /// Something that is not what was written.
    package struct Finding: Sendable {
        package let kind: String
        /// What is damaged, with its key.
        package let what: String
        /// What it means, and for whom.
        package let meaning: String
    }

    /// Checks everything that is stored.
    ///
    /// Throws `storageInUse` while a service has the directory, and `storageFailed` when there is no storage or when it
    /// has a format without checksums.
    package static func findings(in directory: String) throws(ServiceError) -> [Finding] {
        try StorageInspection.findings(in: directory).map { finding in
            Finding(kind: finding.kind.rawValue, what: finding.what, meaning: finding.meaning)
        }
    }

    /// Restores everything from the change log. Returns what was done, a line each.
    ///
    /// Throws what `findings` throws, and `storageDamaged` when the storage can't be repaired.
    package static func repair(_ directory: String) throws(ServiceError) -> [String] {
        try StorageRepair.repair(directory)
    }
}
