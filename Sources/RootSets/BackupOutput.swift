import Core
import Foundation
import Hashing

/// Where a backup is written to. Gathers, hashes and counts what is written, and slows it down if somebody wants so.
///
/// While a backup is written, the service can't use again what it frees. So what that costs is judged again and
/// again, also while the reader of a pipe does not read. A small storage is full within a tenth of a second.
final class BackupOutput {
    private static let pause = Duration.milliseconds(Limits.snapshotCostMilliseconds)
    private static let pieceBytes = 256 << 10
    /// As many bytes as a pipe takes without waiting when poll(2) says that it takes some.
    private static let pipeBytes = 4096

    private let descriptor: CInt
    private let isFile: Bool
    /// Bytes a second; `nil`: as fast as it goes.
    private let rate: Int?
    private let cost: SnapshotCost
    private let begun = ContinuousClock.now
    private var isHurried = false
    private var gathered: [UInt8] = []
    private var hash = SHA256.Stream()
    /// Bytes so far.
    private(set) var byteCount: UInt64 = 0

    init(_ descriptor: CInt, rate: Int?, _ cost: SnapshotCost) {
        self.descriptor = descriptor
        var status = stat()
        isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        self.rate = rate
        self.cost = cost
        gathered.reserveCapacity(BackupOutput.pieceBytes)
    }

    func append(_ bytes: [UInt8]) throws(StorageFailure) {
        try bytes.withRawBytes { bytes throws(StorageFailure) in try append(bytes) }
    }

    func append(_ bytes: UnsafeRawBufferPointer) throws(StorageFailure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(BackupOutput.pieceBytes - gathered.count)
            gathered.append(contentsOf: piece)
            byteCount += UInt64(piece.count)
            rest = rest.dropFirst(piece.count)
            if gathered.count == BackupOutput.pieceBytes { try flush() }
        }
    }

    /// Writes the digest of everything before it, and returns it.
    func finish() throws(StorageFailure) -> Digest {
        gathered.withUnsafeBytes { hash.update($0) }
        let digest = hash.finish()
        try write(gathered)
        try write(digest.bytes)
        byteCount += UInt64(Digest.byteCount)
        gathered = []
        return digest
    }

    private func flush() throws(StorageFailure) {
        gathered.withUnsafeBytes { hash.update($0) }
        try write(gathered)
        gathered.removeAll(keepingCapacity: true)
        try judge()
        while let rate, !isHurried {
            let due = begun + .seconds(Double(byteCount) / Double(rate))
            let wait = due - ContinuousClock.now
            guard wait > .zero else { return }
            usleep(UInt32(min(wait, BackupOutput.pause) / .microseconds(1)))
            try judge()
        }
    }

    /// Throws `givenUp` when the backup takes too much of the service's room. When it takes much, it is not slowed down
    /// any more.
    private func judge() throws(StorageFailure) {
        try cost.check()
        if try cost.present() == .much { isHurried = true }
    }

    private func write(_ bytes: [UInt8]) throws(StorageFailure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            if !isFile {
                var place = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                let ready = poll(&place, 1, CInt(Limits.snapshotCostMilliseconds))
                if ready < 0, errno != EINTR { throw StorageFailure(errno, "writing the backup") }
                try judge()
                guard ready > 0 else { continue }
            }
            let piece = isFile ? rest : rest.prefix(BackupOutput.pipeBytes)
            let count = piece.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count > 0 else { throw StorageFailure(count == 0 ? ENOSPC : errno, "writing the backup") }
            rest = rest.dropFirst(count)
        }
    }
}
