import Foundation

/// A small disk of a test's own, in memory.
///
/// It is taken out of the tree of folders at once, and lives as long as this process has it open. So nothing is left of
/// it, however the process ends.
package final class SmallDisk {
    private let scratch = ScratchDirectory()
    private let descriptor: CInt

    /// The path of the disk's folder, also for other processes of this user. No path leads out of it.
    package let path: String

    /// `nil` when the system does not allow it.
    package init?(mebibytes: Int) {
        guard geteuid() == 0, succeeds("mount", ["-t", "tmpfs", "-o", "size=\(mebibytes)m", "tmpfs", scratch.path])
        else { return nil }
        descriptor = open(scratch.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        path = "/proc/\(getpid())/fd/\(descriptor)"
        guard succeeds("umount", ["-l", scratch.path]), descriptor >= 0 else { return nil }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Bytes that the disk has left.
    package var freeBytes: Int? {
        get throws {
            try FileManager.default.attributesOfFileSystem(forPath: path)[.systemFreeSize].flatMap { $0 as? Int }
        }
    }

    package static let isAvailable: Bool = SmallDisk(mebibytes: 1) != nil
}
