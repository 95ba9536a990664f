import Core
import Foundation
import Transport
import Wire

/// One connection of a run.
final class LoadConnection {
    private let stream: any ByteStream
    var descriptor: CInt { stream.descriptor }
    var inFlight = 0
    private(set) var isLost = false
    /// Parts of the workload that the socket did not take yet, in order.
    private var unsent: [Range<Int>] = []
    /// The beginning of an answer whose end has not arrived.
    private var incomplete: [UInt8] = []

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    deinit {
        stream.close()
    }

    var hasUnsent: Bool { !unsent.isEmpty }

    /// Sends `range` of the workload after everything sent before; what the socket does not take is kept for `flush`.
    func send(_ range: Range<Int>, of workload: Workload) {
        unsent.append(range)
        if unsent.count == 1 { flush(workload) }
    }

    /// Sends what was kept, as far as the socket takes it.
    func flush(_ workload: Workload) {
        while let range = unsent.first {
            switch workload.withFrames(range, { stream.send($0) }) {
            case .bytes(let count) where count == range.count: unsent.removeFirst()
            case .bytes(let count): unsent[0] = range.lowerBound + count..<range.upperBound
            case .wouldBlock: return
            // The next read reports it.
            case .ended: return unsent.removeAll()
            }
        }
    }

    /// Reads what the poller has told of, through `buffer`, and calls `handle` with every whole answer and its body.
    func receive(
        through buffer: UnsafeMutableRawBufferPointer, _ handle: (FrameHeader, UnsafeRawBufferPointer) -> Void
    ) {
        repeat { receiveOnce(through: buffer, handle) } while stream.holdsBytes && !isLost
    }

    private func receiveOnce(
        through buffer: UnsafeMutableRawBufferPointer, _ handle: (FrameHeader, UnsafeRawBufferPointer) -> Void
    ) {
        buffer.copyBytes(from: incomplete)
        let kept = incomplete.count
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer[kept...])
        // No answer is nearly as long as the buffer.
        guard !room.isEmpty else { return lose() }
        let received: Int
        switch stream.receive(into: room) {
        case .bytes(let count): received = count
        case .wouldBlock: return
        case .ended: return lose()
        }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<(kept + received)])
        var frames = FrameReader(bytes, expecting: LoadConnection.expectedKinds)
        while let frame = frames.next() {
            // An error about the connection is its end, and answers no request.
            if frame.header.kind == .error, frame.header.operation == 0 { return lose() }
            handle(frame.header, frame.body)
        }
        guard frames.violation == nil else { return lose() }
        // Nothing is left as a rule; then nothing is allocated.
        incomplete.removeAll(keepingCapacity: true)
        incomplete.append(contentsOf: bytes[frames.consumed...])
    }

    private static let expectedKinds: [FrameKind] = [.answer, .error]

    /// Closes the connection after a failure.
    func lose() {
        isLost = true
        unsent.removeAll()
    }
}
