import Core

/// Reads one answer of HTTP/1.1 (RFC 9112) from bytes as they arrive.
///
/// It takes what a server of our own choice sends, and refuses everything else: an answer without a length, one with
/// two, and one that is longer than it may be.
package struct AnswerReader {
    /// A part of an answer.
    package enum Part: Equatable {
        case head(status: Int)
        /// Some bytes of the body; never none.
        case body([UInt8])
        /// The answer is whole. `keeps`: the connection may be used for another request.
        case end(keeps: Bool)
    }

    /// What is no answer.
    package struct Fault: Error, Equatable, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    private enum State {
        case head
        /// Bytes of the body that have not come.
        case length(Int)
        /// The line with the size of the next chunk.
        case chunkSize
        case chunk(Int)
        /// The line break behind a chunk.
        case chunkEnd
        /// Fields behind the last chunk.
        case trailer
        case done
    }

    private var state = State.head
    private var received = ReceivedBytes()
    private var headLines: [String] = []
    private var headBytes = 0
    private var keeps = true
    private var bodyBytes = 0
    private let bodyBytesMax: Int

    /// `bodyBytesMax`: bytes of the body that are taken at most.
    package init(bodyBytesMax: Int) { self.bodyBytesMax = bodyBytesMax }

    /// Takes bytes in the order in which they arrive.
    package mutating func append(_ more: some Collection<UInt8>) { received.append(more) }

    /// Whether bytes have come that belong to no part yet, or to no answer.
    package var hasRest: Bool { !received.isEmpty }

    /// The next part; `nil` until more bytes come, and behind the end.
    ///
    /// Throws when the bytes are no answer. Then the connection is of no use any more.
    package mutating func next() throws(Fault) -> Part? {
        while true {
            switch state {
            case .done: return nil
            case .head:
                guard let lines = try wholeHead() else { return nil }
                return .head(status: try begin(lines))
            case .length(0):
                state = .done
                return .end(keeps: keeps)
            case .length(let left):
                guard let part = try take(left) else { return nil }
                state = .length(left - part.count)
                return .body(part)
            case .chunkSize:
                guard let line = try line() else { return nil }
                let text = line.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }
                guard !text.isEmpty, text.count <= 8, text.allSatisfy(\.isHexDigit), let size = Int(text, radix: 16)
                else { throw Fault("the size of a chunk is malformed") }
                state = size == 0 ? .trailer : .chunk(size)
            case .chunk(let left):
                guard let part = try take(left) else { return nil }
                state = left == part.count ? .chunkEnd : .chunk(left - part.count)
                return .body(part)
            case .chunkEnd:
                guard let line = try line() else { return nil }
                guard line.isEmpty else { throw Fault("a chunk is longer than its size") }
                state = .chunkSize
            case .trailer:
                guard let line = try line() else { return nil }
                guard line.isEmpty else { continue }
                state = .done
                return .end(keeps: keeps)
            }
        }
    }

    /// Up to `count` bytes of the body; `nil` when there are none.
    private mutating func take(_ count: Int) throws(Fault) -> [UInt8]? {
        guard let part = received.take(atMost: count) else { return nil }
        bodyBytes += part.count
        guard bodyBytes <= bodyBytesMax else { throw Fault("the answer has more than \(bodyBytesMax) bytes") }
        return part
    }

    /// The next line without its end; `nil` until it is there.
    private mutating func line() throws(Fault) -> String? {
        do throws(ReceivedBytes.TooLong) {
            return try received.line(bytesMax: Limits.etcdHeadBytesMax).map { String(decoding: $0, as: UTF8.self) }
        } catch {
            throw Fault("a line is too long")
        }
    }

    /// The lines of the head, when it is there as a whole.
    private mutating func wholeHead() throws(Fault) -> [String]? {
        while let line = try line() {
            headBytes += line.utf8.count + 2
            guard headBytes <= Limits.etcdHeadBytesMax else { throw Fault("the head of the answer is too long") }
            if line.isEmpty { return headLines }
            headLines.append(line)
        }
        return nil
    }

    /// Takes the head. Returns the status.
    private mutating func begin(_ lines: [String]) throws(Fault) -> Int {
        let words = (lines.first ?? "").split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count >= 2, words[0] == "HTTP/1.1" || words[0] == "HTTP/1.0", words[1].count == 3,
            let status = Int(words[1]), (200..<600).contains(status)
        else { throw Fault("the answer is not one of HTTP/1.1") }
        keeps = words[0] == "HTTP/1.1"
        var lengths: [String] = []
        var encodings: [String] = []
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { throw Fault("a field of the answer has no value") }
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }.lowercased()
            switch line[..<colon].lowercased() {
            case "content-length": lengths.append(value)
            case "transfer-encoding": encodings.append(value)
            case "connection": if value.contains("close") { keeps = false }
            default: break
            }
        }
        switch (lengths.count, encodings) {
        case (0, ["chunked"]): state = .chunkSize
        case (1, []):
            guard !lengths[0].isEmpty, lengths[0].count <= 15, lengths[0].utf8.allSatisfy({ (48...57).contains($0) }),
                let length = Int(lengths[0])
            else { throw Fault("the length of the answer is malformed") }
            guard length <= bodyBytesMax else { throw Fault("the answer has more than \(bodyBytesMax) bytes") }
            state = .length(length)
        default: throw Fault("the answer has not exactly one length")
        }
        return status
    }
}
