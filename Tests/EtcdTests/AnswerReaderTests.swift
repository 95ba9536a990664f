import TestSupport
import Testing

@testable import Etcd

@Suite("Answers of HTTP") struct AnswerReaderTests {
    /// The parts of an answer that comes in pieces of these sizes, the bodies joined; the last size is repeated.
    private func parts(
        _ text: String, sizes: [Int] = [Int.max], bodyBytesMax: Int = 1000
    ) throws(AnswerReader.Fault) -> [AnswerReader.Part] {
        var reader = AnswerReader(bodyBytesMax: bodyBytesMax)
        var rest = Array(text.utf8)[...]
        var sizes = sizes[...]
        var parts: [AnswerReader.Part] = []
        while true {
            while let part = try reader.next() {
                if case .body(let more) = part, case .body(let before)? = parts.last {
                    parts[parts.count - 1] = .body(before + more)
                } else {
                    parts.append(part)
                }
            }
            guard !rest.isEmpty else { return parts }
            let size = sizes.count > 1 ? sizes.removeFirst() : sizes[sizes.startIndex]
            reader.append(rest.prefix(size))
            rest = rest.dropFirst(size)
        }
    }

    private static let hello = Array("hello".utf8)
    private static let good: [(text: String, parts: [AnswerReader.Part])] = [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            [.head(status: 200), .body(hello), .end(keeps: true)]
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n",
            [.head(status: 200), .body(hello), .end(keeps: true)]
        ),
        (
            "HTTP/1.1 503 Service Unavailable\nconnection: Close\ncontent-length:  5\n\nhello",
            [.head(status: 503), .body(hello), .end(keeps: false)]
        ),
        ("HTTP/1.0 404 \r\nContent-Length: 0\r\n\r\n", [.head(status: 404), .end(keeps: false)]),
    ]

    @Test("An answer is read alike in whatever pieces it comes")
    func pieces() throws {
        for (text, expected) in Self.good {
            #expect(try parts(text) == expected)
            #expect(try parts(text, sizes: [1]) == expected)
            for first in 1..<text.utf8.count { #expect(try parts(text, sizes: [first, Int.max]) == expected) }
        }
        var generator = SeededGenerator(seed: runSeed)
        for _ in 0..<200 {
            let (text, expected) = Self.good[Int.random(in: 0..<Self.good.count, using: &generator)]
            let sizes = (0..<text.utf8.count).map { _ in Int.random(in: 1...9, using: &generator) }
            #expect(try parts(text, sizes: sizes) == expected, "ROOTGATE_TEST_SEED=\(runSeed)")
        }
    }

    @Test("An answer that is cut has no end")
    func cut() throws {
        for (text, expected) in Self.good {
            for count in 0..<text.utf8.count {
                let found = try parts(String(decoding: Array(text.utf8)[..<count], as: UTF8.self))
                #expect(found.last != expected.last, "\(count) bytes")
            }
        }
    }

    @Test("What is behind an answer is told, because the connection can't be used again")
    func rest() throws {
        var reader = AnswerReader(bodyBytesMax: 100)
        reader.append(Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1".utf8))
        while try reader.next() != nil {}
        #expect(reader.hasRest)
    }

    @Test(
        "What is no answer, or none that may be taken, is refused",
        arguments: [
            "no status": "HTTP/1.1\r\n\r\n", "another protocol": "ICY 200 OK\r\n\r\n",
            "HTTP/2": "HTTP/2 200\r\nContent-Length: 0\r\n\r\n", "an interim answer": "HTTP/1.1 100 Continue\r\n\r\n",
            "a long status": "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
            "no length": "HTTP/1.1 200 OK\r\n\r\nhello",
            "two lengths": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
            "a length and chunks":
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "another encoding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "a negative length": "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
            "an empty length": "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello",
            "a huge length": "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "a length beyond the limit": "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n",
            "chunks beyond the limit":
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + String(repeating: "x", count: 1001),
            "a chunk without a size": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
            "a chunk with a sign": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n",
            "a chunk that is too long": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n",
            "a huge chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
            "a field without a value": "HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n",
            "a long line": "HTTP/1.1 200 OK\r\nA: " + String(repeating: "x", count: 20_000),
            "a long head": "HTTP/1.1 200 OK\r\n" + String(repeating: "A: b\r\n", count: 4000),
        ])
    func refused(_ name: String, _ text: String) {
        for sizes in [[Int.max], [1]] {
            let fault = thrown(AnswerReader.Fault.self) { _ = try parts(text, sizes: sizes) }
            #expect(fault != nil, "\(name)")
        }
    }
}
