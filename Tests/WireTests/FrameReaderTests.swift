import Core
import TestSupport
import Testing
import Wire

struct FrameReaderTests {
    /// Frames of different lengths, one of them without a body, and their bytes one after the other.
    private static let bodies: [[UInt8]] = [[9, 8, 7], [], [UInt8](repeating: 6, count: 40), [5]]
    private let stream = bytes { bytes in
        for (number, body) in bodies.enumerated() {
            FrameWriter.append(.request, 0x22, requestID: UInt64(number), to: &bytes) { $0 += body }
        }
    }

    /// What a reader found, its parts copied.
    private struct Found {
        var bodies: [[UInt8]] = []
        var ids: [UInt64] = []
        var ranges: [Range<Int>] = []
        var consumed = 0
        var nextFrameBytes = 0
        var violation: (error: ServiceError, requestID: UInt64)?
    }

    private func read(_ bytes: [UInt8]) -> Found {
        bytes.withUnsafeBytes { bytes in
            var reader = FrameReader(bytes, expecting: [.request])
            var found = Found()
            while let frame = reader.next() {
                found.bodies.append(Array(frame.body))
                found.ids.append(frame.header.requestID)
                found.ranges.append(frame.range)
            }
            #expect(reader.next() == nil)
            (found.consumed, found.nextFrameBytes) = (reader.consumed, reader.nextFrameBytes)
            found.violation = reader.violation
            return found
        }
    }

    @Test("Every frame is read in order, wherever the received bytes end")
    func everyCut() {
        let whole = read(stream)
        #expect(whole.bodies == Self.bodies)
        #expect(whole.ids == [0, 1, 2, 3])
        #expect(whole.ranges.map(\.count) == Self.bodies.map { 16 + $0.count })
        for length in 0...stream.count {
            let found = read(Array(stream.prefix(length)))
            let ends = whole.ranges.map(\.upperBound).prefix { $0 <= length }
            #expect(found.ranges == Array(whole.ranges.prefix(ends.count)), "\(length) bytes")
            #expect(found.bodies == Array(Self.bodies.prefix(ends.count)), "\(length) bytes")
            #expect(found.consumed == ends.last ?? 0, "\(length) bytes")
            let hasHeader = length - found.consumed >= 16
            #expect(found.nextFrameBytes == (hasHeader ? whole.ranges[ends.count].count : 16), "\(length) bytes")
            #expect(found.violation == nil)
        }
    }

    @Test("Bytes that arrive one by one make the same frames")
    func byteByByte() {
        var waiting: [UInt8] = []
        var bodies: [[UInt8]] = []
        for byte in stream {
            waiting.append(byte)
            let found = read(waiting)
            bodies += found.bodies
            waiting.removeFirst(found.consumed)
        }
        #expect(bodies == Self.bodies)
        #expect(waiting.isEmpty)
    }

    @Test("A violation ends the reading: frames before it are read, nothing behind it is")
    func violation() {
        var broken = stream
        // The version of the third frame.
        broken[16 + 3 + 16 + 4] = 2
        let found = read(broken)
        #expect(found.bodies == Array(Self.bodies.prefix(2)))
        #expect(found.violation?.error.code == .unsupportedVersion)
        #expect(found.violation?.requestID == 2)
        #expect(found.consumed == broken.count)
        #expect(found.nextFrameBytes == 0)
    }
}
