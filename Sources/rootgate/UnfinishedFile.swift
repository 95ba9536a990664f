import Foundation
import Platform

/// A new file, mode 0600, that gets its name when all of it is written and durable. It replaces no other file. Until
/// then its name has an ending; it is removed with this object unless it was finished.
final class UnfinishedFile {
    let descriptor: CInt
    private let path: String
    private let temporaryPath: String

    /// Throws a `FileFailure` when there is such a file, or when none can be made.
    init(_ path: String) throws(FileFailure) {
        var status = stat()
        if lstat(path, &status) == 0 { throw UnfinishedFile.exists(path) }
        var name = Array((path + ".unfinished-XXXXXX").utf8CString)
        descriptor = mkstemp(&name)
        guard descriptor >= 0 else { throw FileFailure("make", path, SystemFailure("open")) }
        self.path = path
        temporaryPath = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        close(descriptor)
        // There is none any more when the file was finished.
        unlink(temporaryPath)
    }

    func finish() throws(FileFailure) {
        guard fsync(descriptor) == 0 else { throw FileFailure("write", path, SystemFailure("fsync")) }
        // A link replaces no file. Where there are no links, a file that appears at this moment would be replaced.
        if link(temporaryPath, path) != 0 {
            var status = stat()
            guard errno != EEXIST, lstat(path, &status) != 0 else { throw UnfinishedFile.exists(path) }
            guard rename(temporaryPath, path) == 0 else {
                throw FileFailure("make", path, SystemFailure("rename"))
            }
        } else {
            // A process that ends before this object does leaves no second name.
            unlink(temporaryPath)
        }
        do throws(SystemFailure) {
            try System.synchronizeFolder(of: path)
        } catch {
            throw FileFailure("make durable", path, error)
        }
    }

    private static func exists(_ path: String) -> FileFailure {
        FileFailure("write", path, SystemFailure("open", number: EEXIST, reason: "it exists, and is not overwritten"))
    }
}
