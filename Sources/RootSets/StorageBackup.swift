package import Core
import Foundation

/// Writes everything that is stored as of one moment, while a service may go on. Everything is checked as it is read: a
/// damaged storage makes no backup.
package enum StorageBackup {
    /// What was written.
    package struct Summary: Sendable {
        package let header: BackupHeader
        package let collaborations: UInt64
        package let roots: UInt64
        package let entries: UInt64
        package let bytes: UInt64
        /// The SHA-256 at the end of the backup.
        package let digest: Digest
    }

    /// Writes the backup of a data directory to an open file or pipe. Must not be called in a process that has the
    /// directory open.
    ///
    /// `time`: now, in milliseconds since 1970. `rate`: bytes a second; `nil`: as fast as it goes. `progress` gets the
    /// part that is done, from 0 to 1. Throws `storageFailed` when there is no storage or when the backup can't be
    /// written, `storageDamaged` when the storage is damaged, and `busy` when the backup would take its room.
    package static func write(
        _ directory: String, to descriptor: CInt, time: UInt64, rate: Int?, progress: @escaping (Double) -> Void
    ) throws(ServiceError) -> Summary {
        let live = try LiveStorage(directory)
        let cost = live.cost(of: .backup)
        do throws(StorageFailure) {
            if let fault = try live.fault(cost) { throw .refused("\(fault): a damaged storage makes no backup") }
            let summary = try write(
                live.environment, live.transaction, cost, to: descriptor, time: time, rate: rate, progress: progress)
            if let fault = live.environment.cut { throw fault }
            return summary
        } catch {
            throw error.asServiceError
        }
    }

    /// Writes the snapshot of `transaction`, which is in use. `cost`: what it costs to read that, if that is known
    /// already.
    static func write(
        _ environment: StorageEnvironment, _ transaction: ReadTransaction, _ cost: SnapshotCost? = nil,
        to descriptor: CInt, time: UInt64, rate: Int? = nil, progress: @escaping (Double) -> Void = { _ in }
    ) throws(StorageFailure) -> Summary {
        let guarded = StorageGuard()
        let cost = cost ?? SnapshotCost(of: .backup, environment, transaction)
        let output = BackupOutput(descriptor, rate: rate, cost)
        // Without its end a backup is refused.
        let (totals, header, entries) = try cost.whileHeld { () throws(StorageFailure) in
            let totals = try transaction.totals()
            let used = try environment.usedBytes(transaction.handle)
            let header = BackupHeader(time: time, totals, usedBytes: used)
            try output.append(header.bytes)
            let entries = try writeEntries(environment, transaction, to: output) {
                progress(min(1, Double(output.byteCount) / Double(max(1, used))))
            }
            if let fault = guarded.fault ?? environment.fault { throw fault }
            return (totals, header, entries)
        }
        var end: [UInt8] = [BackupHeader.end] + [UInt8](repeating: 0, count: 7)
        end.appendInteger(entries)
        end.appendInteger(output.byteCount)
        try output.append(end)
        let digest = try output.finish()
        return Summary(
            header: header, collaborations: totals.collaborations, roots: totals.roots, entries: entries,
            bytes: output.byteCount, digest: digest)
    }

    /// Writes all entries. Returns how many there are.
    private static func writeEntries(
        _ environment: StorageEnvironment, _ transaction: ReadTransaction, to output: BackupOutput,
        progress: @escaping () -> Void
    ) throws(StorageFailure) -> UInt64 {
        var finding: StorageFinding?
        var entries: UInt64 = 0
        var walk = try StorageWalk(
            environment, in: transaction, isInterrupted: { finding != nil }, report: { finding = finding ?? $0 },
            visit: { name, key, value throws(StorageFailure) in
                guard finding == nil else { return }
                guard value.count <= Limits.backupValueBytesMax else {
                    throw .refused("a value of \(value.count) bytes is too long for a backup")
                }
                var head: [UInt8] = [UInt8(name.rawValue), 0]
                head.appendInteger(UInt16(key.count))
                head.appendInteger(UInt32(value.count))
                try output.append(head)
                try output.append(key)
                try output.append(value)
                entries += 1
                if entries % 4096 == 0 { progress() }
            })
        let isDone = try walk.run()
        if let finding { throw .refused("\(finding.what) is damaged: a damaged storage makes no backup") }
        guard isDone else { throw .refused("the backup was interrupted") }
        return entries
    }
}
