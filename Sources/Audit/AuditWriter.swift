import Core
import Foundation
import Hashing
import Platform

/// The writing side of an audit: the open file, the head of the chain, and lines that could not be written yet.
///
/// Sendable without the compiler's proof: it belongs to the thread of the trail from when that thread binds it until it
/// unbinds it. Each method asserts this.
final class AuditWriter: @unchecked Sendable {
    struct Result {
        /// Entries whose lines are durable.
        var settled: [AuditTrail.Entry] = []
        /// Entries whose lines could not be written. They are kept and written later.
        var unanswered: [AuditTrail.Entry] = []
        var failure: SystemFailure?
    }

    let thread = ThreadConfinement()
    private var file: AuditFile
    private var head: AuditFile.Head
    private let settings: AuditTrail.Settings
    private let calls: AuditCalls
    private let log: Log
    /// Entries that were told of a failure, and whose lines are still to be written.
    private var kept: [AuditTrail.Entry] = []
    private var failure: SystemFailure?

    init(
        _ file: AuditFile, _ head: AuditFile.Head, _ settings: AuditTrail.Settings, _ calls: AuditCalls,
        _ log: Log
    ) {
        self.file = file
        self.head = head
        self.settings = settings
        self.calls = calls
        self.log = log
    }

    /// Whether lines wait for a disk that fails.
    var isFailing: Bool { failure != nil }

    /// Bytes for which the disk has blocks behind the last line.
    var room: Int { file.room }

    func reserve(_ bytes: Int) {
        thread.assertIsCurrentOrUnbound()
        file.reserve(bytes)
    }

    /// Writes the lines of entries behind those that could not be written before.
    func write(
        _ entries: [AuditTrail.Entry], _ key: AuditTrail.Key, now: () -> UInt64
    ) -> Result {
        thread.assertIsCurrentOrUnbound()
        var rest = (kept + entries)[...]
        var result = Result()
        kept = []
        if !rest.isEmpty, file.isRemoved {
            log(.critical, "the audit \(file.path) was removed, and its lines are lost")
            beginNewFile(at: now(), key)
        }
        while !rest.isEmpty {
            var lines: [UInt8] = []
            var next = head
            var count = 0
            for entry in rest {
                lines += AuditWriter.line(of: entry.record, at: entry.at, key, behind: &next) + [10]
                count += 1
                if lines.count >= Limits.auditBatchBytesMax { break }
            }
            assert(next.number == head.number + UInt64(count), "a line has another number than its place")
            do throws(SystemFailure) {
                // A new one could not be made.
                if file.isRemoved { throw SystemFailure("writing to a file that was removed", number: ENOENT) }
                try file.append(lines)
            } catch {
                fail(error)
                result.failure = error
                result.unanswered = Array(rest)
                kept = rest.map {
                    AuditTrail.Entry(record: $0.record, at: $0.at, reservation: $0.reservation, completion: nil)
                }
                return result
            }
            if failure != nil { log(.info, "the audit \(file.path) is written again") }
            failure = nil
            head = next
            result.settled += rest.prefix(count)
            rest = rest.dropFirst(count)
            if file.length >= settings.fileBytesMax { beginNewFile(at: now(), key) }
        }
        return result
    }

    private func fail(_ error: SystemFailure) {
        if failure == nil { log(.error, "the audit \(file.path) can't be written: \(error)") }
        failure = error
    }

    private static func line(
        of record: AuditRecord, at time: UInt64, _ key: AuditTrail.Key, behind head: inout AuditFile.Head
    ) -> [UInt8] {
        let line = AuditLine.bytes(
            of: record, number: head.number + 1, at: time, key: key.name, before: head.hash, key.authenticator)
        head = AuditFile.Head(number: head.number + 1, hash: SHA256.hash(line))
        return line
    }

    /// Whether the path has another file now, or none.
    var isMoved: Bool { !file.isInPlace }

    /// Moves the file aside, unless somebody else has, and begins another one whose first line continues the chain. On
    /// a failure the lines go on in the present file; so they do when another file has the name for the moved one.
    func beginNewFile(at time: UInt64, _ key: AuditTrail.Key) {
        thread.assertIsCurrentOrUnbound()
        let digits = String(head.number)
        let movedPath = file.path + "." + String(repeating: "0", count: max(0, 12 - digits.count)) + digits
        let wasMoved = !file.isInPlace
        guard wasMoved || file.length > 0 else { return }
        let temporaryPath = file.path + ".new"
        unlink(temporaryPath)
        do throws(AuditFailure) {
            let next = try AuditFile(path: temporaryPath, calls)
            next.reserve(settings.aheadBytes + settings.reserveBytes)
            var newHead = head
            let detail =
                file.isRemoved
                ? "another program removed the file before"
                : wasMoved ? "another program moved the file before" : System.name(of: movedPath)
            let line = AuditWriter.line(
                of: .ofService("continue", detail: detail), at: time, key, behind: &newHead)
            do throws(SystemFailure) {
                try next.append(line + [10])
                if !wasMoved { try AuditWriter.move(file.path, to: movedPath) }
                if rename(temporaryPath, file.path) != 0 { throw SystemFailure("rename") }
            } catch {
                throw .unwritable(path: file.path, error)
            }
            // From here on the other file is the present one, whatever happens.
            file.trim()
            next.path = file.path
            file = next
            head = newHead
            log(.info, "the audit \(file.path) goes on in a new file; before it: \(detail)")
            do throws(SystemFailure) {
                try System.synchronizeFolder(of: file.path)
            } catch {
                log(.warning, "the new names of the audit may be lost in a crash: \(error)")
            }
        } catch {
            unlink(temporaryPath)
            log(.warning, "the audit goes on in the same file: \(error)")
        }
    }

    /// Renames a file, unless another one has the new name.
    private static func move(_ path: String, to movedPath: String) throws(SystemFailure) {
        var status = stat()
        guard lstat(movedPath, &status) != 0 else { throw SystemFailure("renaming to \(movedPath)", number: EEXIST) }
        guard rename(path, movedPath) == 0 else { throw SystemFailure("rename") }
    }

    func close() {
        thread.assertIsCurrentOrUnbound()
        precondition(kept.isEmpty || isFailing, "lines are kept although the file can be written")
        file.trim()
    }
}
