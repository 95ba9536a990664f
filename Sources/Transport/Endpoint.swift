import Foundation

/// The address of a service: `host:port`, `[v6]:port` or, for a local socket, `unix:/path` in text.
public struct Endpoint: Hashable, Sendable {
    /// A name or a numeric address; empty for a local socket.
    public let host: String
    /// 0 for a local socket.
    public let port: UInt16
    /// The absolute path of a local socket's file; `nil` for a host with a port.
    public let path: String?

    /// A port of a host.
    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
        path = nil
    }

    /// A local socket. A path that is too long for the system, or not absolute, is refused when it is used.
    public init(path: String) {
        host = ""
        port = 0
        self.path = path
    }

    /// `nil` unless `text` is `host:port` or `[v6]:port` with a port of 0 to 65,535, or `unix:` and an absolute path.
    /// A host may be named `unix`: no port begins with a slash.
    public init?(_ text: String) {
        if text.hasPrefix(Endpoint.localScheme + "/") {
            self.init(path: String(text.dropFirst(Endpoint.localScheme.count)))
            return
        }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty, !host.contains(where: { $0 == "[" || $0 == "]" }) else { return nil }
        self.init(host: String(host), port: port)
    }

    /// What a local socket begins with in text.
    private static let localScheme = "unix:"

    /// Whether only processes of this machine can connect: the host is the loopback interface, by name or by address,
    /// or the endpoint is a local socket.
    package var isLoopback: Bool {
        if path != nil || host.lowercased() == "localhost" || host == "::1" { return true }
        var address = in_addr()
        return inet_pton(AF_INET, host, &address) == 1 && UInt32(bigEndian: address.s_addr) >> 24 == 127
    }
}

extension Endpoint: CustomStringConvertible {
    public var description: String {
        if let path { return Endpoint.localScheme + path }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
