import Core
import Foundation
import Transport
import Wire

/// One connection of a run.
final class Lane {
    let descriptor: CInt
    var inFlight = 0
    private(set) var isLost = false
    /// Parts of the volley that the socket did not take yet, in order.
    private var unsent: [Range<Int>] = []
    /// The beginning of an answer whose end has not arrived.
    private var parked: [UInt8] = []

    init(_ descriptor: CInt) {
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    var hasUnsent: Bool { !unsent.isEmpty }

    /// Sends `range` of the volley behind all that was sent before; what the socket does not take waits.
    func send(_ range: Range<Int>, of volley: Volley) {
        unsent.append(range)
        if unsent.count == 1 { flush(volley) }
    }

    /// Sends what waits, as far as the socket takes it.
    func flush(_ volley: Volley) {
        while let range = unsent.first {
            switch volley.withFrames(range, { Socket.send(descriptor, $0) }) {
            case .bytes(let count) where count == range.count: unsent.removeFirst()
            case .bytes(let count): unsent[0] = range.lowerBound + count..<range.upperBound
            case .wouldBlock: return
            // The read side notices.
            case .ended: return unsent.removeAll()
            }
        }
    }

    /// Reads once, through `buffer`, and hands on every whole answer with its body.
    func receive(
        through buffer: UnsafeMutableRawBufferPointer, _ handle: (FrameHeader, UnsafeRawBufferPointer) -> Void
    ) {
        buffer.copyBytes(from: parked)
        let kept = parked.count
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer[kept...])
        // No answer is nearly as long as the buffer.
        guard !room.isEmpty else { return lose() }
        let received: Int
        switch Socket.receive(descriptor, into: room) {
        case .bytes(let count): received = count
        case .wouldBlock: return
        case .ended: return lose()
        }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<(kept + received)])
        var frames = FrameReader(bytes, expecting: Lane.expectedKinds)
        while let frame = frames.next() { handle(frame.header, frame.body) }
        guard frames.violation == nil else { return lose() }
        // Nothing is left as a rule; then nothing is allocated.
        parked.removeAll(keepingCapacity: true)
        parked.append(contentsOf: bytes[frames.consumed...])
    }

    private static let expectedKinds: [FrameKind] = [.answer, .error]

    /// Gives the connection up.
    func lose() {
        isLost = true
        unsent.removeAll()
    }
}
