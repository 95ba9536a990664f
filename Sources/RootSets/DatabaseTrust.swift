import Core
import Dispatch
import Foundation
import Synchronization

/// Which databases of an environment can be believed.
///
/// An entry that is out of date is intact by itself. Only the sum over its whole database shows it. So nobody reads a
/// database before the check of the start has left it, and the writer waits until it has left all. A service's
/// threads wait for a second at most, because they have others to serve; then their requests are told that the storage
/// is busy. Without a check everything is believed.
final class DatabaseTrust: Sendable {
    let health: StorageHealth
    /// A bit for each database of which entries are missing or out of date, and one for each that was not checked yet.
    /// Zero when all can be believed.
    private let doubts = Atomic<UInt>(0)
    private static let uncheckedShift = 16
    /// By the raw value of the database. Entered while the check has not left it.
    private let checks = DatabaseName.allCases.map { _ in DispatchGroup() }
    private let unchecked = Lock<Set<DatabaseName>>([])
    private let map = Lock<CoveredMap?>(nil)
    /// The data file, and the greatest length of it that was seen: it never becomes shorter. -1: there is none yet.
    private let file = Atomic<CInt>(-1)
    private let bytesMin = Atomic<Int>(0)
    private let retired = Atomic<Bool>(false)
    /// When the check began, by the clock of `DispatchTime`.
    private let begin = Atomic<UInt64>(0)

    init(_ health: StorageHealth) {
        self.health = health
    }

    /// From now on the pages of the map that can't be read are known, and a cut of the file is noticed.
    func covers(_ map: CoveredMap?, of file: CInt) {
        self.map.withLock { $0 = map }
        watchLength(of: file)
    }

    /// Why what was read may be zeros instead of what is stored; `nil` when every page could be read.
    var fault: StorageFailure? { map.withLock { $0?.fault } }

    /// From now on a cut of the data file is noticed.
    func watchLength(of file: CInt) {
        self.file.store(file, ordering: .releasing)
        noteLength()
    }

    /// Remembers how long the data file has become.
    func noteLength() {
        if let present = fileBytes(file.load(ordering: .acquiring)) { bytesMin.max(present, ordering: .releasing) }
    }

    /// Why nothing may be answered: the file was cut, so the end of its last page reads as zeros without a fault. `nil`
    /// when it was not.
    var cut: StorageFailure? {
        // In this order: the file may become longer in between, and never shorter than was noted before.
        let least = bytesMin.load(ordering: .acquiring)
        guard let present = fileBytes(file.load(ordering: .acquiring)), present < least else { return nil }
        return .failed("the data file was cut to \(present) bytes")
    }

    // MARK: The check

    /// From now on each database waits for the check.
    func beginCheck() {
        unchecked.withLock { unchecked in
            precondition(unchecked.isEmpty, "a check was begun twice")
            begin.store(DispatchTime.now().uptimeNanoseconds, ordering: .relaxed)
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

    /// The environment is given up. Its check ends, which would keep it open.
    func retire() { retired.store(true, ordering: .relaxed) }

    var isRetired: Bool { retired.load(ordering: .relaxed) }

    /// The check has ended. What it did not come to is not believed, and nobody waits for it any more.
    func endCheck() {
        for name in DatabaseName.allCases { endWait(for: name) }
    }

    /// Whether the check has not left the database yet.
    func isUnchecked(_ name: DatabaseName) -> Bool { unchecked.withLock { $0.contains(name) } }

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
    /// Throws `damaged` when entries of it are missing or out of date, and `unchecked` when a wait is bounded and over.
    @inline(__always)
    func check(_ name: DatabaseName) throws(StorageFailure) {
        guard !believes(name) else { return }
        try checkDoubts(name)
    }

    private func checkDoubts(_ name: DatabaseName) throws(StorageFailure) {
        if health.boundsWaits {
            guard checks[name.rawValue].wait(timeout: waitsEnd) == .success else { throw .unchecked }
        }
        try wait(for: name)
    }

    /// When readers wait no more whose waits are bounded.
    private var waitsEnd: DispatchTime {
        DispatchTime(uptimeNanoseconds: begin.load(ordering: .relaxed))
            + .milliseconds(Limits.uncheckedWaitMilliseconds)
    }

    /// Whether the check has not come to one of the databases within the time for which readers wait.
    func isOverdue(_ names: [DatabaseName]) -> Bool {
        guard DispatchTime.now() >= waitsEnd else { return false }
        return unchecked.withLock { unchecked in names.contains { unchecked.contains($0) } }
    }

    private func wait(for name: DatabaseName) throws(StorageFailure) {
        checks[name.rawValue].wait()
        guard !believes(name) else { return }
        if let fault = fault ?? cut { throw fault }
        guard doubts.load(ordering: .acquiring) >> UInt(name.rawValue) & 1 != 0 else {
            throw StorageFailure(ECANCELED, "checking the storage")
        }
        throw .damaged("entries of the database \(name) are missing or out of date")
    }

    /// Waits until the check has left all databases. Throws `damaged` when one of them can't be believed.
    func waitForCheck() throws(StorageFailure) {
        for name in DatabaseName.allCases where !believes(name) { try wait(for: name) }
    }
}
