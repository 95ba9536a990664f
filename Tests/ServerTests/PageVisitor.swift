import Foundation
import Testing
import Transport

/// Reads pages as a simple client of HTTP does.
enum PageVisitor {
    /// What a server sends for some pieces of bytes before it closes the connection.
    static func answer(of endpoint: Endpoint, to pieces: [String]) throws -> String {
        let descriptor = try Socket.connect(to: endpoint, milliseconds: 5000)
        defer { close(descriptor) }
        for piece in pieces {
            let bytes = Array(piece.utf8)
            #expect(bytes.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, 0) } == bytes.count)
            if pieces.count > 1 { usleep(20_000) }
        }
        var received: [UInt8] = []
        var isAtEnd = false
        let deadline = ContinuousClock.now + .seconds(20)
        while !isAtEnd, ContinuousClock.now < deadline {
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            if count > 0 {
                received += buffer[..<count]
            } else if count == 0 {
                isAtEnd = true
            } else {
                usleep(2000)
            }
        }
        #expect(isAtEnd)
        return String(decoding: received, as: UTF8.self)
    }

    /// The status, the lines of the head behind it, and the body of a page.
    static func page(
        _ target: String, of endpoint: Endpoint
    ) throws -> (status: Int, fields: [String], body: String) {
        let text = try answer(of: endpoint, to: ["GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n"])
        let parts = text.components(separatedBy: "\r\n\r\n")
        try #require(parts.count == 2, "\(text)")
        let lines = parts[0].components(separatedBy: "\r\n")
        let status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) }
        return (try #require(status), Array(lines.dropFirst()), parts[1])
    }
}
