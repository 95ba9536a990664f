import Foundation

/// Receives the messages of a service as a supervisor does. It shares no code with what sends them.
final class NoticeReceiver {
    /// What `NOTIFY_SOCKET` says.
    let address: String
    private let descriptor: CInt

    /// `address`: an absolute path, or `@` and a name. `nil` when the system has no such sockets.
    init?(at address: String) {
        self.address = address
        #if os(Linux)
        descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
        #else
        descriptor = socket(AF_UNIX, SOCK_DGRAM, 0)
        #endif
        var place = sockaddr_un()
        place.sun_family = sa_family_t(AF_UNIX)
        let room = MemoryLayout.size(ofValue: place.sun_path)
        var bytes = Array(address.utf8)
        if bytes.first == UInt8(ascii: "@") { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &place.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size - room + bytes.count)
        let isBound = withUnsafePointer(to: place) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) == 0 }
        }
        guard isBound else {
            close(descriptor)
            return nil
        }
    }

    deinit {
        close(descriptor)
    }

    /// The assignments of the next message; `nil` when none comes within the time.
    func next(within seconds: Double) -> [String: String]? {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, CInt(seconds * 1000)) == 1 else { return nil }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        guard count >= 0 else { return nil }
        var fields: [String: String] = [:]
        for line in String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n") {
            let words = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            // A line that is no assignment, or a name that is given twice, is not what was expected.
            guard words.count == 2, fields.updateValue(words[1], forKey: words[0]) == nil else {
                return ["": bytes.description]
            }
        }
        return fields
    }
}
