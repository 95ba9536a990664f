import Foundation

/// Which file a name leads to: another one has another identity, as long as both exist.
struct FileIdentity: Equatable {
    private let device: UInt64
    private let number: UInt64

    /// `nil`: there is no such file, or the system does not tell.
    init?(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        (device, number) = (UInt64(truncatingIfNeeded: status.st_dev), UInt64(truncatingIfNeeded: status.st_ino))
    }
}
