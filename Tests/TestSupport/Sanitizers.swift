import Foundation

/// Whether the tests, and the programs beside them, are built with AddressSanitizer or ThreadSanitizer.
public let isSanitized = ProcessInfo.processInfo.environment["ROOTGATE_TEST_SANITIZED"] != nil
