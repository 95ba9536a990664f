import Foundation

/// A temporary directory, removed with this object.
final class TemporaryDirectory {
    let path = NSTemporaryDirectory() + "/rootgate-bench-" + UUID().uuidString

    init() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}
