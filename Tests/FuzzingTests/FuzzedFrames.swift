import Core
import Wire

/// Frames that arrive in pieces. The first byte says how the bytes are divided, and whether a service or a client reads
/// them; the stream follows.
enum FuzzedFrames {
    static let subject = FuzzSubject("frames", bytesMax: 2048, seeds: seeds) { input in
        guard let first = input.first else { return }
        let isService = first & 1 == 0
        let stream = Array(input.dropFirst())
        let expected = read(stream, kinds: isService ? [1] : [2, 3])
        let found = try receive(stream, isService: isService, pieces: UInt64(first))
        try demand(found.frames == expected.frames, "frames \(found.frames) instead of \(expected.frames)")
        try demand(
            found.refused.map { expected.refusals.contains($0) } ?? expected.refusals.isEmpty,
            "\(found.refused.map { "\($0)" } ?? "no violation") instead of \(expected.refusals)")
        try demand(
            found.nextBytes == (expected.refusals.isEmpty ? expected.nextBytes : 0),
            "\(found.nextBytes) bytes are expected next, not \(expected.nextBytes)")
    }

    private static func seeds() -> [[UInt8]] {
        let frames = appended { bytes in
            Request.hello(minimum: 1, maximum: 1).frame(1, to: &bytes)
            Request.ping(Array("still there".utf8)).frame(2, to: &bytes)
        }
        let answers = appended { bytes in
            FrameWriter.append(.answer, 2, requestID: 2, to: &bytes) { $0 += [1, 2, 3] }
            FrameWriter.appendError(ServiceError(.busy, "busy"), operation: 3, requestID: 9, to: &bytes)
        }
        let tooLong: [UInt8] = [1, 0, 0x20, 0, 1, 1, 2, 0] + [UInt8](repeating: 7, count: 8)
        let otherVersion: [UInt8] = [0, 0, 0, 0, 2, 1, 2, 0] + [UInt8](repeating: 7, count: 8)
        return [[0] + frames, [6] + frames, [1] + answers, [7] + answers, [2] + tooLong, [4] + otherVersion]
    }

    private struct Frame: Equatable {
        let kind: UInt8
        let operation: UInt16
        let requestID: UInt64
        let body: [UInt8]
    }

    private struct Refusal: Hashable {
        let code: UInt16
        let detail: UInt32
        let requestID: UInt64
    }

    /// What PROTOCOL.md says about the stream: the frames, the errors that the first wrong header may get, and the
    /// bytes of the unfinished frame.
    private static func read(
        _ stream: [UInt8], kinds: Set<UInt8>
    ) -> (frames: [Frame], refusals: Set<Refusal>, nextBytes: Int) {
        var parts = InputParts(stream)
        var frames: [Frame] = []
        while true {
            var header = parts
            guard let length = header.number(4), let version = header.number(1), let kind = header.number(1),
                let operation = header.number(2), let identifier = header.number(8)
            else { return (frames, [], 16) }
            var refusals: Set<Refusal> = []
            if version != 1 { refusals.insert(Refusal(code: 1, detail: 1, requestID: identifier)) }
            if !kinds.contains(UInt8(kind)) { refusals.insert(Refusal(code: 3, detail: 0, requestID: identifier)) }
            if length > 2_097_152 { refusals.insert(Refusal(code: 2, detail: 2_097_152, requestID: identifier)) }
            guard refusals.isEmpty else { return (frames, refusals, 0) }
            guard let body = header.take(Int(length)) else { return (frames, [], 16 + Int(length)) }
            parts = header
            frames.append(
                Frame(kind: UInt8(kind), operation: UInt16(operation), requestID: identifier, body: body))
        }
    }

    /// Gives the stream to a reader in pieces, as a connection does.
    private static func receive(
        _ stream: [UInt8], isService: Bool, pieces: UInt64
    ) throws -> (frames: [Frame], refused: Refusal?, nextBytes: Int) {
        var state = pieces &* 0x9e37_79b9_7f4a_7c15 | 1
        var frames: [Frame] = []
        var kept: [UInt8] = []
        var nextBytes = 16
        var place = 0
        repeat {
            // Some streams arrive whole, most byte by byte or in pieces of several sizes.
            state = state &* 6_364_136_223_846_793_005 &+ 1
            let most = pieces < 8 ? stream.count : Int(state >> 33) % (pieces < 64 ? 3 : 40) + 1
            let piece = stream[place..<min(stream.count, place + most)]
            place = piece.endIndex
            kept += piece
            let (consumed, next, refused) = try kept.withRawBytes { bytes in
                var reader = FrameReader(bytes, expecting: isService ? [.request] : [.answer, .error])
                while let frame = reader.next() { frames.append(try copy(frame, bytes)) }
                return (reader.consumed, reader.nextFrameBytes, reader.violation)
            }
            if let refused {
                try demand(consumed == kept.count, "bytes are left behind a violation")
                let refusal = Refusal(
                    code: refused.error.code.rawValue, detail: refused.error.detail, requestID: refused.requestID)
                return (frames, refusal, next)
            }
            try demand(consumed <= kept.count, "more is consumed than there is")
            kept.removeFirst(consumed)
            nextBytes = next
            try demand(nextBytes > kept.count, "a whole frame of \(nextBytes) bytes was not returned")
        } while place < stream.count
        return (frames, nil, nextBytes)
    }

    private static func copy(_ frame: ReceivedFrame, _ bytes: UnsafeRawBufferPointer) throws -> Frame {
        let again = appended { written in
            FrameWriter.append(
                frame.header.kind, frame.header.operation, requestID: frame.header.requestID, to: &written
            ) { $0 += frame.body }
        }
        try demand(again.elementsEqual(bytes[frame.range]), "a frame is written in another way than it was read")
        return Frame(
            kind: frame.header.kind.rawValue, operation: frame.header.operation, requestID: frame.header.requestID,
            body: Array(frame.body))
    }
}

extension Request {
    /// Appends the request's frame.
    func frame(_ requestID: UInt64, to bytes: inout [UInt8]) {
        FrameWriter.append(.request, operation.rawValue, requestID: requestID, to: &bytes) { append(to: &$0) }
    }
}
