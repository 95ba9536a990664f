import Core
import Foundation

/// A damaged storage, and what of it a repair may believe.
struct RepairSource {
    let environment: StorageEnvironment
    let reader: ReadTransaction
    /// The totals of the newest commit, which are intact. What a repair makes must agree with them.
    let totals: Totals
    /// The newest part of the change log that is whole.
    let log: LogPart

    /// The newest part of a change log whose records are intact and follow one another up to the last change.
    struct LogPart {
        /// The first sequence of the part; one above the last when the part is empty.
        let first: UInt64
        /// The checksum of the record before the part.
        let chainStart: UInt64
    }

    private let directory: String
    /// Of the newest commit.
    private let page: MetaPage

    /// Throws when the storage can't be repaired, whatever else is intact.
    init(_ environment: StorageEnvironment, _ directory: String) throws(StorageFailure) {
        self.environment = environment
        self.directory = directory
        reader = try ReadTransaction(environment)
        page = try environment.renew(reader)
        do throws(StorageFailure) {
            totals = try reader.totals()
        } catch {
            throw error.isDamage ? RepairSource.refusal("its totals are damaged") : error
        }
        guard try reader.sharedPlace() == nil else {
            throw RepairSource.refusal(
                "it shares a log with others, and would come to differ from them",
                remedy: "restore a backup of another one")
        }
        let isReadable = try RepairSource.fault(.log, directory, page) == nil
        log =
            try isReadable
            ? RepairSource.wholePart(of: totals, reader)
            : LogPart(first: totals.sequence + 1, chainStart: totals.chainHead)
    }

    /// Why a storage can't be repaired, and what to do.
    static func refusal(_ reason: String, remedy: String = "restore a backup") -> StorageFailure {
        .damaged("the storage can't be repaired: \(reason): \(remedy)")
    }

    private static func wholePart(of totals: Totals, _ reader: ReadTransaction) throws(StorageFailure) -> LogPart {
        var (first, expected) = (totals.sequence + 1, totals.chainHead)
        while first > totals.firstSequence {
            do throws(StorageFailure) {
                guard let record = try reader.value(reader.environment.log, bigEndianBytes(first - 1)),
                    record.checksum == expected
                else { break }
                expected = try LogRecord.previous(in: record.contents)
                first -= 1
            } catch {
                guard error.isDamage else { throw error }
                break
            }
        }
        return LogPart(first: first, chainStart: expected)
    }

    /// What is wrong with the pages of a database; `nil` when nothing is.
    private static func fault(
        _ name: DatabaseName, _ directory: String, _ page: MetaPage
    ) throws(StorageFailure) -> String? {
        try DataFile.withFile(in: directory) { file throws(StorageFailure) in
            try file.fault(of: page, in: name, isStopped: { false })
        }
    }

    /// Calls `visit` with each intact entry of the databases, in the order of `names` and of the keys.
    ///
    /// Throws what `visit` throws, and `damaged` when the pages of a database are damaged.
    func visitIntactEntries(
        of names: [DatabaseName], _ visit: @escaping StorageWalk.Visit
    ) throws(StorageFailure) {
        for name in names {
            if let fault = try RepairSource.fault(name, directory, page) { throw RepairSource.refusal(fault) }
        }
        var walk = try StorageWalk(
            environment, in: reader, readsAnew: true, of: names, isInterrupted: { false }, report: { _ in },
            visit: visit)
        _ = try walk.run()
    }

    /// Throws when something of what was read could not be read: it was taken for zeros.
    func checkReading() throws(StorageFailure) {
        if let fault = environment.trust.fault ?? environment.cut { throw fault }
    }
}
