import Core
import Foundation

/// Throws `limitExceeded` unless the text has at most that many bytes of UTF-8.
func check(_ text: String?, _ what: String, bytesMax: Int = Limits.textBytesMax) throws(ServiceError) {
    try checkLimit(text?.utf8.count ?? 0, bytesMax, "bytes of \(what)")
}

/// Throws `malformedRequest` unless the text may name something, as an account's name does.
func checkName(_ text: String, _ what: String) throws(ServiceError) {
    guard CollaborationIdentifier.isValid(Array(text.utf8)) else {
        throw ServiceError(.malformedRequest, "\(what) is 1 to 128 bytes of UTF-8 without control characters")
    }
}
