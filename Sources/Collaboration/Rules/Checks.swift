import Core
import Foundation

/// Throws unless a text for people is what a field takes: `limitExceeded` when it has more bytes of UTF-8,
/// `malformedRequest` when it has a control character. `field`: the field and its place, as `participants[0].title`.
func check(_ text: String?, _ field: String, bytesMax: Int = Limits.textBytesMax) throws(ServiceError) {
    guard let text else { return }
    try checkLimit(text.utf8.count, bytesMax, "bytes of \(field)")
    guard let control = text.unicodeScalars.first(where: \.isControl) else { return }
    throw ServiceError(
        .malformedRequest, "\(field) contains the control character U+\(control.hexadecimalDigits)")
}

/// Throws `malformedRequest` unless the text may name something, as an account's name does; see `String.isName`.
func checkName(_ text: String, _ field: String) throws(ServiceError) {
    guard text.isName else {
        throw ServiceError(.malformedRequest, "\(field) is not 1 to 128 bytes of UTF-8 without control characters")
    }
}

/// Throws `malformedRequest` unless the text has Unicode's normal form C. Swift takes texts of other bytes for equal
/// when they look alike; identifiers in this form are equal only by their bytes.
func checkForm(_ identifier: String, _ field: String) throws(ServiceError) {
    guard !identifier.utf8.allSatisfy({ $0 < 0x80 }) else { return }
    guard identifier.precomposedStringWithCanonicalMapping.utf8.elementsEqual(identifier.utf8) else {
        throw ServiceError(.malformedRequest, "\(field) is not in Unicode's normal form C")
    }
}

/// Throws `malformedRequest` unless the text may identify an app, a conversation or an item: a name in normal form C.
func checkIdentifier(_ text: String, _ field: String) throws(ServiceError) {
    try checkName(text, field)
    try checkForm(text, field)
}

/// Throws unless a query may wait for that long.
func checkWait(_ milliseconds: Int?) throws(ServiceError) {
    try checkRange(milliseconds ?? 0, 0...Limits.followMillisecondsMax, "waitMilliseconds")
}

/// Throws unless the link is one of the web, http or https with a host, of at most `Limits.linkBytesMax` bytes:
/// `limitExceeded` or `malformedRequest`. `field` names the link in the request.
func checkLink(_ link: URL?, _ field: String) throws(ServiceError) {
    guard let link else { return }
    try checkLimit(link.absoluteString.utf8.count, Limits.linkBytesMax, "bytes of \(field)")
    guard WebLink(link) != nil else {
        throw ServiceError(
            .malformedRequest, "\(field) is not a link of the web, which begins with https:// or http:// and a host")
    }
}
