package import Core
import Foundation
import Hashing
import Platform

/// A file with a root secret, mode 0600.
///
///      0  "rootgate secret\n" (16)   16  version (4): 1   20  what it holds (4): 1, 2 or 3
///     24  the present generation: identifier (8), in use at (8, milliseconds since 1970), secret (32)
///     72  another generation, or zeros (48)
///    120  SHA-256 of the 120 bytes before it (32)
///
/// It holds 1: the present generation; 2: also the one before it; 3: also the next one, which is prepared. Versions
/// that know of no next one refuse a file with 3.
///
/// Numbers are little-endian. The file is replaced whole, so it never holds a part of a secret: it is written under
/// another name, synchronized and renamed, and then its folder is synchronized. Whoever changes it locks its folder.
package struct SecretFile: Sendable {
    /// Bytes of every file.
    package static let byteCount = 152
    /// The name of the file in a data directory.
    package static let standardName = "secret"

    private static let magic = Array("rootgate secret\n".utf8)
    private static let version: UInt32 = 1
    private static let generationsOffset = 24
    private static let generationBytes = 48
    private static let digestOffset = 120

    package let path: String
    private var folder: String { System.folder(of: path) }
    private var temporaryPath: String { path + ".new" }

    package init(path: String) {
        self.path = path
    }

    /// The file in a data directory.
    package init(dataDirectory: String) {
        self.init(path: dataDirectory + "/" + SecretFile.standardName)
    }

    // MARK: Reading

    /// Reads the secret.
    ///
    /// Throws unless the file is plain, belongs to this process's user or root, is closed to all others, and is whole.
    package func load() throws(SecretFailure) -> RootSecret {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT: throw .missing(path: path)
            case ELOOP: throw .noFile(path: path)
            default: throw .unreadable(path: path, SystemFailure("open"))
            }
        }
        defer { close(descriptor) }
        // The open file is judged, so that nobody can exchange it between the judgement and the reading.
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .unreadable(path: path, SystemFailure("stat")) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .noFile(path: path) }
        guard status.st_uid == geteuid() || status.st_uid == 0 else {
            throw .foreign(path: path, owner: UInt32(status.st_uid))
        }
        guard status.st_mode & 0o077 == 0 else { throw .readableByOthers(path: path, mode: UInt32(status.st_mode)) }
        guard status.st_size == SecretFile.byteCount else {
            throw .wrongLength(path: path, bytes: Int(status.st_size))
        }
        let contents = SecretMemory(count: SecretFile.byteCount)
        do throws(SystemFailure) {
            let count = try System.fill(contents.bytes, from: descriptor, at: 0)
            guard count == contents.count else { throw SystemFailure("read", number: EIO, reason: "it was cut") }
        } catch {
            throw .unreadable(path: path, error)
        }
        guard let secret = SecretFile.decode(contents) else { throw .damaged(path: path) }
        return secret
    }

    private static func decode(_ contents: SecretMemory) -> RootSecret? {
        precondition(contents.count == byteCount, "a file with a secret has another length")
        return contents.withBytes { bytes in
            let digest = SHA256.hash(UnsafeRawBufferPointer(rebasing: bytes[..<digestOffset]))
            guard Array(bytes[..<magic.count]) == magic, digest.bytes == Array(bytes[digestOffset...]),
                UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self)) == version
            else { return nil }
            switch UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 20, as: UInt32.self)) {
            case 1: return RootSecret(current: generation(0, in: bytes))
            case 2: return RootSecret(current: generation(0, in: bytes), previous: generation(1, in: bytes))
            case 3: return RootSecret(current: generation(0, in: bytes), next: generation(1, in: bytes))
            default: return nil
            }
        }
    }

    private static func generation(_ index: Int, in bytes: UnsafeRawBufferPointer) -> SecretGeneration {
        let start = generationsOffset + index * generationBytes
        precondition(index >= 0 && start + generationBytes <= digestOffset, "a file has two generations at most")
        let secret = SecretMemory(count: SecretGeneration.secretBytes)
        secret.bytes.copyBytes(from: bytes[(start + 16)..<(start + generationBytes)])
        return SecretGeneration(
            identifier: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self)),
            inUseAt: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: start + 8, as: UInt64.self)),
            secret: secret)
    }

    // MARK: Writing

    /// Reads the secret, and makes it when the file is missing. Returns whether it was made.
    ///
    /// Throws what `load` throws, and when the file can't be written.
    package func loadOrMake(
        at milliseconds: UInt64, random: RandomSource = .system
    ) throws(SecretFailure) -> (secret: RootSecret, isNew: Bool) {
        try whileLocked { () throws(SecretFailure) in
            do throws(SecretFailure) {
                return (try load(), false)
            } catch {
                guard case .missing = error else { throw error }
            }
            let secret = RootSecret(current: SecretGeneration(at: milliseconds, random: random))
            try write(secret)
            return (secret, true)
        }
    }

    /// Adds a fresh generation to the file, and makes the file when it is missing. `dropsPrevious`: only the fresh
    /// generation stays, so that nothing that was issued before is genuine any more, and one that is prepared never
    /// will be.
    ///
    /// Throws `prepared` when a generation is prepared, unless it is dropped; `tooSoon` when a second rotation would
    /// end the validity of something that has not expired; what `load` throws; and when the file can't be written.
    package func rotate(
        at milliseconds: UInt64, dropsPrevious: Bool = false, random: RandomSource = .system
    ) throws(SecretFailure) -> RootSecret {
        try whileLocked { () throws(SecretFailure) in
            var known: RootSecret?
            do throws(SecretFailure) {
                known = try load()
            } catch {
                guard case .missing = error else { throw error }
            }
            let secret: RootSecret
            if let known, !dropsPrevious {
                try demandRoom(in: known, at: milliseconds)
                secret = known.rotated(at: milliseconds, random: random)
            } else {
                secret = RootSecret(current: SecretGeneration(at: milliseconds, random: random))
            }
            try write(secret)
            return secret
        }
    }

    /// Adds a fresh generation to the file as the next one: it is accepted, and not used yet.
    ///
    /// Throws `prepared` when there is a next one already; `tooSoon` while the one before the present one is needed,
    /// because a file has room for one beside the present one; what `load` throws, so `missing` when there is no file;
    /// and when the file can't be written.
    package func prepare(
        at milliseconds: UInt64, random: RandomSource = .system
    ) throws(SecretFailure) -> RootSecret {
        try whileLocked { () throws(SecretFailure) in
            let known = try load()
            try demandRoom(in: known, at: milliseconds)
            let secret = known.prepared(at: milliseconds, random: random)
            try write(secret)
            return secret
        }
    }

    /// Makes the next generation the present one, and keeps the present one as the one before: see
    /// `RootSecret.usingNext`.
    ///
    /// Throws `notPrepared` when there is no next one, what `load` throws, and when the file can't be written.
    package func usePrepared(at milliseconds: UInt64) throws(SecretFailure) -> RootSecret {
        try whileLocked { () throws(SecretFailure) in
            guard let secret = try load().usingNext(at: milliseconds) else { throw .notPrepared(path: path) }
            try write(secret)
            return secret
        }
    }

    /// Throws unless a fresh generation can take the place beside the present one.
    private func demandRoom(in known: RootSecret, at milliseconds: UInt64) throws(SecretFailure) {
        guard known.next == nil else { throw .prepared(path: path) }
        guard known.isPreviousSettled(at: milliseconds) else {
            throw .tooSoon(path: path, secondsLeft: (known.previousEnd - milliseconds) / 1000 + 1)
        }
    }

    /// Calls `body` while the file's folder is locked against other processes that change the file.
    private func whileLocked<R>(_ body: () throws(SecretFailure) -> R) throws(SecretFailure) -> R {
        let descriptor = open(folder.isEmpty ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0, flock(descriptor, LOCK_EX) == 0 else {
            let failure = SystemFailure("locking its folder")
            if descriptor >= 0 { close(descriptor) }
            throw .unwritable(path: path, failure)
        }
        defer { close(descriptor) }
        return try body()
    }

    /// Replaces the file. The folder must be locked.
    private func write(_ secret: RootSecret) throws(SecretFailure) {
        let contents = SecretFile.encode(secret)
        // A process that was killed while it held the lock has left it behind.
        unlink(temporaryPath)
        let descriptor = open(temporaryPath, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .unwritable(path: path, SystemFailure("making \(temporaryPath)")) }
        defer { close(descriptor) }
        // The process's mask may have taken bits away, and never adds any.
        guard fchmod(descriptor, 0o600) == 0,
            Foundation.write(descriptor, contents.baseAddress, contents.count) == contents.count,
            fsync(descriptor) == 0, rename(temporaryPath, path) == 0
        else {
            let failure = SystemFailure("write")
            unlink(temporaryPath)
            throw .unwritable(path: path, failure)
        }
        do throws(SystemFailure) {
            try System.synchronizeFolder(of: path)
        } catch {
            throw .unwritable(path: path, error)
        }
    }

    private static func encode(_ secret: RootSecret) -> SecretMemory {
        let contents = SecretMemory(count: byteCount)
        let bytes = contents.bytes
        bytes.copyBytes(from: magic)
        bytes.storeBytes(of: version.littleEndian, toByteOffset: 16, as: UInt32.self)
        let holds: UInt32 = secret.next != nil ? 3 : secret.previous != nil ? 2 : 1
        bytes.storeBytes(of: holds.littleEndian, toByteOffset: 20, as: UInt32.self)
        for (index, generation) in secret.generations.enumerated() {
            let start = generationsOffset + index * generationBytes
            precondition(start + generationBytes <= digestOffset, "a file has two generations at most")
            bytes.storeBytes(of: generation.identifier.littleEndian, toByteOffset: start, as: UInt64.self)
            bytes.storeBytes(of: generation.inUseAt.littleEndian, toByteOffset: start + 8, as: UInt64.self)
            generation.secret.withBytes { secret in
                UnsafeMutableRawBufferPointer(rebasing: bytes[(start + 16)...]).copyMemory(from: secret)
            }
        }
        SHA256.hash(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[..<digestOffset]))
            .store(to: contents.baseAddress + digestOffset)
        return contents
    }
}
