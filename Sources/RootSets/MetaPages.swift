import Core
import Foundation

/// The two meta pages of a data file, judged before LMDB sees them.
struct MetaPages {
    /// Describes the newest commit.
    let newest: MetaPage
    /// The page that must be written anew before LMDB opens the file; `nil` when both are whole.
    let damaged: Place?

    enum Place {
        /// That of the newest commit. The note has a copy of it.
        case newest
        /// The other one, which LMDB does not use.
        case other
    }

    static let remedy =
        "restore a backup, or keep a copy of the data directory and write the word \(CommitMark.acceptance) into its "
        + "\(CommitMark.fileName), to go on with the newest commit that is whole, if there is one"

    /// The newest page has the noted commit's number and other bytes, and can't be written anew.
    static let otherThanNoted = StorageFailure.damaged("the newest meta page is not what was written: \(remedy)")

    /// Throws `damaged` when a page is damaged that may be the newest, unless the note has a copy of it, or when a
    /// commit is missing that was acknowledged.
    init(of file: CInt, fileBytes: Int, mark: CommitMark.Contents) throws(StorageFailure) {
        let (first, second) = try MetaPages.read(file)
        if let copy = MetaPages.copy(of: mark, insteadOf: first, second) {
            (newest, damaged) = (copy, .newest)
        } else {
            (newest, damaged) = try MetaPages.judge(first, second, mark)
        }
        guard newest.isInItsPlace else {
            throw .damaged("the newest meta page stands in the place of the other: \(MetaPages.remedy)")
        }
        if let fault = newest.fault(fileBytes: fileBytes) {
            throw .damaged("the newest meta page can't be used, \(fault): \(MetaPages.remedy)")
        }
    }

    /// The noted commit's page, if what stands in its place is damaged, and if the other page is of the commit before.
    /// Else `nil`.
    ///
    /// Then the noted commit is the newest one: the next one would stand in the place of the other page. What it needs
    /// was not written over: LMDB takes no page of the two newest commits for the next one.
    private static func copy(
        of mark: CommitMark.Contents, insteadOf first: MetaPage?, _ second: MetaPage?
    ) -> MetaPage? {
        guard case .note(let note) = mark, let copy = note.page, copy.transaction > 0 else { return nil }
        let isFirst = copy.transaction & 1 == 0
        let (present, other) = isFirst ? (first, second) : (second, first)
        guard present != copy, let other, other.transaction == copy.transaction - 1, other.isInItsPlace,
            other.pageBytes == copy.pageBytes
        else { return nil }
        // The page of another commit is not damaged: a disk has lost a write, or the note is behind. What differs in
        // the number alone is of no other commit, as each changes the trees.
        let number = MetaPage.transactionOffset
        if let present, present.isInItsPlace, present.transaction != copy.transaction,
            present.bytes[..<number] != copy.bytes[..<number]
        {
            return nil
        }
        return copy
    }

    private static func judge(
        _ first: MetaPage?, _ second: MetaPage?, _ mark: CommitMark.Contents
    ) throws(StorageFailure) -> (newest: MetaPage, damaged: Place?) {
        switch (first, second) {
        case (nil, nil): throw .damaged("both meta pages of the data file are damaged: restore a backup")
        case (let page?, nil), (nil, let page?):
            try check(alone: page, mark)
            return (page, .other)
        case (let first?, let second?):
            let (newer, older) =
                first.transaction < second.transaction ? (second, first) : (first, second)
            let isRegular = newer.transaction == older.transaction &+ 1 || newer.transaction == 0
            if !isRegular, mark == .note(CommitMark.Note(older)) {
                // No commit after the noted one has such a number, so the page with it is damaged.
                return (older, .other)
            }
            try check(newer, before: older, isRegular: isRegular, mark)
            return (newer, isRegular ? nil : .other)
        }
    }

    /// Whether one of the two pages can be read and is of a commit.
    static func nameCommit(in file: CInt) throws(StorageFailure) -> Bool {
        let (first, second) = try read(file)
        return [first, second].contains { $0.map { $0.transaction > 0 } ?? false }
    }

    /// Whether a data file has a commit. A file without one, or a missing one, belongs to a storage that is new.
    ///
    /// Throws `failed` when the file can't be read.
    static func haveCommit(in path: String) throws(StorageFailure) -> Bool {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            guard errno == ENOENT else { throw StorageFailure(errno, "opening \(path)") }
            return false
        }
        defer { close(file) }
        guard lseek(file, 0, SEEK_END) > 0 else { return false }
        let (first, second) = try read(file)
        // What can't be read may have had one.
        return [first, second].contains { $0.map { $0.transaction > 0 } ?? true }
    }

    /// The readable pages. Where the second one stands depends on the size of a page. If the first page can't be read,
    /// or says another size than the second, the second is searched for.
    private static func read(_ file: CInt) throws(StorageFailure) -> (MetaPage?, MetaPage?) {
        func page(_ slot: Int, at offset: Int) throws(StorageFailure) -> MetaPage? {
            let bytes = try readBytes(
                of: file, at: offset, bytesMax: MetaPage.byteCount, "reading the meta pages")
            return bytes.count == MetaPage.byteCount ? MetaPage(bytes, slot: slot) : nil
        }
        let first = try page(0, at: 0)
        if let first, let second = try page(1, at: first.pageBytes), second.pageBytes == first.pageBytes {
            return (first, second)
        }
        var size = 4096
        while size <= MetaPage.pageBytesMax {
            // A second page that agrees with its own place is believed more than the first.
            if let second = try page(1, at: size), second.pageBytes == size { return (nil, second) }
            size *= 2
        }
        return (first, nil)
    }

    /// Checks a page whose neighbour can't be read. An honest crash leaves that only while a commit is written that was
    /// not acknowledged: then the note is of the commit before.
    private static func check(alone page: MetaPage, _ mark: CommitMark.Contents) throws(StorageFailure) {
        switch mark {
        case .acceptance: return
        case .note(let note) where note == CommitMark.Note(page): return
        case .note(let note) where note.transaction > page.transaction: throw lost(note, newest: page)
        case .note, .none, .unknown:
            throw .damaged("a meta page of the data file is damaged, and it may have been the newest: \(remedy)")
        }
    }

    private static func check(
        _ newer: MetaPage, before older: MetaPage, isRegular: Bool, _ mark: CommitMark.Contents
    ) throws(StorageFailure) {
        let irregular = StorageFailure.damaged(
            "the meta pages have the transactions \(newer.transaction) and \(older.transaction), which do not follow "
                + "each other: \(remedy)")
        switch mark {
        case .acceptance: return
        case .none, .unknown: if !isRegular { throw irregular }
        case .note(let note):
            guard note.transaction <= newer.transaction else { throw lost(note, newest: newer) }
            if note.transaction == newer.transaction {
                guard note == CommitMark.Note(newer) else { throw otherThanNoted }
            } else if !isRegular, older.transaction >= note.transaction {
                // The note is of a commit before both, or is no note of the older page: nothing vouches for either.
                throw irregular
            }
        }
    }

    private static func lost(_ note: CommitMark.Note, newest: MetaPage) -> StorageFailure {
        .damaged(
            "transaction \(note.transaction) was committed and acknowledged, and the data file ends with "
                + "\(newest.transaction): \(remedy)")
    }

    /// The pages that LMDB could use, the newest first.
    static func usable(_ file: CInt, fileBytes: Int) throws(StorageFailure) -> [MetaPage] {
        let (first, second) = try read(file)
        return [first, second].compactMap { $0 }
            .filter { $0.fault(fileBytes: fileBytes) == nil && $0.isInItsPlace }
            .sorted { $0.transaction > $1.transaction }
    }

    /// Writes the other page anew, as a copy of `page`, so that LMDB takes `page`.
    static func repairOther(of page: MetaPage, _ file: CInt) throws(StorageFailure) {
        try write(page.copyForOtherSlot, slot: Int(page.transaction & 1 ^ 1), pageBytes: page.pageBytes, file)
    }

    /// Writes the damaged page anew, so that LMDB takes the newest commit.
    func repair(_ file: CInt) throws(StorageFailure) {
        switch damaged {
        case nil: break
        case .other: try MetaPages.repairOther(of: newest, file)
        case .newest:
            let slot = Int(newest.transaction & 1)
            try MetaPages.write(newest.bytes, slot: slot, pageBytes: newest.pageBytes, file)
        }
    }

    private static func write(
        _ bytes: [UInt8], slot: Int, pageBytes: Int, _ file: CInt
    ) throws(StorageFailure) {
        guard pwrite(file, bytes, bytes.count, off_t(slot * pageBytes)) == bytes.count, fsync(file) == 0 else {
            throw StorageFailure(errno, "writing a damaged meta page anew")
        }
    }
}
