package import Core
import Foundation

/// Checks a data directory. A service may have it open in another process.
package enum StorageInspection {
    /// Everything in the storage that is not what was written, `Limits.storageFindingsMax` findings at most. Changes
    /// nothing that is stored, but does what a start does: writes a damaged meta page anew if it can, and lengthens a
    /// file that lacks free pages at its end. While another process has the directory open, its newest commit is
    /// checked, and nothing is changed. Must not be called in a process that has it open itself.
    ///
    /// Throws `storageFailed` when there is no storage, or when it has format 1, which has no checksums, and `busy`
    /// when the check would take the service's room.
    package static func findings(in directory: String) throws(ServiceError) -> [StorageFinding] {
        try StorageRestore.checkFinished(directory)
        let environment: StorageEnvironment
        do throws(ServiceError) {
            environment = try open(directory)
        } catch {
            switch error.code {
            case .storageInUse: return try findings(beside: directory)
            case .storageDamaged:
                let isAccepted = (try? CommitMark.contents(in: directory)) == .acceptance
                return [isAccepted ? unchecked(error.reason) : unreadable(error.reason)]
            default: throw error
            }
        }
        do throws(StorageFailure) {
            let loss = environment.possibleLoss.map { [lost($0)] } ?? []
            let mended = environment.restoration.map { [restored($0)] } ?? []
            return loss + mended + (try findings(in: environment))
        } catch {
            throw error.asServiceError
        }
    }

    private static func unchecked(_ reason: String) -> StorageFinding {
        StorageFinding(
            kind: .reading, distrusted: DatabaseName.allCases, what: "the storage (\(reason))",
            meaning: "nothing was checked")
    }

    private static func lost(_ reason: String) -> StorageFinding {
        StorageFinding(
            kind: .reading, distrusted: [], what: reason,
            meaning: "the last changes before the end of the service may be missing; its next start says so, too")
    }

    private static func restored(_ what: String) -> StorageFinding {
        StorageFinding(
            kind: .reading, distrusted: [], what: what, meaning: "it is whole again, and what it leads to is checked")
    }

    private static func unreadable(_ reason: String) -> StorageFinding {
        StorageFinding(
            kind: .reading, distrusted: DatabaseName.allCases, what: "the storage (\(reason))",
            meaning: "a service does not start, or refuses what it needs of it; nothing else was checked")
    }

    private static func unreadableBeside(_ reason: String) -> StorageFinding {
        StorageFinding(
            kind: .reading, distrusted: DatabaseName.allCases, what: "the storage (\(reason))",
            meaning: "nothing else was checked; the service refuses what it needs of it, and its log tells what it met")
    }

    /// The same for the newest commit of a storage that another process has open. When the snapshot that is checked
    /// would take the room of that process, the check is given up.
    private static func findings(beside directory: String) throws(ServiceError) -> [StorageFinding] {
        let live: LiveStorage
        do throws(ServiceError) {
            live = try LiveStorage(directory)
        } catch {
            guard error.code == .storageDamaged else { throw error }
            return [unreadableBeside(error.reason)]
        }
        do throws(StorageFailure) {
            if let doubt = live.doubt { return [unchecked(doubt)] }
            let cost = live.cost(of: .check)
            if let fault = try live.fault(cost) { return [unreadableBeside(fault)] }
            let found = try cost.whileHeld { () throws(StorageFailure) in
                try findings(in: live.environment, live.transaction, cost)
            }
            if let fault = live.environment.cut { throw fault }
            return found
        } catch {
            throw error.asServiceError
        }
    }

    /// `transaction`: a snapshot that is in use; `nil` takes the newest one. `cost`: what it costs to read that; `nil`:
    /// nothing, as nobody writes.
    static func findings(
        in environment: StorageEnvironment, _ transaction: ReadTransaction? = nil, _ cost: SnapshotCost? = nil
    ) throws(StorageFailure) -> [StorageFinding] {
        var findings: [StorageFinding] = []
        var walk = try StorageWalk(
            environment, in: transaction, isInterrupted: { cost?.isTooMuch ?? false }, report: { findings.append($0) })
        let isDone = try walk.run()
        if let fault = environment.trust.fault { throw fault }
        if !isDone { try cost?.check() }
        return findings
    }

    /// `deferring`: the databases the structure of whose trees is not checked.
    static func open(
        _ directory: String, deferring: [DatabaseName] = []
    ) throws(ServiceError) -> StorageEnvironment {
        try DataFile.checkExistence(in: directory)
        return try StorageEnvironment(
            directory: directory, bytesMax: RootSets.Configuration(directory: directory).sizeLimitBytes,
            reserveBytes: 0, isInspected: true, deferring: deferring)
    }
}
