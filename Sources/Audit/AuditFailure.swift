import Foundation
package import Platform

/// Why an audit can't be kept or read. It is for the operator; a client never gets one.
package enum AuditFailure: Error, Sendable {
    case unopened(path: String, SystemFailure)
    case unreadable(path: String, SystemFailure)
    case unwritable(path: String, SystemFailure)
    /// It is a folder, a link or a device.
    case noFile(path: String)
    /// Another process writes to it.
    case inUse(path: String)
    /// Its last line is none of an audit, or its tag is not genuine.
    case damaged(path: String, reason: String)
}

extension AuditFailure: CustomStringConvertible {
    /// One line: what is wrong and what to do.
    package var description: String {
        switch self {
        case .unopened(let path, let failure):
            "can't open the audit \(path): \(failure)"
                + (failure.number == ENOENT ? " (make its folder first)" : "")
        case .unreadable(let path, let failure): "can't read the audit \(path): \(failure)"
        case .unwritable(let path, let failure): "can't write the audit \(path): \(failure)"
        case .noFile(let path): "the audit \(path) is not a plain file"
        case .inUse(let path): "the audit \(path) is in use by another rootgate"
        case .damaged(let path, let reason):
            "refused to continue the audit \(path): \(reason); verify it with rootgate audit, and move it away"
        }
    }
}
