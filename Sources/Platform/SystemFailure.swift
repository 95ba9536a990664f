import Foundation

/// A system call that failed, with its errno.
package struct SystemFailure: Error, CustomStringConvertible {
    package let call: String
    package let number: CInt
    /// What failed, in the system's words.
    package let reason: String

    /// `reason`: what to say instead of the text that belongs to `number`.
    package init(_ call: String, number: CInt = errno, reason: String? = nil) {
        self.call = call
        self.number = number
        self.reason = reason ?? String(cString: strerror(number))
    }

    package var description: String { "\(call): \(reason)" }
}
