import Core
import Foundation

/// Applies changes of a later log to a storage that is being restored. The records of a log are a chain: each has the
/// checksum of the one before, so what is applied continues exactly what was restored, or is refused.
final class LogReplay {
    private struct Record {
        let sequence: UInt64
        let contents: [UInt8]
        let checksum: UInt64
    }

    private static let bytesPerCommit = 16 << 20

    private let environment: StorageEnvironment
    private let until: UInt64?
    private var pending: [Record] = []
    private var pendingBytes = 0
    /// The last change that was applied or waits to be, and the checksum of its record.
    private(set) var sequence: UInt64
    private var chainHead: UInt64
    /// When the newest of the backups was made whose log was applied (milliseconds since 1970); 0: there was none.
    private(set) var time: UInt64 = 0

    /// `until`: the last sequence that is applied; `nil`: all that there are.
    init(_ environment: StorageEnvironment, until: UInt64?) throws(StorageFailure) {
        self.environment = environment
        self.until = until
        let transaction = try WriteTransaction(environment.handle)
        guard try transaction.get(environment.meta, SharedPlace.key) == nil else {
            throw .unsuitable("the storage shares a log with others: it goes on from that log, not from another one")
        }
        let totals = try transaction.totals(in: environment.meta)
        (sequence, chainHead) = (totals.sequence, totals.chainHead)
    }

    var isDone: Bool { until.map { sequence >= $0 } ?? false }

    /// Applies what the log at `path` has behind the last change: a data directory, which may be in use, or a backup.
    func apply(logOf path: String) throws(ServiceError) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw ServiceError(.storageFailed, "\(path) can't be read: \(String(cString: strerror(errno)))")
        }
        if status.st_mode & S_IFMT == S_IFDIR {
            try apply(LiveStorage(path), path)
        } else {
            do throws(StorageFailure) {
                try apply(backup: path)
            } catch {
                throw ServiceError(error.asServiceError.code, "\(path): \(error.text)")
            }
        }
    }

    private func apply(_ live: LiveStorage, _ path: String) throws(ServiceError) {
        do throws(StorageFailure) {
            let cost = live.cost(of: .log)
            try cost.whileHeld { () throws(StorageFailure) in try apply(live, cost) }
        } catch {
            throw ServiceError(error.asServiceError.code, "\(path): \(error.text)")
        }
    }

    private func apply(_ live: LiveStorage, _ cost: SnapshotCost) throws(StorageFailure) {
        if let fault = try live.logFault(cost) { throw .refused("its change log can't be read: \(fault)") }
        let totals: Totals?
        do throws(StorageFailure) {
            totals = try live.transaction.totals()
        } catch {
            totals = nil
        }
        if until == nil {
            // The last changes may have been removals.
            guard let totals else { throw .refused("its totals are damaged: say how far to go with --until") }
            if let doubt = live.doubt {
                throw .refused("\(doubt): say with --until to go to change \(totals.sequence)")
            }
            if let missing = live.missing {
                throw .refused(
                    "its last commit (\(missing)) is missing: say with --until to go to change \(totals.sequence)")
            }
        }
        if let totals { try check(totals.firstSequence, last: totals.sequence, totals.chainHead) }
        while !isDone {
            if let totals, sequence >= totals.sequence { break }
            let next = sequence + 1
            let record: SealedValue?
            do throws(StorageFailure) {
                record = try live.transaction.value(live.environment.log, bigEndianBytes(next))
            } catch {
                throw .refused("change \(next) of its log is damaged: --until \(sequence) goes as far as possible")
            }
            guard let record else {
                throw .refused("change \(next) of its log is missing: --until \(sequence) goes as far as possible")
            }
            try append(next, Array(record.contents), record.checksum)
            try cost.check()
        }
        try applyPending()
        if let totals, !isDone, totals.chainHead != chainHead, sequence == totals.sequence {
            throw .refused("the end of its log is not what its totals tell")
        }
        if let fault = live.environment.trust.fault { throw fault }
    }

    private func apply(backup path: String) throws(StorageFailure) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw StorageFailure(errno, "opening it") }
        defer { close(descriptor) }
        let reader = try BackupReader(descriptor)
        let header = reader.header
        time = max(time, header.time)
        try check(header.firstSequence, last: header.sequence, header.chainHead)
        while let entry = try reader.next() {
            guard entry.database == .log, entry.key.count == 8 else { continue }
            let sequence = entry.key.reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
            guard sequence > self.sequence, !isDone else { continue }
            let (contents, checksum) = try entry.value.withRawBytes { bytes throws(StorageFailure) in
                guard let sealed = SealedValue(bytes) else { throw .damaged("a value is shorter than a seal") }
                return (Array(sealed.contents), sealed.checksum)
            }
            try append(sequence, contents, checksum)
        }
        try applyPending()
    }

    /// Checks whether a log can have what follows.
    private func check(_ first: UInt64, last: UInt64, _ head: UInt64) throws(StorageFailure) {
        guard last >= sequence else {
            throw .unsuitable("its log ends with change \(last), before the last one that was restored (\(sequence))")
        }
        guard last > sequence || head == chainHead else {
            throw .unsuitable("its last change is not the one that was restored: it is of another storage")
        }
        guard last > sequence, first > sequence + 1 else { return }
        throw .unsuitable(
            "its log begins at change \(first), so changes \(sequence + 1) to \(first - 1) are missing: give a backup "
                + "before it that has them")
    }

    private func append(_ next: UInt64, _ contents: [UInt8], _ checksum: UInt64) throws(StorageFailure) {
        let previous = try contents.withRawBytes { bytes throws(StorageFailure) in try LogRecord.previous(in: bytes) }
        guard next == sequence + 1, previous == chainHead else {
            throw .unsuitable("change \(next) of its log does not follow what was restored: it is of another storage")
        }
        (sequence, chainHead) = (next, checksum)
        pending.append(Record(sequence: next, contents: contents, checksum: checksum))
        pendingBytes += contents.count
        if pending.count >= Limits.restoredChangesPerCommit || pendingBytes >= LogReplay.bytesPerCommit {
            try applyPending()
        }
    }

    private func applyPending() throws(StorageFailure) {
        var rest = pending[...]
        while !rest.isEmpty { try commitSome(of: &rest) }
        pending.removeAll(keepingCapacity: true)
        pendingBytes = 0
    }

    /// Applies changes in one commit, up to one whose identifier is in the restored log already: the storage had
    /// forgotten the first change with it before. Then that part of the log is removed in a commit of its own.
    private func commitSome(of rest: inout ArraySlice<Record>) throws(StorageFailure) {
        let transaction = try WriteTransaction(environment.handle)
        let first = try transaction.totals(in: environment.meta).firstSequence
        var applier = try Applier(transaction, environment)
        var last: UInt64?
        var forgotten = 0
        while let record = rest.first {
            if let earlier = try place(of: record, transaction) {
                guard last == nil else { break }
                guard earlier >= first, earlier < record.sequence else {
                    throw .damaged("an identifier leads to no change of the log")
                }
                forgotten = Int(earlier - first) + 1
                break
            }
            let mutation = try record.contents.withRawBytes { bytes throws(StorageFailure) in
                try LogRecord.decode(bytes, sequence: record.sequence).mutation
            }
            guard case .success(let receipt) = try applier.apply(mutation, lack: nil),
                receipt.sequence == record.sequence, !receipt.isRepeat
            else { throw .refused("change \(record.sequence) of its log can't be applied to what was restored") }
            last = record.checksum
            rest.removeFirst()
        }
        try applier.finish(trimmingLogTo: forgotten > 0 ? 0 : .max, count: forgotten)
        let totals = try transaction.totals(in: environment.meta)
        guard last == nil || totals.chainHead == last, last != nil || totals.firstSequence > first else {
            throw .refused("the changes of its log don't lead to what it tells")
        }
        try transaction.commit()
    }

    /// The sequence of the change in the restored log that has the record's identifier; `nil` when there is none.
    private func place(of record: Record, _ transaction: WriteTransaction) throws(StorageFailure) -> UInt64? {
        let identifier = try record.contents.withRawBytes { bytes throws(StorageFailure) in
            try LogRecord.identifier(in: bytes)
        }
        guard let value = try transaction.get(environment.mutations, identifier)?.contents else { return nil }
        guard value.count == 8 else { throw .damaged("the record of a mutation is damaged") }
        return UInt64(littleEndian: value.loadUnaligned(as: UInt64.self))
    }
}
