import Core
import Foundation
import Transport

/// A page of a service's operator, as its client reads it.
struct OperatorPage: Equatable {
    let status: Int
    let body: String

    /// Asks for the page at a path.
    ///
    /// Throws `connectionRefused` when nobody answers there, `deadlineExceeded` when the page is not whole within the
    /// time, and `malformedAnswer` when it is no page, or longer than `Limits.operatorPageBytesMax`.
    init(_ path: String, of endpoint: Endpoint, milliseconds: UInt64) throws(ServiceError) {
        let begin = MonotonicClock.system.milliseconds
        let descriptor = try Socket.connect(to: endpoint, milliseconds: CInt(clamping: milliseconds))
        defer { close(descriptor) }
        var request = Array("GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)[...]
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while answer.count <= Limits.operatorPageBytesMax {
            let isSending = !request.isEmpty
            let transfer =
                isSending
                ? request.withUnsafeBytes { Socket.send(descriptor, $0) }
                : buffer.withUnsafeMutableBytes { Socket.receive(descriptor, into: $0) }
            switch transfer {
            case .bytes(let count) where isSending: request = request.dropFirst(count)
            case .bytes(let count): answer += buffer[..<count]
            case .ended where answer.isEmpty:
                throw ServiceError(
                    .connectionLost,
                    "\(endpoint) closed the connection without a page: it may have too many visitors, or speak HTTPS")
            case .ended:
                guard let page = OperatorPage(answer) else {
                    throw ServiceError(.malformedAnswer, "\(endpoint) sends no page of an operator")
                }
                self = page
                return
            case .wouldBlock:
                let left = Int(milliseconds) - Int(clamping: MonotonicClock.system.milliseconds - begin)
                var waiting = pollfd(fd: descriptor, events: Int16(isSending ? POLLOUT : POLLIN), revents: 0)
                guard left > 0, poll(&waiting, 1, CInt(clamping: left)) == 1 else {
                    throw ServiceError(.deadlineExceeded, "\(endpoint) does not answer within the time")
                }
            }
        }
        throw ServiceError(.malformedAnswer, "\(endpoint) sends too long a page")
    }

    /// `nil` unless the bytes are a whole response: a status, fields and a body of the length that they tell.
    init?(_ response: [UInt8]) {
        let text = String(decoding: response, as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n") else { return nil }
        let head = text[..<end.lowerBound].components(separatedBy: "\r\n")
        let words = (head.first ?? "").split(separator: " ")
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else { return nil }
        let lengths = head.dropFirst().compactMap { line -> Int? in
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "content-length" else { return nil }
            return Int(parts[1].trimmingCharacters(in: .whitespaces))
        }
        body = String(text[end.upperBound...])
        guard lengths == [body.utf8.count] else { return nil }
        self.status = status
    }

    /// The checks that the page of a probe lists, and what is wrong; `nil` for a page that is none.
    var checks: [(name: String, fault: String?)]? {
        var checks: [(name: String, fault: String?)] = []
        for line in body.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 1).map(String.init)
            guard words.count == 2 else { return nil }
            if words[1] == "ok" {
                checks.append((words[0], nil))
            } else if words[1].hasPrefix(OperatorPage.failure) {
                checks.append((words[0], String(words[1].dropFirst(OperatorPage.failure.count))))
            } else {
                return nil
            }
        }
        return checks.isEmpty ? nil : checks
    }

    private static let failure = "failed: "
}
