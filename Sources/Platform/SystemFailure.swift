import Foundation

/// A system call that failed, with its errno.
package struct SystemFailure: Error, CustomStringConvertible {
    package let call: String
    package let number: CInt

    package init(_ call: String, number: CInt = errno) {
        self.call = call
        self.number = number
    }

    package var description: String { "\(call): \(String(cString: strerror(number)))" }
}
