import Core
import Foundation
import Platform

/// The data file before LMDB opens it.
struct DataFile {
    static let fileName = "data.mdb"

    private let descriptor: CInt

    /// Makes the names of the files in a data directory durable. A file that is durable may be lost in a power cut as
    /// long as its name is not.
    static func makeNamesDurable(in directory: String) throws(StorageFailure) {
        do throws(SystemFailure) {
            try System.synchronizeFolder(of: directory + "/" + fileName)
        } catch {
            throw StorageFailure(error.number, "making the names of the files in \(directory) durable")
        }
    }

    /// Notes in the lock of a directory without data that the data file will be made. Removes what a power cut has left
    /// of one that was being made, if the lock says that one was.
    static func prepareNew(
        in directory: String, _ lock: DirectoryLock, isUnfinished: Bool
    ) throws(StorageFailure) {
        let isThere = try withFile(in: directory) { file throws(StorageFailure) in
            let isSmall = fileBytes(file.descriptor).map { $0 <= Limits.unfinishedDataFileBytesMax } ?? false
            if isUnfinished, isSmall, try !MetaPages.nameCommit(in: file.descriptor) {
                guard ftruncate(file.descriptor, 0) == 0 else {
                    throw StorageFailure(errno, "removing an unfinished data file")
                }
            }
            return true
        }
        if isThere == nil { try lock.markNew(in: directory) }
    }

    /// Calls `body` with the file, if there is one that is not empty. LMDB makes it when there is none.
    ///
    /// Returns what `body` returns; `nil` when there is none. Throws what `body` throws, and `StorageFailure` when the
    /// file can't be opened.
    static func withFile<R>(
        in directory: String, _ body: (DataFile) throws(StorageFailure) -> R?
    ) throws(StorageFailure) -> R? {
        let path = directory + "/" + fileName
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw StorageFailure(errno, "opening \(path)")
        }
        defer { close(descriptor) }
        guard let bytes = fileBytes(descriptor) else { throw StorageFailure(errno, "reading the data file's size") }
        return bytes > 0 ? try body(DataFile(descriptor: descriptor)) : nil
    }

    /// What was found before LMDB opens the file.
    struct Judgement {
        /// The check of the structure, if it left some databases for later.
        let structure: StructureCheck?
        /// The meta page that was damaged, and was written anew; `nil`: none was.
        let restored: MetaPages.Place?
    }

    /// Judges the meta pages and the structure of the file, and writes a damaged meta page anew if the other one is
    /// known to be the newest, or if the note has a copy of it. `mark`: the note of the newest commit. `deferring`: the
    /// databases whose trees may be left for later.
    ///
    /// Throws `damaged`; then LMDB must not open the file.
    func judge(
        _ mark: CommitMark.Contents, deferring: [DatabaseName]
    ) throws(StorageFailure) -> Judgement {
        guard let bytes = fileBytes(descriptor) else { throw StorageFailure(errno, "reading the data file's size") }
        if mark == .acceptance {
            try accept(fileBytes: bytes)
            return Judgement(structure: nil, restored: nil)
        }
        let pages = try MetaPages(of: descriptor, fileBytes: bytes, mark: mark)
        let isShort = bytes < pages.newest.fileBytes
        // Nothing is written to a file before all of it was checked.
        let deferring = pages.damaged != nil || isShort ? [] : deferring
        let check = try StructureCheck(of: descriptor, fileBytes: bytes, pages.newest, deferring: deferring)
        if let finding = check.finding {
            // Then the note may be of another file, whose pages are elsewhere.
            guard pages.damaged != .newest else { throw MetaPages.otherThanNoted }
            let cut =
                isShort ? "the data file is shorter than its contents (\(pages.newest.fileBytes) bytes), and " : ""
            throw .damaged("\(cut)\(finding): \(isShort ? MetaPages.remedy : "restore a backup")")
        }
        if isShort { try lengthen(to: pages.newest.fileBytes) }
        // In a file that lacks a database, the start makes it or finds that it is damaged.
        let isDone = deferring.isEmpty || !check.hasDeferred
        if isDone { try check.checkRest() }
        try pages.repair(descriptor)
        return Judgement(structure: isDone ? nil : check, restored: pages.damaged)
    }

    /// LMDB does not write pages at the end that a commit has taken and given back, so the file may lawfully be shorter
    /// than the commit says. Reading behind its end would be a bus error.
    private func lengthen(to bytes: Int) throws(StorageFailure) {
        guard ftruncate(descriptor, off_t(bytes)) == 0 else { throw StorageFailure(errno, "lengthening the data file") }
    }

    /// Takes the newest commit that is whole and holds anything, because the operator has said so.
    private func accept(fileBytes: Int) throws(StorageFailure) {
        let pages = try MetaPages.usable(descriptor, fileBytes: fileBytes)
        for page in pages where page.transaction > 0 {
            let check = try StructureCheck(of: descriptor, fileBytes: fileBytes, page, deferring: [])
            guard check.finding == nil else { continue }
            if fileBytes < page.fileBytes { try lengthen(to: page.fileBytes) }
            // The other page is left alone when it is that of the commit before.
            let isRegular = page == pages.first && pages.last?.transaction == page.transaction - 1
            return isRegular ? () : try MetaPages.repairOther(of: page, descriptor)
        }
        throw .damaged("no commit in the data file is whole: restore a backup")
    }

    /// Throws unless there is a data file that is not empty in the directory.
    static func checkExistence(in directory: String) throws(ServiceError) {
        var status = stat()
        guard stat(directory + "/" + fileName, &status) == 0 else {
            let failure = SystemFailure("looking")
            let isMissing = failure.number == ENOENT
            throw ServiceError(
                .storageFailed, detail: UInt32(bitPattern: failure.number),
                isMissing ? "there is no storage in \(directory)" : "looking into \(directory): \(failure.reason)")
        }
        guard status.st_size > 0 else {
            throw ServiceError(.storageFailed, "the data file of \(directory) is empty")
        }
    }

    /// What is wrong with the pages of one database, or of all; `nil` when nothing is. `isStopped` is asked often; when
    /// it returns true, the check goes no further, and what it says means nothing.
    func fault(
        of meta: MetaPage, in name: DatabaseName?, isStopped: @escaping @Sendable () -> Bool
    ) throws(StorageFailure) -> String? {
        let deferred = name.map { name in DatabaseName.allCases.filter { $0 != .meta && $0 != name } }
        return try StructureCheck(
            of: descriptor, fileBytes: fileBytes(descriptor) ?? 0, meta, deferring: deferred ?? [],
            isStopped: isStopped
        ).finding
    }
}
