import Core
import Foundation
import Hashing

/// An entry of a backup. Its value's seal was checked.
struct BackupEntry {
    let database: DatabaseName
    let key: [UInt8]
    /// As it is stored, with its seal.
    let value: [UInt8]
}

/// Reads a backup from an open file or a pipe, and checks all of it. It holds one entry and a piece of the stream in
/// memory.
///
/// The digest is at the end. So what was read must not be believed before `next` has returned `nil`.
final class BackupReader {
    private static let pieceBytes = 1 << 20
    /// LMDB's own limit.
    private static let keyBytesMax = 511

    let header: BackupHeader
    private let descriptor: CInt
    private var piece: [UInt8] = []
    private var place = 0
    private var hash = SHA256.Stream()
    /// Bytes that were hashed.
    private(set) var byteCount: UInt64 = 0
    private var entries: UInt64 = 0
    /// The entry before.
    private var last: (database: Int, key: [UInt8])?
    /// The digest at the end, when all of the backup has turned out to be what was written.
    private(set) var digest: Digest?

    /// Reads the header. Throws why this version can't read the backup.
    init(_ descriptor: CInt) throws(StorageFailure) {
        self.descriptor = descriptor
        var bytes: [UInt8] = []
        var hash = SHA256.Stream()
        while bytes.count < BackupHeader.byteCount {
            let more = try BackupReader.read(descriptor, BackupHeader.byteCount - bytes.count)
            // A file that begins otherwise is none, however short it is.
            guard !more.isEmpty else {
                let isBeginning = BackupHeader.magic.starts(with: bytes.prefix(16)) && !bytes.isEmpty
                throw isBeginning
                    ? BackupReader.truncated(at: UInt64(bytes.count))
                    : .refused("the file is no backup that rootgate has written")
            }
            bytes += more
        }
        header = try BackupHeader(reading: bytes)
        bytes.withUnsafeBytes { hash.update($0) }
        self.hash = hash
        byteCount = UInt64(bytes.count)
    }

    /// Reads the next entry. Returns `nil` at the end, when the whole backup is what was written.
    func next() throws(StorageFailure) -> BackupEntry? {
        guard digest == nil else { return nil }
        let head = try take(BackupHeader.entryBytes)
        if head[0] == BackupHeader.end {
            try finish(head)
            return nil
        }
        let keyCount = Int(head[2]) | Int(head[3]) << 8
        let valueCount = head[4...].reversed().reduce(0) { $0 << 8 | Int($1) }
        guard let database = DatabaseName(rawValue: Int(head[0])), head[1] == 0,
            let order = StorageWalk.order.firstIndex(of: database), keyCount > 0, keyCount <= BackupReader.keyBytesMax,
            valueCount >= SealedValue.sealBytes, valueCount <= Limits.backupValueBytesMax,
            database != .packed || keyCount == 8
        else { throw damage }
        let key = try take(keyCount)
        let value = try take(valueCount)
        if let last, last.database > order || last.database == order && !isAscending(last.key, key, in: database) {
            throw damage
        }
        last = (order, key)
        let isGenuine = key.withUnsafeBytes { key in
            let seed = Database.seed(of: key, in: database)
            return value.withUnsafeBytes { SealedValue($0)?.isGenuine(seed: seed) ?? false }
        }
        guard isGenuine else { throw damage }
        entries += 1
        return BackupEntry(database: database, key: key, value: value)
    }

    /// Reads what is left, and checks it.
    func checkRest() throws(StorageFailure) {
        while try next() != nil {}
    }

    private func finish(_ head: [UInt8]) throws(StorageFailure) {
        let before = byteCount - UInt64(head.count)
        let counts = try take(BackupHeader.endBytes - BackupHeader.entryBytes)
        func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: counts.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self) })
        }
        guard head.dropFirst().allSatisfy({ $0 == 0 }), word(0) == entries, word(8) == before else { throw damage }
        let expected = hash.finish()
        let found = try take(Digest.byteCount, isHashed: false)
        guard found == expected.bytes else {
            throw .refused("the backup is damaged: its SHA-256 is not that of its contents")
        }
        guard place == piece.count, try BackupReader.read(descriptor, 1).isEmpty else {
            throw .refused("the backup is damaged: something follows its end")
        }
        digest = expected
    }

    private var damage: StorageFailure {
        .refused("the backup is damaged before byte \(byteCount): entry \(entries + 1) is not what was written")
    }

    private static func truncated(at bytes: UInt64) -> StorageFailure {
        .refused("the backup is truncated: it ends after \(bytes) bytes")
    }

    private func isAscending(_ key: [UInt8], _ next: [UInt8], in database: DatabaseName) -> Bool {
        guard database == .packed else { return key.lexicographicallyPrecedes(next) }
        func number(_ key: [UInt8]) -> UInt64 { key.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) } }
        return number(key) < number(next)
    }

    /// Takes so many bytes of the stream. Memory grows with what is there, not with what a damaged length says.
    private func take(_ count: Int, isHashed: Bool = true) throws(StorageFailure) -> [UInt8] {
        var taken: [UInt8] = []
        while taken.count < count {
            if place == piece.count {
                piece = try BackupReader.read(descriptor, BackupReader.pieceBytes)
                place = 0
                guard !piece.isEmpty else { throw BackupReader.truncated(at: byteCount + UInt64(taken.count)) }
            }
            let end = min(piece.count, place + count - taken.count)
            taken += piece[place..<end]
            place = end
        }
        if isHashed {
            taken.withUnsafeBytes { hash.update($0) }
            byteCount += UInt64(count)
        }
        return taken
    }

    private static func read(_ descriptor: CInt, _ count: Int) throws(StorageFailure) -> [UInt8] {
        while true {
            var failure: CInt = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                let read = Foundation.read(descriptor, buffer.baseAddress, count)
                if read < 0 { failure = errno }
                initialized = max(0, read)
            }
            if failure == 0 { return bytes }
            guard failure == EINTR else { throw StorageFailure(failure, "reading the backup") }
        }
    }
}
