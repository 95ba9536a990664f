import Core
import Foundation

/// The lock on a data directory, held until `deinit`: an flock(2) on a file of its own, which the system releases
/// when the process ends, however it ends.
final class DirectoryLock: Sendable {
    private let descriptor: CInt

    /// Makes the directory (mode 700) when it is missing.
    ///
    /// Throws `storageInUse` when somebody holds it for a second, `storageFailed` when it can't be made or opened.
    init(directory: String) throws(ServiceError) {
        func failure(_ action: String) -> ServiceError {
            let number = errno
            return ServiceError(
                number == ENOSPC ? .storageFull : .storageFailed, detail: UInt32(bitPattern: number),
                "\(action) \(directory): \(String(cString: strerror(number)))")
        }
        if mkdir(directory, 0o700) != 0, errno != EEXIST { throw failure("making the data directory") }
        descriptor = open(directory + "/owner.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("opening the data directory") }
        // A process that is ending, or a child that it is just starting, gets a second to release the lock.
        var tries = 100
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let held = errno == EWOULDBLOCK
            let error = failure("locking the data directory")
            tries -= 1
            // `deinit` closes the descriptor. It must not be closed here too: its number may belong to another file
            // then.
            guard held, tries > 0 else {
                throw held
                    ? ServiceError(.storageInUse, "the data directory \(directory) is in use by another rootgate")
                    : error
            }
            usleep(10_000)
        }
    }

    deinit {
        // A failure of close(2) changes nothing: nothing is left to be written and the lock is released.
        close(descriptor)
    }

    /// Whether somebody wrote data here before: `markUsed` was called, by this process or another.
    var isUsed: Bool { (fileBytes(descriptor) ?? 0) > 0 }

    /// Notes that there are data now. A note that can't be written, on a full disk, is written at the next start: until
    /// then a missing data file would be taken for a new storage.
    func markUsed() {
        let note = Array("rootgate\n".utf8)
        let written = pwrite(descriptor, note, note.count, 0)
        assert(written == note.count || written == -1, "a note of a few bytes was cut in two")
    }
}

/// The file's length in bytes; `nil` when it can't be read.
func fileBytes(_ descriptor: CInt) -> Int? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int(status.st_size) : nil
}
