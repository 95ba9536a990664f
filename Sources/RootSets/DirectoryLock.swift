import Core
import Foundation
import Platform

/// Locks a data directory until `deinit`, with flock(2) on a file for that purpose. The system releases the lock when
/// the process ends, even after a crash.
final class DirectoryLock: Sendable {
    static let fileName = "owner.lock"
    /// What `isRemoved` says.
    static let removal = "\(fileName) was removed, so another service may have the directory"
    /// What the file holds of a directory with data: this word, and behind it how large the data file may become.
    private static let word = "rootgate "
    /// What the file holds while the data file of a new storage is made.
    private static let newWord = "new\n"
    /// Of a number of 64 bits.
    private static let digits = 20

    private let descriptor: CInt

    /// Makes the directory (mode 700) when it is missing, but not the folders above it, and locks it.
    ///
    /// Throws `storageInUse` when another holder keeps the lock for a second, `storageFailed` when the directory can't
    /// be made or the lock file can't be opened.
    init(directory: String) throws(ServiceError) {
        func failure(_ action: String, _ failure: SystemFailure? = nil) -> ServiceError {
            let failure = failure ?? SystemFailure(action)
            return ServiceError(
                failure.number == ENOSPC ? .storageFull : .storageFailed, detail: UInt32(bitPattern: failure.number),
                "\(action) \(directory): \(failure.reason)")
        }
        if mkdir(directory, 0o700) != 0, errno != EEXIST {
            let made = SystemFailure("making the data directory")
            guard made.number == ENOENT else { throw failure(made.call, made) }
            let reason = "the folder above it is missing, and is not made"
            throw failure(made.call, SystemFailure(made.call, number: ENOENT, reason: reason))
        }
        descriptor = open(directory + "/" + DirectoryLock.fileName, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("opening the data directory") }
        // `deinit` closes the descriptor, also when `init` throws here. Closing it twice could close another file that
        // got its number.
        switch System.lock(descriptor, milliseconds: 1000) {
        case .locked: break
        case .held:
            throw ServiceError(.storageInUse, "the data directory \(directory) is in use by another rootgate")
        case .failed(let error): throw failure("locking the data directory", error)
        }
    }

    deinit {
        // A failure of close(2) has no consequence: no data are left to write, and the lock is released.
        close(descriptor)
    }

    /// What the directory holds.
    enum Use {
        case nothing
        /// A data file that is being made: somebody has called `markNew`, and nobody `markUsed` since.
        case unfinished
        /// Data were written here before: this process or an earlier one called `markUsed`.
        case data
    }

    /// Throws when the file can't be read: then nothing is known.
    func use() throws(StorageFailure) -> Use {
        let note = try readBytes(of: descriptor, at: 0, bytesMax: 64, "reading \(DirectoryLock.fileName)")
        if note.elementsEqual(DirectoryLock.newWord.utf8) { return .unfinished }
        // A power cut may leave zeros.
        return note.contains { $0 != 0 } ? .data : .nothing
    }

    /// Whether the file has no name any more. Then another process may have a lock on a new one.
    var isRemoved: Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_nlink == 0
    }

    /// Notes durably that the data file of a new storage will be made. A power cut before `markUsed` may leave a file
    /// that nobody can read.
    func markNew(in directory: String) throws(StorageFailure) {
        let note = Array(DirectoryLock.newWord.utf8)
        guard pwrite(descriptor, note, note.count, 0) == note.count, fsync(descriptor) == 0 else {
            throw StorageFailure(errno, "writing \(DirectoryLock.fileName)")
        }
        try DataFile.makeNamesDurable(in: directory)
    }

    /// Notes that the directory holds data, and how large the data file may become. On a full disk the note can't be
    /// written; the next start writes it. Until then a missing data file would be mistaken for a new storage.
    /// `isFirst`: whether the note is made durable, because it takes the place of `markNew`'s.
    func markUsed(bytesMax: Int, isFirst: Bool) {
        let number = String(bytesMax)
        let padding = String(repeating: " ", count: max(0, DirectoryLock.digits - number.count))
        let note = Array((DirectoryLock.word + padding + number + "\n").utf8)
        let written = pwrite(descriptor, note, note.count, 0)
        assert(written == note.count || written == -1, "a note was written only in part")
        if isFirst { fsync(descriptor) }
    }

    /// How large the data file of a directory may become, as its last user has noted; `nil` when there is no note.
    static func bytesMax(in directory: String) throws(StorageFailure) -> Int? {
        let file = open(directory + "/" + fileName, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        let count = word.utf8.count + digits
        let bytes = try readBytes(of: file, at: 0, bytesMax: count, "reading \(fileName)")
        guard bytes.count == count, bytes.starts(with: word.utf8) else { return nil }
        let number = Int(String(decoding: bytes[word.utf8.count...].drop { $0 == UInt8(ascii: " ") }, as: UTF8.self))
        return number.flatMap { $0 > 0 ? $0 : nil }
    }
}

/// What an open file has at `offset`, at most so many bytes: fewer only at the end of the file.
func readBytes(
    of descriptor: CInt, at offset: Int, bytesMax: Int, _ action: @autoclosure () -> String
) throws(StorageFailure) -> [UInt8] {
    do throws(SystemFailure) {
        return try System.bytes(of: descriptor, at: offset, bytesMax: bytesMax)
    } catch {
        throw StorageFailure(error.number, action())
    }
}

/// The file's length in bytes; `nil` when it can't be read.
func fileBytes(_ descriptor: CInt) -> Int? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int(status.st_size) : nil
}
