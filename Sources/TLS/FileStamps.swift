import Foundation

/// What tells whether files have changed: for each its place, size and time of the last change.
struct FileStamps: Equatable {
    private struct Stamp: Equatable {
        let device: UInt64
        let inode: UInt64
        let size: Int64
        let seconds: Int
        let nanoseconds: Int
    }

    /// `nil` for a file that is not there.
    private let stamps: [Stamp?]

    init(of paths: [String]) {
        stamps = paths.map { path in
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            #if os(Linux)
            let time = status.st_mtim
            #else
            let time = status.st_mtimespec
            #endif
            return Stamp(
                device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino),
                size: Int64(status.st_size), seconds: time.tv_sec, nanoseconds: time.tv_nsec)
        }
    }
}
