package import Core
import Foundation

/// Checks a data directory that no service has open.
package enum StorageInspection {
    /// Everything in the storage that is not what was written, `Limits.storageFindingsMax` findings at most. Changes
    /// nothing that is stored.
    ///
    /// Throws `storageInUse` while a service has the directory, `storageFailed` when there is no storage, or when it
    /// has format 1, which has no checksums.
    package static func findings(in directory: String) throws(ServiceError) -> [StorageFinding] {
        let environment: StorageEnvironment
        do throws(ServiceError) {
            environment = try open(directory)
        } catch {
            guard error.code == .storageDamaged else { throw error }
            return [
                StorageFinding(
                    kind: .reading, distrusted: DatabaseName.allCases, what: "the storage (\(error.reason))",
                    meaning: "no service can open it")
            ]
        }
        do throws(StorageFailure) {
            return try findings(in: environment)
        } catch {
            throw error.asServiceError
        }
    }

    static func findings(in environment: StorageEnvironment) throws(StorageFailure) -> [StorageFinding] {
        var findings: [StorageFinding] = []
        var walk = try StorageWalk(environment, isInterrupted: { false }, report: { findings.append($0) })
        _ = try walk.run()
        if let fault = environment.trust.fault { throw fault }
        return findings
    }

    static func open(_ directory: String) throws(ServiceError) -> StorageEnvironment {
        guard FileManager.default.fileExists(atPath: directory + "/data.mdb") else {
            throw ServiceError(.storageFailed, "there is no storage in \(directory)")
        }
        return try StorageEnvironment(
            directory: directory, bytesMax: RootSets.Configuration(directory: directory).sizeLimitBytes,
            reserveBytes: 0, upgrades: false)
    }
}
