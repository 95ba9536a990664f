import Foundation

extension System {
    /// Makes the name of the file at `path` durable in its folder: after a rename, after a file was made.
    package static func synchronizeFolder(of path: String) throws(SystemFailure) {
        let folder = (path as NSString).deletingLastPathComponent
        let descriptor = open(folder.isEmpty ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemFailure("opening its folder") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw SystemFailure("synchronizing its folder") }
    }
}
