import Core
import Dispatch
import Foundation
import LoadHarness
import Platform
import Signatures
import Transport
import Wire

/// What every service on this machine pays for single proofs: it receives a request, verifies a signature with the
/// service's kernels, and answers. It judges nothing else, so the answer is always the verdict granted.
///
/// A thread verifies together what has arrived on its connections, as the service does.
final class BareService {
    private let listener: Listener
    private let threads: Int
    private let signatures: GenuineSignatures
    private let group = DispatchGroup()

    /// A service of so many threads, listening on a free port of the loopback interface.
    ///
    /// Throws `internalFault`, and `SystemFailure` when the system refuses a socket.
    init(threads: Int, _ scale: Scale) throws {
        self.threads = threads
        signatures = try GenuineSignatures(scale)
        listener = try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0))[0]
    }

    deinit {
        listener.close()
    }

    /// Connects so many clients, one request in flight on each, serves them while `body` drives them, and waits for the
    /// end of its threads.
    func serve<Result>(connections: Int, _ body: (LoadRun) throws -> Result) throws -> Result {
        // The connections end with the run, and the threads end with their connections.
        defer { group.wait() }
        return try withRun(connections, body)
    }

    /// Holds the run no longer than `body` needs it.
    private func withRun<Result>(_ connections: Int, _ body: (LoadRun) throws -> Result) throws -> Result {
        let run = try LoadRun(listener.endpoint, connections: connections, depth: 1)
        var shares = [[CInt]](repeating: [], count: threads)
        for number in 0..<connections { shares[number % threads].append(try accept()) }
        for share in shares where !share.isEmpty {
            group.enter()
            Thread { [signatures, group] in
                defer { group.leave() }
                do { try BareService.serve(share, signatures) } catch { preconditionFailure("\(error)") }
            }.start()
        }
        return try body(run)
    }

    /// Accepts a connection that waits already.
    private func accept() throws(SystemFailure) -> CInt {
        let descriptor = Foundation.accept(listener.descriptor, nil, nil)
        guard descriptor >= 0, fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0 else { throw SystemFailure("accept") }
        var value: CInt = 1
        setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &value, socklen_t(MemoryLayout<CInt>.size))
        return descriptor
    }

    /// Answers on `connections` until all have ended.
    private static func serve(_ connections: [CInt], _ signatures: GenuineSignatures) throws {
        let poller = try makePoller()
        for connection in connections { try poller.watch(connection, for: .reading, isNew: true) }
        try signatures.withChecks { checks in
            let verify = try newKeyVerifier()
            var batches = SignatureBatches(checks)
            var (open, ready, asked, answer) = (connections.count, [Readiness](), [(CInt, UInt64)](), answer())
            let buffer = ScratchBuffer<UInt8>(uninitializedCount: 4096, alignment: 64)
            while open > 0 {
                poller.wait(milliseconds: -1, into: &ready)
                asked.removeAll(keepingCapacity: true)
                for event in ready {
                    switch Socket.receive(event.descriptor, into: buffer.bytes) {
                    case .bytes(let count):
                        precondition(count > Limits.frameHeaderBytes, "a request came in parts")
                        asked.append(
                            (event.descriptor, buffer.bytes.loadUnaligned(fromByteOffset: idOffset, as: UInt64.self)))
                    case .wouldBlock: continue
                    case .ended:
                        poller.forget(event.descriptor)
                        close(event.descriptor)
                        open -= 1
                    }
                }
                guard !asked.isEmpty else { continue }
                try batches.verifyNext(asked.count, verify)
                for (connection, id) in asked {
                    answer.withUnsafeMutableBytes { bytes in
                        bytes.storeBytes(of: id, toByteOffset: idOffset, as: UInt64.self)
                        // The load generator finds out when an answer is missing.
                        _ = Socket.send(connection, UnsafeRawBufferPointer(bytes))
                    }
                }
            }
        }
    }

    /// Where a frame has the request's id.
    private static let idOffset = Limits.frameHeaderBytes - 8

    /// The answer to request 0.
    private static func answer() -> [UInt8] {
        var bytes: [UInt8] = []
        FrameWriter.append(.answer, Operation.verify.rawValue, requestID: 0, to: &bytes) { body in
            [Verdict.granted].withUnsafeBufferPointer { VerdictList.append($0, roots: nil, to: &body) }
        }
        return bytes
    }
}
