import Foundation

extension System {
    /// The folder that a path names its last part in: `.` for a name alone. (Foundation's function ends the process for
    /// a relative path of one character.)
    package static func folder(of path: String) -> String {
        let whole = path.utf8.reversed().drop { $0 == UInt8(ascii: "/") }
        let folder = whole.drop { $0 != UInt8(ascii: "/") }
        guard !folder.isEmpty else { return path.hasPrefix("/") ? "/" : "." }
        let trimmed = folder.drop { $0 == UInt8(ascii: "/") }
        return trimmed.isEmpty ? "/" : String(decoding: Array(trimmed.reversed()), as: UTF8.self)
    }

    /// The last part of a path.
    package static func name(of path: String) -> String {
        let whole = path.utf8.reversed().drop { $0 == UInt8(ascii: "/") }
        return String(decoding: Array(whole.prefix { $0 != UInt8(ascii: "/") }.reversed()), as: UTF8.self)
    }

    /// Makes the name of the file at `path` durable in its folder: after a rename, after a file was made.
    package static func synchronizeFolder(of path: String) throws(SystemFailure) {
        let descriptor = open(folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemFailure("opening its folder") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw SystemFailure("synchronizing its folder") }
    }
}
