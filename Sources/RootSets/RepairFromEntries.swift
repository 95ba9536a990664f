import Core
import Foundation

/// A repair from the entries that are intact and the newest part of the change log: the log does not go back to the
/// first change, or is damaged.
///
/// The records of the layers above become as the log's part has left them: a record has the version of the change that
/// wrote it, so the later one of two is known. The identifiers of changes are those of the part. A bucket of root
/// hashes can't be made from a part of the log. The sums of the totals tell at the end whether everything is there.
enum RepairFromEntries {
    /// Changes in a commit.
    private static let changesPerCommit = 256

    /// Makes the storage in `target`. Returns what was done, a line each.
    static func write(_ source: RepairSource, to target: String) throws(StorageFailure) -> [String] {
        let used = try source.environment.usedBytes(source.reader.handle)
        guard mkdir(target, 0o700) == 0 else { throw StorageFailure(errno, "making \(target)") }
        let storage = try UnfinishedStorage(directory: target, mapBytes: max(1 << 30, 4 * used))
        try source.visitIntactEntries(of: [.meta, .records, .packed, .large]) {
            name, key, value throws(StorageFailure) in
            try storage.append(BackupEntry(database: name, key: Array(key), value: Array(value)))
        }
        var totals = source.totals
        (totals.firstSequence, totals.chainStart) = (source.log.first, source.log.chainStart)
        totals.logValueBytes = 0
        for name in [DatabaseName.log, .mutations] { totals.tallies[name] = DatabaseTally() }
        var next = source.log.first
        while next <= totals.sequence {
            try storage.write { transaction, databases throws(StorageFailure) in
                for _ in 0..<changesPerCommit where next <= totals.sequence {
                    try take(next, of: source, to: transaction, databases, &totals)
                    next += 1
                }
                for name in [DatabaseName.log, .mutations] { totals.tallies[name] += transaction.tallies[name] }
            }
        }
        try source.checkReading()
        try storage.finish(totals)
        return lines(source)
    }

    private static func lines(_ source: RepairSource) -> [String] {
        let (lost, first) = (source.totals.firstSequence, source.log.first)
        guard lost < first else { return ["restored everything from what is intact and from the change log"] }
        return [
            "restored everything but changes \(lost) to \(first - 1) of the change log, which begins at \(first) now",
            "a client that repeats one of these changes makes it again: end the repetitions before the service starts",
        ]
    }

    /// Copies one change of the log, and brings the records up to it.
    private static func take(
        _ sequence: UInt64, of source: RepairSource, to transaction: WriteTransaction, _ databases: Databases,
        _ totals: inout Totals
    ) throws(StorageFailure) {
        guard let record = try source.reader.value(source.environment.log, bigEndianBytes(sequence)) else {
            throw RepairSource.refusal("change \(sequence) of its log is missing")
        }
        let copied = try transaction.put(
            databases.log, bigEndianBytes(sequence), Array(record.contents), version: sequence, isAppended: true)
        guard copied == record.checksum else {
            throw RepairSource.refusal("change \(sequence) of its log has the version of another one")
        }
        totals.logValueBytes += LogRecord.logBytes(record)
        try transaction.put(
            databases.mutations, try LogRecord.identifier(in: record.contents),
            withUnsafeBytes(of: sequence.littleEndian) { Array($0) }, version: sequence)
        guard case .edit(let edit) = try LogRecord.decode(record.contents, sequence: sequence).mutation.change else {
            return
        }
        for range in edit.removedRanges {
            try transaction.deleteRecords(databases.records, range, before: sequence)
        }
        for record in edit.records where !record.isCheck {
            let key = record.key(in: sequence)
            let present = try transaction.get(databases.records, key)?.version
            guard present ?? 0 <= sequence else { continue }
            if let value = record.value {
                try transaction.put(databases.records, key, value, version: sequence)
            } else if present != nil {
                try transaction.delete(databases.records, key)
            }
        }
    }
}
