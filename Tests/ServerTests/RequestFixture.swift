import Core
import Foundation
import Platform
import TestSupport
import Testing
import Transport
import Wire

@testable import Server

/// A connection whose peer is this object, for requests that no frame brought.
final class RequestFixture: Sendable {
    let responder: Responder
    let admission = Admission()
    /// The memory of the connection's requests.
    let memory: MemoryBudget
    private let loop: EventLoop
    private let peer: CInt

    init(owner: Holder = .service) async throws {
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, System.streamSocket, 0, &ends) == 0)
        // As accepted sockets are: an answer that the peer does not read waits, and not the thread that sends it.
        try #require(fcntl(ends[0], F_SETFL, O_NONBLOCK) != -1)
        peer = ends[1]
        memory = MemoryBudget(bytesMax: Limits.requestMemoryBytesMin)
        let loop = try EventLoop(
            memory: memory, timeouts: EventLoop.Timeouts(idle: 60_000, stall: 60_000))
        loop.start(name: "request fixture")
        self.loop = loop
        let descriptor = ends[0]
        // Under a lock, because ThreadSanitizer does not see what a continuation hands over.
        let made = Shared<Responder?>(nil)
        await withCheckedContinuation { continuation in
            Connection.start(descriptor, on: loop, of: owner) { connection in
                made.with { $0 = Responder(connection, .anonymous(owner)) }
                continuation.resume()
                return IdleHandler()
            }
        }
        responder = try #require(made.value)
    }

    /// An admitted request, which must be answered.
    func request() -> PendingRequest {
        PendingRequest(FrameHeader(kind: .request, operation: 1, requestID: 7), responder, admission)
    }

    /// What the peer receives until the service ends the connection.
    func bytesUntilEnd() -> [UInt8] {
        var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 4096))
        while case let count = read(peer, &buffer, buffer.count), count > 0 { bytes += buffer[..<count] }
        return bytes
    }

    /// Closes the connection as the service's side does.
    func end() {
        // On the loop's thread, as a session's end.
        loop.execute { [responder] in responder.close() }
        loop.stop()
        close(peer)
    }
}

/// Reads nothing.
private final class IdleHandler: ConnectionHandler {
    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Transport.Progress {
        Transport.Progress(consumed: range.count, nextFrameBytes: 0)
    }
    var isBusy: Bool { false }
    func drained() {}
    func closed() {}
}
