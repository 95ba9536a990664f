import Core
import TestSupport
import Testing
import Wire

struct FrameScannerTests {
    private let frame = bytes { bytes in
        FrameWriter.append(.request, 0x22, requestID: 0x0102_0304_0506_0708, to: &bytes) { $0 += [9, 8, 7, 6, 5] }
    }

    private func scan(_ bytes: [UInt8], _ kinds: [FrameKind] = [.request]) -> FrameScan {
        bytes.withUnsafeBytes { FrameScanner.scan($0, expecting: kinds) }
    }

    /// The error of the frame's header with another byte at `offset`; `nil` when it is no violation. Expects that a
    /// violation names the request.
    private func violation(at offset: Int, _ byte: UInt8) -> ServiceError? {
        var header = Array(frame.prefix(16))
        header[offset] = byte
        guard case .violation(let error, let id) = scan(header) else { return nil }
        #expect(id == 0x0102_0304_0506_0708)
        return error
    }

    @Test("A whole frame is found, with or without bytes behind it")
    func whole() {
        let header = FrameHeader(bodyLength: 5, kind: .request, operation: 0x22, requestID: 0x0102_0304_0506_0708)
        #expect(scan(frame) == .frame(header))
        #expect(scan(frame + [1, 2, 3]) == .frame(header))
    }

    @Test("Every truncation of a frame is incomplete and says how long the frame gets")
    func truncated() {
        for length in 0..<frame.count {
            let expected = length < 16 ? 16 : frame.count
            #expect(scan(Array(frame.prefix(length))) == .incomplete(frameBytes: expected), "\(length) bytes")
        }
    }

    @Test("Every version but 1 is a violation before the body arrives")
    func wrongVersion() {
        for version in UInt8.min ... .max where version != 1 {
            let error = violation(at: 4, version)
            #expect(error?.code == .unsupportedVersion, "version \(version)")
            #expect(error?.detail == 1)
        }
    }

    @Test("A kind that is not expected or not known is a violation before the body arrives")
    func wrongKind() {
        for kind in UInt8.min ... .max where kind != 1 {
            #expect(violation(at: 5, kind)?.code == .malformedFrame, "kind \(kind)")
        }
        #expect(scan(frame, [.answer, .error]) != scan(frame))
    }

    @Test("A body over the limit is a violation before it arrives, one at the limit is incomplete")
    func tooLong() {
        for length in [Limits.frameBodyBytesMax + 1, Int(UInt32.max)] {
            let header = field(UInt32(length)) + frame[4..<16]
            guard case .violation(let error, let id) = scan(header) else {
                Issue.record("\(length) bytes passed")
                continue
            }
            #expect(error.code == .frameTooLarge)
            #expect(error.detail == UInt32(Limits.frameBodyBytesMax))
            #expect(id == 0x0102_0304_0506_0708)
        }
        let header = field(UInt32(Limits.frameBodyBytesMax)) + frame[4..<16]
        #expect(scan(header) == .incomplete(frameBytes: 16 + Limits.frameBodyBytesMax))
    }

    @Test("Every violation closes the connection")
    func violationsClose() {
        for place in [3, 4, 5] {
            var header = frame
            header[place] = 0xee
            guard case .violation(let error, _) = scan(header) else {
                Issue.record("byte \(place) passed")
                continue
            }
            #expect(error.code.closesConnection, "byte \(place)")
        }
    }

    @Test("An operation that nobody knows leaves the framing intact")
    func unknownOperation() {
        var unknown = frame
        unknown.replaceSubrange(6..<8, with: [0xff, 0xff])
        #expect(
            scan(unknown)
                == .frame(
                    FrameHeader(bodyLength: 5, kind: .request, operation: 0xffff, requestID: 0x0102_0304_0506_0708)))
    }

    @Test("A stream of frames cut at random places has the same frames")
    func stream() {
        for iteration in 0..<100 {
            var generator = SeededGenerator(seed: runSeed &+ UInt64(iteration))
            let context: Comment = "seed \(runSeed), iteration \(iteration)"
            var sent: [(FrameHeader, [UInt8])] = []
            var stream: [UInt8] = []
            let kinds: [FrameKind] = [.request, .answer, .error]
            for _ in 0..<Int.random(in: 1...12, using: &generator) {
                let body = generator.bytes(Int.random(in: 0...80, using: &generator))
                let header = FrameHeader(
                    bodyLength: body.count, kind: kinds[Int.random(in: 0..<3, using: &generator)],
                    operation: UInt16.random(in: .min ... .max, using: &generator), requestID: generator.next())
                sent.append((header, body))
                FrameWriter.append(header.kind, header.operation, requestID: header.requestID, to: &stream) {
                    $0 += body
                }
            }
            var found: [(FrameHeader, [UInt8])] = []
            var waiting: [UInt8] = []
            var rest = stream[...]
            while !rest.isEmpty {
                let piece = rest.prefix(Int.random(in: 1...40, using: &generator))
                rest = rest.dropFirst(piece.count)
                waiting += piece
                while case .frame(let header) = scan(waiting, kinds) {
                    found.append((header, Array(waiting[16..<16 + header.bodyLength])))
                    waiting.removeFirst(16 + header.bodyLength)
                }
            }
            #expect(waiting.isEmpty, context)
            #expect(found.map(\.0) == sent.map(\.0), context)
            #expect(found.map(\.1) == sent.map(\.1), context)
        }
    }

    @Test("A frame is appended behind the buffer's bytes")
    func appends() {
        var bytes: [UInt8] = [1, 2, 3]
        FrameWriter.append(.request, 0x22, requestID: 0x0102_0304_0506_0708, to: &bytes) { $0 += [9, 8, 7, 6, 5] }
        #expect(bytes == [1, 2, 3] + frame)
    }

    @Test("Random headers never crash the scanner")
    func fuzz() {
        var generator = SeededGenerator(seed: runSeed &+ 1000)
        for iteration in 0..<5000 {
            var bytes = generator.bytes(Int.random(in: 0...40, using: &generator))
            if bytes.count > 5, iteration % 2 == 0 { bytes.replaceSubrange(2..<6, with: [0, 0, 1, 1]) }
            guard case .frame(let header) = scan(bytes, [.request, .answer, .error]) else { continue }
            #expect(header.bodyLength + 16 <= bytes.count, "seed \(runSeed), iteration \(iteration)")
        }
    }
}

struct ErrorAnswerTests {
    private func written(_ error: ServiceError) -> [UInt8] {
        Array(bytes { FrameWriter.appendError(error, operation: 0x30, requestID: 1, to: &$0) }[16...])
    }

    @Test("Every error that travels comes back with its code, number and text", arguments: ServiceError.Code.allCases)
    func roundTrip(code: ServiceError.Code) throws {
        guard code.rawValue < 256 else { return }
        let isStorage = [.storageFull, .storageFailed, .storageDamaged].contains(code)
        let error = ServiceError(code, detail: isStorage ? 0 : 0x8765_4321, "why, and é")
        let read = try written(error).withUnsafeBytes { try FrameWriter.decodeError($0) }
        #expect(read.code == code)
        #expect(read.detail == error.detail)
        #expect(read.reason == error.reason)
    }

    @Test("The detail of a storage's error is the system's code, and never LMDB's")
    func storageDetail() throws {
        for (code, detail, sent) in [
            (ServiceError.Code.storageFailed, 5, 5), (.storageFull, 28, 28), (.storageFailed, -30783, 0),
            (.storageFull, -30792, 0), (.storageDamaged, -30796, 0), (.storageDamaged, 5, 0),
        ] {
            let error = ServiceError(code, detail: UInt32(bitPattern: Int32(detail)), "why")
            let read = try written(error).withUnsafeBytes { try FrameWriter.decodeError($0) }
            #expect(read.detail == UInt32(sent), "\(code) \(detail)")
        }
    }

    @Test("A code that nobody knows is an internal fault and keeps its number in the text")
    func unknownCode() throws {
        let body = field(UInt16(99)) + field(UInt16(2)) + field(UInt32(7)) + Array("no".utf8)
        let read = try body.withUnsafeBytes { try FrameWriter.decodeError($0) }
        #expect(read.code == .internalFault)
        #expect(read.detail == 7)
        #expect(read.reason.contains("99"))
    }

    @Test("A long text is cut to the limit and stays UTF-8")
    func longText() throws {
        for lead in 0..<4 {
            let text = String(repeating: "a", count: lead) + String(repeating: "🗝", count: 200)
            let body = written(ServiceError(.storageFailed, text))
            let cut = Array(body[8...])
            #expect(cut.count <= Limits.errorTextBytesMax)
            #expect(cut.count > Limits.errorTextBytesMax - 4)
            let read = try #require(String(validating: cut, as: UTF8.self), "\(lead) bytes in front")
            #expect(text.hasPrefix(read))
        }
    }

    @Test("An error that is cut short or too long is a malformed answer")
    func malformed() {
        let whole = written(ServiceError(.busy, "wait"))
        for length in 0..<whole.count {
            let error = thrownServiceError {
                _ = try Array(whole.prefix(length)).withUnsafeBytes { try FrameWriter.decodeError($0) }
            }
            #expect(error?.code == .malformedAnswer, "\(length) bytes")
        }
        let error = thrownServiceError {
            _ = try (whole + [0]).withUnsafeBytes { try FrameWriter.decodeError($0) }
        }
        #expect(error?.code == .malformedAnswer)
    }
}
