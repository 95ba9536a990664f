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

/// Throws unless the link is one of the web, http or https with a host, of at most `Limits.linkBytesMax` bytes:
/// `limitExceeded` or `malformedRequest`. `field` names the link in the request.
func checkLink(_ link: URL?, _ field: String) throws(ServiceError) {
    guard let link else { return }
    try check(link.absoluteString, field, bytesMax: Limits.linkBytesMax)
    guard WebLink(link) != nil else {
        throw ServiceError(
            .malformedRequest, "\(field) is not a link of the web, which begins with https:// or http:// and a host")
    }
}
