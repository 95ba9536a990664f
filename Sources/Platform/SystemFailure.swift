import Foundation

/// The failure of a system call, with its errno.
package struct SystemFailure: Error, CustomStringConvertible {
    package let call: String
    package let number: CInt
    /// A description of the failure by the system, or the text that was given to `init`.
    package let reason: String

    /// `reason` replaces the system's text for `number`.
    package init(_ call: String, number: CInt = errno, reason: String? = nil) {
        self.call = call
        self.number = number
        self.reason = reason ?? String(cString: strerror(number))
    }

    package var description: String { "\(call): \(reason)" }
}
