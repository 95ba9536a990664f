import Core

/// A repair from a change log that has every change: the log is applied to an empty storage. So everything is restored
/// exactly, whatever else is damaged.
enum RepairFromLog {
    /// Changes in a commit.
    private static let changesPerCommit = 256

    /// Makes the storage in `target`. Returns what was done, a line each.
    static func write(_ source: RepairSource, to target: String) throws(StorageFailure) -> [String] {
        // Lists of collaborations keep their order.
        guard let hashKey = try source.reader.value(source.environment.meta, StorageFormat.hashKey)?.contents else {
            throw RepairSource.refusal("the key for hashing names is missing")
        }
        let bytes = Array(hashKey)
        let environment = try StorageRepair.open(
            target, random: RandomSource { $0.copyBytes(from: bytes.prefix($0.count)) })
        let last = source.totals.sequence
        var next: UInt64 = 1
        while next <= last {
            let transaction = try WriteTransaction(environment.handle)
            var applier = try Applier(transaction, environment)
            for _ in 0..<changesPerCommit where next <= last {
                try apply(next, of: source, to: &applier)
                next += 1
            }
            try applier.finish(trimmingLogTo: .max, count: 0)
            try transaction.commit()
        }
        try source.checkReading()
        let written = try ReadTransaction(environment)
        try written.renew()
        defer { written.reset() }
        let (made, expected) = (try written.totals(), source.totals)
        let hasSameCounts = [DatabaseName.records, .log, .mutations, .meta].allSatisfy {
            made.tallies[$0].count == expected.tallies[$0].count
        }
        guard made.chainHead == expected.chainHead, made.collaborations == expected.collaborations,
            made.roots == expected.roots, hasSameCounts
        else { throw RepairSource.refusal("the changes of its log don't lead to what its totals tell") }
        return ["restored everything by applying the change log again: \(last) changes"]
    }

    /// Applies one change of the damaged storage's log.
    private static func apply(
        _ sequence: UInt64, of source: RepairSource, to applier: inout Applier
    ) throws(StorageFailure) {
        guard let record = try source.reader.value(source.environment.log, bigEndianBytes(sequence)) else {
            throw RepairSource.refusal("change \(sequence) of its log is missing")
        }
        let mutation = try LogRecord.decode(record.contents, sequence: sequence).mutation
        guard case .success(let receipt) = try applier.apply(mutation, lack: nil), receipt.sequence == sequence else {
            throw RepairSource.refusal("change \(sequence) of its log can't be applied again")
        }
    }
}
