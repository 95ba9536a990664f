import Core
import Foundation
import Hashing
import Platform

/// The open file of an audit. It belongs to the writer's thread after `init`.
final class AuditFile {
    /// Where a chain of lines has got to: the number and the hash of its last line.
    struct Head: Equatable, Sendable {
        var number: UInt64 = 0
        var hash = Digest.zero
        /// The last line itself, if it was read from a file.
        var line: [UInt8] = []
        /// The sequence that the file's end tells: that of the last line that has one.
        var sequence: UInt64?
    }

    /// It changes when the file is renamed.
    var path: String
    /// The bytes of whole lines. The next line begins here.
    private(set) var length: Int
    /// Bytes behind `length` for which the disk has blocks.
    private(set) var room = 0
    /// Bytes of an unfinished last line that were cut off when the file was opened.
    private(set) var tornBytes = 0
    /// The last line when the file was opened; `nil` when it had none.
    private(set) var head: Head?
    private let descriptor: CInt
    private let calls: AuditCalls

    /// Opens the file for appending, and makes it (mode 0600) when it is missing. Cuts off an unfinished last line.
    ///
    /// Throws unless it is a regular file that ends with a line of an audit, and when another process has locked it.
    init(path: String, _ calls: AuditCalls) throws(AuditFailure) {
        self.path = path
        self.calls = calls
        descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0o600)
        length = 0
        guard descriptor >= 0 else {
            throw errno == ELOOP || errno == EISDIR
                ? .noFile(path: path) : .unopened(path: path, SystemFailure("open"))
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .unopened(path: path, SystemFailure("stat")) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .noFile(path: path) }
        // A process that is ending may hold the lock.
        switch System.lock(descriptor, milliseconds: 1000) {
        case .locked: break
        case .held: throw .inUse(path: path)
        case .failed(let failure): throw .unopened(path: path, failure)
        }
        let end = try AuditFile.end(of: descriptor, path, bytes: Int(status.st_size))
        precondition(end.length <= status.st_size, "the last line ends behind the file")
        length = end.length
        head = end.head
        tornBytes = Int(status.st_size) - length
        guard tornBytes == 0 || ftruncate(descriptor, off_t(length)) == 0 else {
            throw .unwritable(path: path, SystemFailure("cutting off an unfinished line"))
        }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    // MARK: The end of a file

    /// The last line of the newest file that was moved aside at `path`; `nil` when there is none.
    static func headOfMovedFile(of path: String) throws(AuditFailure) -> Head? {
        let folder = System.folder(of: path)
        let prefix = System.name(of: path) + "."
        let names: [String]
        do throws(SystemFailure) {
            names = try System.names(in: folder.isEmpty ? "." : folder)
        } catch {
            throw .unreadable(path: path, error)
        }
        let moved = names.compactMap { name -> (number: UInt64, path: String)? in
            guard name.hasPrefix(prefix), let number = UInt64(name.dropFirst(prefix.count)) else { return nil }
            return (number, folder.isEmpty ? name : folder + "/" + name)
        }
        guard let newest = moved.max(by: { $0.number < $1.number }) else { return nil }
        let descriptor = open(newest.path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw .unreadable(path: newest.path, SystemFailure("open")) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .unreadable(path: newest.path, SystemFailure("stat")) }
        return try end(of: descriptor, newest.path, bytes: Int(status.st_size)).head
    }

    /// The bytes of the file's whole lines, and the last of them.
    private static func end(
        of descriptor: CInt, _ path: String, bytes count: Int
    ) throws(AuditFailure) -> (length: Int, head: Head?) {
        let start = max(0, count - Limits.auditEndBytes)
        let bytes: [UInt8]
        do throws(SystemFailure) {
            bytes = try System.bytes(of: descriptor, at: start, bytesMax: count - start)
            guard bytes.count == count - start else {
                throw SystemFailure("read", number: EIO, reason: "it was cut")
            }
        } catch {
            throw .unreadable(path: path, error)
        }
        guard let feed = bytes.lastIndex(of: 10) else {
            // What is cut off is the beginning of a first line, or zeros that a crash has left. Anything else is
            // somebody's file.
            guard start == 0, AuditLine.isBeginning(bytes) || bytes.allSatisfy({ $0 == 0 }) else {
                throw .damaged(path: path, reason: "it has no line of an audit")
            }
            return (0, nil)
        }
        let line = Array(bytes[..<feed][((bytes[..<feed].lastIndex(of: 10) ?? -1) + 1)...])
        guard let known = line.withUnsafeBytes({ AuditLine($0) }) else {
            throw .damaged(path: path, reason: "its last line is none of an audit")
        }
        let sequence = known.sequence ?? lastSequence(in: bytes[..<feed])
        return (start + feed + 1, Head(number: known.number, hash: known.hash, line: line, sequence: sequence))
    }

    /// The sequence of the last of these lines that has one. The first line may be cut.
    private static func lastSequence(in bytes: ArraySlice<UInt8>) -> UInt64? {
        for line in bytes.split(separator: 10).reversed() {
            if let sequence = Array(line).withUnsafeBytes({ AuditLine($0)?.sequence }) { return sequence }
        }
        return nil
    }

    // MARK: Writing

    /// Appends lines with their line feeds and makes them durable. When it throws, the file ends where it did before,
    /// or in bytes that the next call overwrites.
    func append(_ lines: [UInt8]) throws(SystemFailure) {
        precondition(lines.last == 10, "the last line has no line feed")
        var written = 0
        while written < lines.count {
            let count = lines[written...].withUnsafeBytes { calls.write(descriptor, $0, length + written) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let failure = SystemFailure("write", number: count == 0 ? ENOSPC : errno)
                trim()
                throw failure
            }
            written += count
        }
        assert(written == lines.count, "more bytes were written than there are")
        guard calls.synchronize(descriptor) == 0 else {
            let failure = SystemFailure("fsync")
            trim()
            throw failure
        }
        length += lines.count
        room = max(0, room - lines.count)
    }

    /// Reserves disk blocks for `bytes` more bytes, or for as many as the disk has. Does nothing while most of them are
    /// reserved. A file system that can't reserve is asked for its free space instead.
    func reserve(_ bytes: Int) {
        precondition(room >= 0 && bytes >= 0, "room for less than nothing")
        guard room < bytes / 4 * 3 else { return }
        var wanted = bytes
        while wanted > room {
            switch calls.reserve(descriptor, length, wanted) {
            case 0:
                room = wanted
                return
            case EOPNOTSUPP, ENOSYS, EINVAL:
                room = min(bytes, freeBytes)
                return
            default: wanted /= 2
            }
        }
    }

    private var freeBytes: Int {
        var status = statvfs()
        guard fstatvfs(descriptor, &status) == 0 else { return 0 }
        return Int(
            clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue)
    }

    /// Whether the file at the path is still this one. It is not after a program such as logrotate has moved it.
    var isInPlace: Bool {
        var (here, there) = (stat(), stat())
        return fstat(descriptor, &here) == 0 && lstat(path, &there) == 0 && here.st_ino == there.st_ino
            && here.st_dev == there.st_dev
    }

    /// Whether the file has no name any more: what is written to it is lost when it is closed.
    var isRemoved: Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_nlink == 0
    }

    /// Removes what is behind the last whole line, and gives back the blocks that no line has used.
    func trim() {
        room = 0
        // When this fails, the next lines overwrite what is behind.
        _ = ftruncate(descriptor, off_t(length))
    }
}
