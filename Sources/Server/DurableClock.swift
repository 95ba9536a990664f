import Core
import Dispatch
import Foundation
import Platform
import Synchronization

/// A clock in milliseconds since 1970 that does not go back over restarts. Grants, invitations, principals and keys
/// expire by it.
///
/// It runs with a monotonic clock and follows the system's date forward: when the date is ahead of it, it leaps to the
/// date. When the date is set back, it goes on from where it was. Its time is stored in a file once a minute, at the
/// end, and before anybody sees a time far ahead of the stored one. The date may be set back while no service runs.
/// After such a restart it continues at the last stored time. So a grant may live longer than its validity: by the time
/// in which no service ran, and after a crash by one minute more. What expired in that time may be valid again.
final class DurableClock: Sendable {
    /// The name of the file in a data directory: the time (8, little-endian), and its complement (8).
    static let fileName = "clock"
    private static let fileBytes = 16
    /// A time that is so many milliseconds ahead of the stored one is stored before it is returned. It is more than the
    /// minute after which the time is stored anyway.
    private static let leapMilliseconds: UInt64 = 65_000

    /// The end of the year 9999, as milliseconds since 1970. A later time was not written by a service.
    private static let timeMax: UInt64 = 253_402_300_800_000

    private let elapsed: MonotonicClock
    private let date: @Sendable () -> Date
    /// What is added to the monotonic clock; it never becomes smaller.
    private let offset: Atomic<UInt64>
    private let descriptor: CInt
    /// Whether the file had no time when it was opened: it was missing, empty or damaged.
    let hadNone: Bool
    /// The time that was written last.
    private let written: Atomic<UInt64>
    private let writing = Lock(())

    /// Opens the file in the data directory, and makes it when it is missing. A damaged file counts as missing.
    ///
    /// Throws when the file can't be opened or read.
    init(
        dataDirectory: String, elapsed: MonotonicClock, date: @escaping @Sendable () -> Date
    ) throws(SystemFailure) {
        self.elapsed = elapsed
        self.date = date
        descriptor = open(
            dataDirectory + "/" + DurableClock.fileName, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else { throw SystemFailure("opening \(DurableClock.fileName)") }
        let now = elapsed.milliseconds
        let stored: UInt64
        do throws(SystemFailure) {
            stored = try DurableClock.stored(in: descriptor)
        } catch {
            close(descriptor)
            throw error
        }
        offset = Atomic(stored > now ? stored - now : 0)
        written = Atomic(stored)
        hadNone = stored == 0
        // A power cut leaves the file from now on, if the file system can promise that.
        if hadNone { try? System.synchronizeFolder(of: dataDirectory + "/" + DurableClock.fileName) }
    }

    deinit {
        close(descriptor)
    }

    /// Whether the data directory has the file: a service was started there before.
    static func isStored(in dataDirectory: String) -> Bool {
        FileManager.default.fileExists(atPath: dataDirectory + "/" + fileName)
    }

    /// The time that is stored in a data directory that another process may use; 0 when there is none.
    ///
    /// Throws when the file can't be read.
    static func time(in dataDirectory: String) throws(ServiceError) -> UInt64 {
        do throws(SystemFailure) {
            return try storedTime(in: dataDirectory)
        } catch {
            throw ServiceError(
                .storageFailed, detail: UInt32(bitPattern: error.number),
                "reading \(dataDirectory)/\(fileName): \(error.reason)")
        }
    }

    /// The same. Throws what the system says when the file can't be read.
    static func storedTime(in dataDirectory: String) throws(SystemFailure) -> UInt64 {
        let descriptor = open(dataDirectory + "/" + fileName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        return try stored(in: descriptor)
    }

    /// Makes the file in a data directory that has none.
    static func write(_ time: UInt64, in dataDirectory: String) throws(ServiceError) {
        let path = dataDirectory + "/" + fileName
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw ServiceError(.storageFailed, "\(path) can't be made") }
        defer { close(descriptor) }
        let words = (time.littleEndian, ~time.littleEndian)
        let isWritten = withUnsafeBytes(of: words) { pwrite(descriptor, $0.baseAddress, $0.count, 0) } == fileBytes
        guard isWritten, fsync(descriptor) == 0 else {
            throw ServiceError(errno == ENOSPC ? .storageFull : .storageFailed, "\(path) can't be written")
        }
    }

    private static func stored(in descriptor: CInt) throws(SystemFailure) -> UInt64 {
        let bytes = try System.bytes(of: descriptor, at: 0, bytesMax: fileBytes)
        guard bytes.count == fileBytes else { return 0 }
        let (time, complement) = bytes.withUnsafeBytes {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        let isTime = time == ~complement && UInt64(littleEndian: time) < timeMax
        return isTime ? UInt64(littleEndian: time) : 0
    }

    var milliseconds: UInt64 {
        let time = present
        if isLeap(time) { storeLeap() }
        return time
    }

    private var present: UInt64 {
        let now = elapsed.milliseconds
        let date = UInt64(max(0, date().timeIntervalSince1970 * 1000))
        return now + offset.max(date > now ? date - now : 0, ordering: .relaxed).newValue
    }

    private func isLeap(_ time: UInt64) -> Bool {
        time >= written.load(ordering: .acquiring) + DurableClock.leapMilliseconds
    }

    /// Writes the time that the date has leapt to, so that a process that is killed now leaves it. Who needs the time
    /// does not wait until it is durable.
    private func storeLeap() {
        let isWritten = writing.withLock { _ in
            let time = present
            return isLeap(time) && write(time)
        }
        if isWritten { DispatchQueue.global().async { [self] in _ = fsync(descriptor) } }
    }

    /// Writes the time. One that can't be written is tried again when the next minute is over.
    private func write(_ time: UInt64) -> Bool {
        let words = (time.littleEndian, ~time.littleEndian)
        let count = withUnsafeBytes(of: words) { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        written.store(time, ordering: .releasing)
        return count == DurableClock.fileBytes
    }

    /// The same as a value that hides the file.
    var clock: MonotonicClock { MonotonicClock { self.milliseconds } }

    /// Stores the time. Returns whether it was stored; a full disk does not prevent it once the file has its bytes.
    @discardableResult
    func store() -> Bool {
        writing.withLock { _ in write(present) } && fsync(descriptor) == 0
    }
}
