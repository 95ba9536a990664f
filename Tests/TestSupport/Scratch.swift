import Foundation

/// A directory of a test's own, removed with this object.
package final class ScratchDirectory: Sendable {
    package let path: String

    package init() {
        path = NSTemporaryDirectory() + "/rootgate-test-" + UUID().uuidString
        try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}

/// The folder of public test vectors that `ROOTGATE_TEST_VECTORS` names; `nil` when it is not set.
package let vectorsDirectory: String? = ProcessInfo.processInfo.environment["ROOTGATE_TEST_VECTORS"].flatMap {
    $0.isEmpty ? nil : $0
}
