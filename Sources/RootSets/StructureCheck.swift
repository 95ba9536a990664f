import Core
import Foundation
import Synchronization

/// The check of a data file's pages in two parts: what a start needs, and the trees that are large. Nobody reads a
/// database before its tree was checked, and nobody writes before all of it was (`DatabaseTrust`). The file must not
/// change in between.
///
/// Sendable without the compiler's proof: the check is used under its lock, and the map lasts as long as this object.
final class StructureCheck: @unchecked Sendable {
    /// The databases that a start reads are `meta` and `records`. These are the others.
    static let deferred: [DatabaseName] = [.packed, .large, .log, .mutations]

    private let bytes: UnsafeRawBufferPointer
    private let map: CoveredMap
    private let meta: MetaPage
    private let check: Lock<PageCheck>
    private let isStopped: Flag
    private let isReadAhead = Flag()
    /// The databases whose trees were put off.
    private let deferring: [DatabaseName]

    private final class Flag: Sendable {
        let value = Atomic<Bool>(false)
    }

    /// Maps the file of so many bytes and checks what `meta` leads to, but for the trees of the databases `deferring`.
    /// `isStopped` ends the check soon when it returns true, as `stop` does.
    ///
    /// Throws when the file can't be mapped or read.
    init(
        of file: CInt, fileBytes: Int, _ meta: MetaPage, deferring: [DatabaseName],
        isStopped isStoppedByOwner: @escaping @Sendable () -> Bool = { false }
    ) throws(StorageFailure) {
        // Its numbers may be anything.
        if let fault = meta.fault(fileBytes: fileBytes) { throw .damaged("the meta page can't be used, \(fault)") }
        let count = min(meta.fileBytes, fileBytes / meta.pageBytes * meta.pageBytes)
        guard count >= 2 * meta.pageBytes else {
            throw .damaged("the data file is shorter than its contents (\(meta.fileBytes) bytes): restore a backup")
        }
        guard let start = mmap(nil, count, PROT_READ, MAP_SHARED, file, 0), start != MAP_FAILED else {
            throw StorageFailure(errno, "mapping the data file")
        }
        bytes = UnsafeRawBufferPointer(start: start, count: count)
        guard let map = CoveredMap(bytes) else {
            munmap(start, count)
            throw StorageFailure(ENOMEM, "mapping the data file")
        }
        self.map = map
        self.meta = meta
        self.deferring = deferring
        let isStopped = Flag()
        self.isStopped = isStopped
        if deferring.isEmpty { StructureCheck.readAhead(bytes) }
        let later = Set(deferring.map(\.text))
        check = Lock(
            PageCheck(
                bytes, meta, deferring: later,
                isStopped: { isStopped.value.load(ordering: .relaxed) || isStoppedByOwner() }))
        if let fault = map.fault { throw fault }
    }

    deinit {
        munmap(UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count)
    }

    /// Whether the file has all databases that were put off.
    var hasDeferred: Bool {
        check.withLock { check in deferring.allSatisfy { check.trees[$0.text] != nil } }
    }

    /// What is wrong with the pages that were checked; `nil` when nothing is.
    var finding: String? {
        check.withLock { check in
            if let first = check.findings.first {
                return "the data file's structure is damaged on \(check.findingsCount) pages or more, first \(first)"
            }
            // A compacted copy, as mdb_copy -c makes it, begins anew with transaction 1.
            if let commit = check.commit, commit != meta.transaction, meta.transaction != 1 {
                return "the meta page says transaction \(meta.transaction), and its data are of another"
            }
            return nil
        }
    }

    /// Checks the tree of a database if it was put off, and with the last one the list of free pages.
    ///
    /// Throws `damaged` when a page is damaged, and another failure when the file can't be read or the check was
    /// stopped.
    func check(_ name: DatabaseName) throws(StorageFailure) {
        if !isReadAhead.value.exchange(true, ordering: .relaxed) { StructureCheck.readAhead(bytes) }
        check.withLock { $0.walkDeferred(name.text) }
        try throwFinding()
    }

    /// Checks all that was put off. Throws as `check` does.
    func checkRest() throws(StorageFailure) {
        for name in deferring { try check(name) }
        check.withLock { $0.walkDeferred() }
        try throwFinding()
    }

    /// Whether nothing is left.
    var isDone: Bool { check.withLock { $0.isDone } }

    /// Ends the check soon.
    func stop() { isStopped.value.store(true, ordering: .relaxed) }

    private func throwFinding() throws(StorageFailure) {
        if let fault = map.fault { throw fault }
        guard !isStopped.value.load(ordering: .relaxed) else {
            throw StorageFailure(ECANCELED, "checking the data file's structure")
        }
        if let finding { throw .damaged("\(finding): restore a backup") }
    }

    /// Lets the system read what will be needed: nearly all of it.
    private static func readAhead(_ bytes: UnsafeRawBufferPointer) {
        madvise(UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count, CInt(MADV_WILLNEED))
    }
}
