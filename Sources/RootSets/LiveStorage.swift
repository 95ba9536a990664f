import Core
import Foundation

/// A snapshot of a data directory that a service may have open in another process. It sees one commit, whatever the
/// service does meanwhile. While it exists, pages that it sees are not used again, so the data file may grow.
final class LiveStorage {
    let environment: StorageEnvironment
    let transaction: ReadTransaction
    /// LMDB's number of the commit that is seen.
    let number: Int
    /// The newest commit that was acknowledged before the snapshot was taken, if it is not in the snapshot.
    let missing: UInt64?
    /// Why nobody can tell whether the newest commit is there; `nil` when the note tells or is not there.
    let doubt: String?
    private let directory: String
    private let page: MetaPage

    /// Must not be called in a process that has the directory open.
    ///
    /// Throws `storageFailed` when there is no storage or when it has no checksums, `storageDamaged` when it can't be
    /// opened, and `busy` when the service has taken the snapshot back meanwhile.
    init(_ directory: String) throws(ServiceError) {
        try DataFile.checkExistence(in: directory)
        try StorageRestore.checkFinished(directory)
        self.directory = directory
        // It is read first: the snapshot must not be older.
        let noted: CommitMark.Contents
        do throws(StorageFailure) {
            noted = try CommitMark.contents(in: directory)
        } catch {
            throw error.asServiceError
        }
        environment = try StorageEnvironment(reading: directory)
        do throws(StorageFailure) {
            let environment = environment
            (transaction, page) = try environment.whileClaimed { () throws(StorageFailure) in
                let transaction = try ReadTransaction(environment)
                return (transaction, try environment.renew(transaction))
            }
            number = transaction.number
            environment.endOpening()
        } catch {
            throw error.asServiceError
        }
        doubt =
            switch noted {
            case .none, .note: nil
            case .acceptance:
                "\(CommitMark.fileName) has the word \(CommitMark.acceptance), and no start of the service has taken it"
            case .unknown: "\(CommitMark.fileName) is not what was written"
            }
        if case .note(let note) = noted, note.transaction > UInt64(number) {
            missing = note.transaction
        } else {
            missing = nil
        }
    }

    deinit {
        transaction.reset()
    }

    /// What it costs the service that the snapshot is read.
    func cost(of reading: SnapshotCost.Reading) -> SnapshotCost { SnapshotCost(of: reading, environment, transaction) }

    /// What is wrong with the pages of the snapshot, or which commit is missing; `nil` when nothing is.
    ///
    /// Throws `givenUp` when reading on would cost the service too much.
    func fault(_ cost: SnapshotCost) throws(StorageFailure) -> String? {
        if let missing {
            return "transaction \(missing) was committed and acknowledged, and the data file ends with \(number)"
        }
        if let doubt { return doubt }
        return try fault(in: nil, cost)
    }

    /// What is wrong with the pages of the change log in the snapshot; `nil` when nothing is. Throws as `fault` does.
    func logFault(_ cost: SnapshotCost) throws(StorageFailure) -> String? { try fault(in: .log, cost) }

    private func fault(in name: DatabaseName?, _ cost: SnapshotCost) throws(StorageFailure) -> String? {
        let fault = try cost.whileHeld { () throws(StorageFailure) in
            try DataFile.withFile(in: directory) { file throws(StorageFailure) in
                try file.fault(of: page, in: name, isStopped: { cost.isTooMuch })
            }
        }
        // What a check says that was stopped means nothing.
        try cost.check()
        return fault
    }
}
