import Dispatch
import Foundation
import Synchronization

/// Which databases of an environment can be believed.
///
/// An entry that is out of date is intact by itself. Only the sum over its whole database shows it. So whoever reads a
/// database while the check of the start goes on waits until the check has left that database, and the writer waits
/// until it has left all. Without a check everything is believed.
final class DatabaseTrust: Sendable {
    let health: StorageHealth
    /// A bit for each database of which entries are missing or out of date, and one for each that was not checked yet.
    /// Zero when all can be believed.
    private let doubts = Atomic<UInt>(0)
    private static let uncheckedShift = 16
    /// By the raw value of the database. Entered while the check has not left it.
    private let checks = DatabaseName.allCases.map { _ in DispatchGroup() }
    private let unchecked = Mutex<Set<DatabaseName>>([])
    private let map = Mutex<CoveredMap?>(nil)

    init(_ health: StorageHealth) {
        self.health = health
    }

    /// From now on the pages of the map that can't be read are known.
    func covers(_ map: CoveredMap?) { self.map.withLock { $0 = map } }

    /// Why what was read may be zeros instead of what is stored; `nil` when every page could be read.
    var fault: StorageFailure? { map.withLock { $0?.fault } }

    // MARK: The check

    /// From now on each database waits for the check.
    func beginCheck() {
        unchecked.withLock { unchecked in
            precondition(unchecked.isEmpty, "a check was begun twice")
            unchecked = Set(DatabaseName.allCases)
            for name in DatabaseName.allCases {
                checks[name.rawValue].enter()
                doubts.bitwiseOr(1 << UInt(name.rawValue + DatabaseTrust.uncheckedShift), ordering: .releasing)
            }
        }
    }

    /// The check has left the database.
    func noteChecked(_ name: DatabaseName) {
        doubts.bitwiseAnd(~(1 << UInt(name.rawValue + DatabaseTrust.uncheckedShift)), ordering: .releasing)
        endWait(for: name)
    }

    /// The check has ended. What it did not come to is not believed, and nobody waits for it any more.
    func endCheck() {
        for name in DatabaseName.allCases { endWait(for: name) }
    }

    private func endWait(for name: DatabaseName) {
        if unchecked.withLock({ $0.remove(name) }) != nil { checks[name.rawValue].leave() }
    }

    /// Entries of the database are missing or out of date.
    func distrust(_ name: DatabaseName) { doubts.bitwiseOr(1 << UInt(name.rawValue), ordering: .releasing) }

    // MARK: Readers

    /// Whether the database was checked, if there is a check, and nothing but single entries is damaged.
    @inline(__always)
    func believes(_ name: DatabaseName) -> Bool {
        let doubts = doubts.load(ordering: .acquiring)
        return doubts == 0 || (doubts | doubts >> UInt(DatabaseTrust.uncheckedShift)) >> UInt(name.rawValue) & 1 == 0
    }

    /// Waits until the check has left the database.
    ///
    /// Throws `damaged` when entries of it are missing or out of date.
    @inline(__always)
    func check(_ name: DatabaseName) throws(StorageFailure) {
        guard !believes(name) else { return }
        try wait(for: name)
    }

    private func wait(for name: DatabaseName) throws(StorageFailure) {
        checks[name.rawValue].wait()
        guard !believes(name) else { return }
        if let fault { throw fault }
        guard doubts.load(ordering: .acquiring) >> UInt(name.rawValue) & 1 != 0 else {
            throw StorageFailure(ECANCELED, "checking the storage")
        }
        throw .damaged("entries of the database \(name) are missing or out of date")
    }

    /// Waits until the check has left all databases. Throws `damaged` when one of them can't be believed.
    func waitForCheck() throws(StorageFailure) {
        for name in DatabaseName.allCases { try check(name) }
    }
}
