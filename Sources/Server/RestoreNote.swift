import Core
import Foundation
import Platform
import RootSets

/// A file in a data directory that was restored from a backup. The service logs its line at each start, until the
/// operator removes the file: what was removed after the backup is back.
struct RestoreNote {
    static let fileName = "restored"
    private static let bytesMax = 512

    let line: String

    init(_ summary: StorageRestore.Summary) {
        let date = Date(timeIntervalSince1970: Double(summary.header.time) / 1000).formatted(.iso8601)
        let log = summary.sequence > summary.header.sequence ? " and a log" : ""
        line =
            "restored from a backup of \(date)\(log), with all changes up to \(summary.sequence): what was removed or "
            + "revoked later is back"
    }

    /// Reads the line of a directory; `nil` when there is none.
    init?(in directory: String) {
        let path = directory + "/" + RestoreNote.fileName
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let bytes = try? System.bytes(of: descriptor, at: 0, bytesMax: RestoreNote.bytesMax)
        let text = String(decoding: bytes ?? [], as: UTF8.self).split(separator: "\n").first.map(String.init)
        line = text?.escapingControls ?? "restored from a backup"
    }

    func write(in directory: String) throws(ServiceError) {
        let path = directory + "/" + RestoreNote.fileName
        do throws(SystemFailure) {
            let descriptor = try System.create(path, Data((line + "\n").utf8))
            defer { close(descriptor) }
            guard fchmod(descriptor, 0o600) == 0, fsync(descriptor) == 0 else { throw SystemFailure("writing") }
        } catch {
            throw ServiceError(
                error.number == ENOSPC ? .storageFull : .storageFailed, "writing \(path): \(error.reason)")
        }
    }
}
