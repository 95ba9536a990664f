import Core

@testable import Etcd

/// Answers of etcd's gateway. The first byte says in which pieces they arrive.
enum FuzzedEtcd {
    private static let bodyBytesMax = 64

    static let subject = FuzzSubject("etcd-answers", bytesMax: 512, seeds: seeds) { input in
        guard let first = input.first else { return }
        let bytes = Array(input[1...])
        let whole = read(bytes, in: bytes.count + 1)
        let pieces = read(bytes, in: 1 + Int(first) % 32)
        try demand(whole == pieces, "an answer is read as \(whole), and in pieces as \(pieces)")
        try demand(whole.body.count <= bodyBytesMax, "a body has \(whole.body.count) bytes")
        try demand(!whole.isFault || !whole.isWhole, "an answer is whole and none")
        guard whole.isWhole, let end = endOfHead(bytes) else { return }
        // Without chunks the body stands behind the head, byte by byte.
        let head = String(decoding: bytes[..<end], as: UTF8.self).lowercased()
        guard !head.contains("transfer-encoding") else { return }
        try demand(Array(bytes[end...].prefix(whole.body.count)) == whole.body, "the body is not what was sent")
    }

    private struct Outcome: Equatable {
        var status: Int?
        var body: [UInt8] = []
        var isWhole = false
        var isFault = false
    }

    private static func read(_ bytes: [UInt8], in size: Int) -> Outcome {
        var reader = AnswerReader(bodyBytesMax: bodyBytesMax)
        var outcome = Outcome()
        var rest = bytes[...]
        do throws(AnswerReader.Fault) {
            while true {
                while let part = try reader.next() {
                    switch part {
                    case .head(let status): outcome.status = status
                    case .body(let more): outcome.body += more
                    case .end: outcome.isWhole = true
                    }
                }
                guard !rest.isEmpty else { return outcome }
                reader.append(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
        } catch {
            // What came before a fault depends on the pieces, and nobody uses it.
            return Outcome(isFault: true)
        }
    }

    private static func endOfHead(_ bytes: [UInt8]) -> Int? {
        var start = 0
        for (place, byte) in bytes.enumerated() where byte == 10 {
            let line = bytes[start..<place]
            if line.isEmpty || line.elementsEqual([13]) { return place + 1 }
            start = place + 1
        }
        return nil
    }

    private static func seeds() -> [[UInt8]] {
        [
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 503 x\nconnection: close\ncontent-length: 3\n\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n1\r\n\n\r\n0\r\nT: v\r\n\r\n",
            "HTTP/1.0 404 \r\nContent-Length: 65\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        ].map { [3] + Array($0.utf8) }
    }
}
