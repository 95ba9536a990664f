/// What both sides speak inside of TLS, by the name on which they agree (ALPN, RFC 7301).
package enum ApplicationProtocol: String, Hashable, Sendable {
    /// The service's own, of PROTOCOL.md. A client has to offer it.
    case rootgate = "rootgate/1"
    /// HTTP/1.1 (RFC 9112). A client that offers no protocol at all speaks it, too.
    case http = "http/1.1"

    /// The name as the handshake has it: a byte of length, then the name.
    var listed: [UInt8] { [UInt8(rawValue.utf8.count)] + Array(rawValue.utf8) }

    /// Whether a client may offer no protocol at all.
    var isImplied: Bool { self == .http }

    /// Where the protocol stands in a list of a byte of length and a name each; `nil` when it is not there.
    func place(in list: UnsafeBufferPointer<UInt8>) -> Int? {
        var place = 0
        while place < list.count {
            let end = place + 1 + Int(list[place])
            guard end <= list.count else { return nil }
            if list[place + 1..<end].elementsEqual(rawValue.utf8) { return place }
            place = end
        }
        return nil
    }
}
