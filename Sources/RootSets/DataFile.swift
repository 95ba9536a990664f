import Core
import Foundation

/// The data file before LMDB opens it.
struct DataFile {
    static let fileName = "data.mdb"

    private let descriptor: CInt

    /// Calls `body` with the file, if there is one that is not empty. LMDB makes it when there is none.
    ///
    /// Throws what `body` throws, and `StorageFailure` when the file can't be opened.
    static func withFile(
        in directory: String, _ body: (DataFile) throws(StorageFailure) -> Void
    ) throws(StorageFailure) {
        let path = directory + "/" + fileName
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return }
            throw StorageFailure(errno, "opening \(path)")
        }
        defer { close(descriptor) }
        guard let bytes = fileBytes(descriptor) else { throw StorageFailure(errno, "reading the data file's size") }
        if bytes > 0 { try body(DataFile(descriptor: descriptor)) }
    }

    /// Judges the meta pages and the structure of all pages, and writes a damaged meta page anew if the other one is
    /// known to be the newest. Throws `damaged`; then LMDB must not open the file.
    func judge(_ mark: CommitMark) throws(StorageFailure) {
        guard let bytes = fileBytes(descriptor) else { throw StorageFailure(errno, "reading the data file's size") }
        let contents = mark.read()
        if contents == .acceptance { return try accept(fileBytes: bytes) }
        let pages = try MetaPages(of: descriptor, fileBytes: bytes, mark: contents)
        if let fault = try fault(of: pages.newest) { throw .damaged("\(fault): restore a backup") }
        if pages.isOtherDamaged { try MetaPages.repairOther(of: pages.newest, descriptor) }
    }

    /// Takes the newest commit that is whole, because the operator has said so.
    private func accept(fileBytes: Int) throws(StorageFailure) {
        for page in try MetaPages.usable(descriptor, fileBytes: fileBytes) {
            guard try fault(of: page) == nil else { continue }
            return try MetaPages.repairOther(of: page, descriptor)
        }
        throw .damaged("no commit in the data file is whole: restore a backup")
    }

    /// What is wrong with the pages that `meta` leads to; `nil` when nothing is.
    private func fault(of meta: MetaPage) throws(StorageFailure) -> String? {
        let check = try pages(of: meta)
        if let first = check.findings.first {
            return "the data file's structure is damaged on \(check.findingsCount) pages or more, first \(first)"
        }
        // A compacted copy, as mdb_copy -c makes it, begins anew with transaction 1.
        if let commit = check.commit, commit != meta.transaction, meta.transaction != 1 {
            return "the meta page says transaction \(meta.transaction), and its data are of another"
        }
        return nil
    }

    /// Walks the pages that `meta` leads to.
    func pages(of meta: MetaPage) throws(StorageFailure) -> PageCheck {
        let count = Int(meta.lastPage + 1) * meta.pageBytes
        guard let start = mmap(nil, count, PROT_READ, MAP_SHARED, descriptor, 0), start != MAP_FAILED else {
            throw StorageFailure(errno, "mapping the data file")
        }
        defer { munmap(start, count) }
        let bytes = UnsafeRawBufferPointer(start: start, count: count)
        // Reads ahead: the walk touches every page that is used.
        madvise(start, count, CInt(MADV_WILLNEED))
        guard let map = CoveredMap(bytes) else { throw StorageFailure(ENOMEM, "mapping the data file") }
        let check = PageCheck(bytes, meta)
        if let fault = map.fault { throw fault }
        return check
    }
}
