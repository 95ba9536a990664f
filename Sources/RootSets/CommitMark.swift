import Core
import Foundation
import Synchronization

/// A note of the newest commit that was acknowledged, in a file of its own beside the data file.
///
/// LMDB takes the newer one of two meta pages. If that page is damaged, LMDB either does not open the file, or takes
/// the page of the commit before, and an acknowledged commit is lost without a word. The note tells.
///
/// It is written after the commit is durable and before the first answer, and never before. So it is never ahead of the
/// data, whatever order the disk writes in, unless the data have lost a commit. After a crash of the process it is at
/// most one commit behind, and that one was not acknowledged. After a power cut it may be about a second behind,
/// because it is made durable each second only: that costs no commit an additional wait for the disk.
///
/// It also has a copy of the newest meta page. When that page is damaged, and the other one is of the commit before,
/// the page is written anew from the copy, and nothing is lost.
final class CommitMark: Sendable {
    static let fileName = "newest-commit"
    /// What an operator writes into the file to take what is there, even if a commit was lost.
    static let acceptance = "accept"

    /// In the file: `transaction`, `digest` and `sequence`, of 8 bytes each, `page`, and the checksum of all before it,
    /// of 8 bytes. All numbers are little-endian.
    struct Note: Equatable {
        static let byteCount = 32 + MetaPage.byteCount
        /// Of a note that an earlier version wrote, without a copy of the page.
        fileprivate static let bareByteCount = 32
        let transaction: UInt64
        /// The digest of the commit's meta page.
        let digest: UInt64
        /// The last sequence of the change log. LMDB's numbers of transactions begin anew in a compacted copy and in a
        /// restored storage, this one does not.
        let sequence: UInt64
        /// A copy of the commit's meta page, from which a damaged one is written anew. `nil`: the note has none.
        let page: MetaPage?

        init(_ page: MetaPage, sequence: UInt64 = 0) {
            (transaction, digest, self.sequence, self.page) = (page.transaction, page.digest, sequence, page)
        }

        /// Whether both are of one commit.
        static func == (one: Note, other: Note) -> Bool {
            (one.transaction, one.digest) == (other.transaction, other.digest)
        }

        /// Returns `nil` unless the bytes are those of a note.
        init?(_ bytes: [UInt8]) {
            guard bytes.count == Note.byteCount || bytes.count == Note.bareByteCount else { return nil }
            func word(_ offset: Int) -> UInt64 {
                UInt64(
                    littleEndian: bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self) })
            }
            let end = bytes.count - 8
            let sum = bytes.withUnsafeBytes { Checksum.of(UnsafeRawBufferPointer(rebasing: $0[..<end]), seed: 0) }
            guard sum == word(end) else { return nil }
            (transaction, digest, sequence) = (word(0), word(8), word(16))
            if bytes.count == Note.bareByteCount {
                page = nil
            } else {
                guard let copy = MetaPage(Array(bytes[24..<end]), slot: Int(transaction & 1)),
                    copy.transaction == transaction, copy.digest == digest
                else { return nil }
                page = copy
            }
        }

        var bytes: [UInt8] {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(Note.byteCount)
            bytes.appendInteger(transaction)
            bytes.appendInteger(digest)
            bytes.appendInteger(sequence)
            if let page { bytes += page.bytes }
            bytes.appendInteger(bytes.withUnsafeBytes { Checksum.of($0, seed: 0) })
            return bytes
        }
    }

    enum Contents: Equatable {
        /// There is no file, or it is empty: the data were written by an earlier version, or somebody has removed it.
        case none
        /// The file has something else than a note or the word.
        case unknown
        case note(Note)
        /// The operator takes what is there.
        case acceptance
    }

    private let descriptor: CInt
    private let path: String
    /// Whether the last note could not be written, so that an older one stands there.
    private let failed = Atomic<Bool>(false)
    var isBehind: Bool { failed.load(ordering: .relaxed) }

    /// Opens the file, and makes it when it is missing.
    init(directory: String) throws(StorageFailure) {
        path = directory + "/" + CommitMark.fileName
        descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw StorageFailure(errno, "opening \(CommitMark.fileName)") }
        do throws(StorageFailure) {
            try CommitMark.checkIsFile(descriptor)
        } catch {
            close(descriptor)
            throw error
        }
        lengthen()
    }

    /// Throws unless a file is open there: reading a pipe would wait for somebody who writes.
    private static func checkIsFile(_ descriptor: CInt) throws(StorageFailure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw StorageFailure(errno, "opening \(fileName)") }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .noFile(fileName) }
    }

    deinit {
        close(descriptor)
    }

    /// What the note in a directory says that another process may be writing to. Makes no file.
    ///
    /// Throws when there is a file that can't be read: then nothing is known.
    static func contents(in directory: String) throws(StorageFailure) -> Contents {
        let descriptor = open(directory + "/" + fileName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            guard errno == ENOENT else { throw StorageFailure(errno, "opening \(fileName)") }
            return .none
        }
        defer { close(descriptor) }
        try checkIsFile(descriptor)
        return try contents(of: descriptor)
    }

    func read() throws(StorageFailure) -> Contents { try CommitMark.contents(of: descriptor) }

    private static func contents(of descriptor: CInt) throws(StorageFailure) -> Contents {
        let bytes = try readBytes(of: descriptor, at: 0, bytesMax: 2 * Note.byteCount, "reading \(fileName)")
        if String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines) == acceptance {
            return .acceptance
        }
        // A power cut may leave zeros.
        guard bytes.contains(where: { $0 != 0 }) else { return .none }
        // Room for a longer note was made behind one of an earlier version.
        let isLengthened =
            bytes.count == Note.byteCount && bytes[Note.bareByteCount...].allSatisfy { $0 == 0 }
        let note = isLengthened ? Array(bytes[..<Note.bareByteCount]) : bytes
        return Note(note).map { .note($0) } ?? .unknown
    }

    /// Returns whether the note was written. The file keeps the size that it has, so a full disk does not prevent it
    /// once the file has its bytes.
    @discardableResult
    func write(_ note: Note) -> Bool {
        let bytes = note.bytes
        let isWritten = pwrite(descriptor, bytes, bytes.count, 0) == bytes.count
        failed.store(!isWritten, ordering: .relaxed)
        return isWritten
    }

    /// Removes what an operator has written behind the note, and makes the note durable. Does nothing when the note
    /// could not be written.
    @discardableResult
    func settle() -> Bool {
        !isBehind && ftruncate(descriptor, off_t(Note.byteCount)) == 0 && sync()
    }

    /// Makes room for a note behind one of an earlier version. A power cut then leaves the one or the other, whole.
    private func lengthen() {
        guard fileBytes(descriptor) == Note.bareByteCount else { return }
        if ftruncate(descriptor, off_t(Note.byteCount)) == 0 { sync() }
    }

    @discardableResult
    func sync() -> Bool { fsync(descriptor) == 0 }
}
