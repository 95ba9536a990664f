import Core
import Foundation
import Platform

/// Locks a data directory until `deinit`, with flock(2) on a file for that purpose. The system releases the lock when
/// the process ends, even after a crash.
final class DirectoryLock: Sendable {
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
        descriptor = open(directory + "/owner.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
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

    /// Whether data were written here before: this process or an earlier one called `markUsed`.
    var isUsed: Bool { (fileBytes(descriptor) ?? 0) > 0 }

    /// Notes that the directory holds data. On a full disk the note can't be written; the next start writes it. Until
    /// then a missing data file would be mistaken for a new storage.
    func markUsed() {
        let note = Array("rootgate\n".utf8)
        let written = pwrite(descriptor, note, note.count, 0)
        assert(written == note.count || written == -1, "a note was written only in part")
    }
}

/// The file's length in bytes; `nil` when it can't be read.
func fileBytes(_ descriptor: CInt) -> Int? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int(status.st_size) : nil
}
