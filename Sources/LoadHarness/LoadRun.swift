package import Core
import Dispatch
import Foundation
import Platform
package import Principals
package import Synchronization
package import TLS
package import Transport
import Wire

/// Drives a service from several connections: as fast as it answers, with several requests in flight on each,
/// or at a pace of its own (`drive(_:at:spins:)`).
///
/// The run usually shares the cores with the service, so it has to cost little. Frames are encoded beforehand, sending
/// neither copies nor allocates, and one buffer receives all answers.
///
/// Sendable without the compiler's proof: one thread drives at a time, which is asserted, and `answered` is atomic.
package final class LoadRun: @unchecked Sendable {
    /// After so long without any answer the requests in flight count as lost.
    static let patienceMilliseconds: CInt = 60_000
    private static let bufferBytes = 256 << 10

    let connections: [LoadConnection]
    let poller: any Poller
    private let receiveBuffer = ScratchBuffer<UInt8>(uninitializedCount: LoadRun.bufferBytes, alignment: 64)
    var buffer: UnsafeMutableRawBufferPointer { receiveBuffer.bytes }
    private let depth: Int
    /// The thread that drives, while it does.
    let thread = ThreadConfinement()
    /// The connections' positions by their descriptors.
    private var places: [Int]
    /// Requests answered so far.
    package let answered = Atomic<UInt64>(0)

    /// Connects. `depth` is how many requests are in flight on each connection when requests are sent as fast as they
    /// are answered.
    ///
    /// Throws `connectionRefused`, `tlsRefused`, `keyRefused` or `internalFault`.
    package init(
        _ endpoint: Endpoint, tls: TLSOptions? = nil, key: APIKey? = nil, connections count: Int, depth: Int
    ) throws(ServiceError) {
        precondition(count > 0 && depth > 0, "a run needs a connection and a request")
        let dialer = try KeyedDialer(endpoint, tls: tls, key: key)
        self.depth = depth
        var connections: [LoadConnection] = []
        for _ in 0..<count {
            connections.append(LoadConnection(try dialer.connect(milliseconds: 5000)))
        }
        self.connections = connections
        places = [Int](repeating: 0, count: 1 + Int(connections.map(\.descriptor).max() ?? 0))
        do throws(SystemFailure) {
            poller = try makePoller()
            for (place, connection) in connections.enumerated() {
                places[Int(connection.descriptor)] = place
                try poller.watch(connection.descriptor, for: .reading, isNew: true)
            }
        } catch {
            throw ServiceError(.internalFault, detail: UInt32(bitPattern: error.number), "\(error)")
        }
    }

    /// Sends `requests` and waits for all answers. With `isRepeating` it begins again at the end of the list;
    /// then the list has to be longer than connections x depth, because a request may be in flight only once. Sends
    /// nothing after `seconds`.
    package func drive(_ requests: [LoadRequest], isRepeating: Bool = false, seconds: Double = .infinity) -> LoadReport
    {
        precondition(
            !isRepeating || requests.isEmpty || requests.count > connections.count * depth,
            "a request would be in flight twice")
        thread.bind()
        defer { thread.unbind() }
        let workload = Workload(requests)
        var tally = Tally(workload)
        let begin = LoadRun.now
        let busyBefore = LoadRun.processorSeconds
        let end = seconds.isFinite ? begin + UInt64(seconds * 1e9) : .max
        var next = 0
        var inFlight = 0

        /// Sends the next `count` requests, as many as there are, on `connection`.
        func send(_ count: Int, on connection: LoadConnection) {
            var left = count
            let now = LoadRun.now
            while left > 0, now < end, !connection.isLost {
                if next == workload.count, isRepeating { next = 0 }
                let requests = next..<min(workload.count, next + left)
                guard !requests.isEmpty else { return }
                for number in requests { tally.begins[number] = now }
                next = requests.upperBound
                left -= requests.count
                connection.inFlight += requests.count
                inFlight += requests.count
                connection.send(workload.bytes(of: requests), of: workload)
            }
            if connection.hasUnsent { watch(connection) }
        }

        for connection in connections { send(depth, on: connection) }
        var ready: [Readiness] = []
        while inFlight > 0 {
            wait(into: &ready)
            for event in ready {
                let connection = connection(of: event)
                if event.interest.contains(.writing) {
                    connection.flush(workload)
                    if !connection.hasUnsent { watch(connection) }
                }
                guard event.interest.contains(.reading), !connection.isLost else { continue }
                let answers = receive(on: connection, into: &tally)
                connection.inFlight -= answers
                inFlight -= answers
                if connection.isLost {
                    tally.lost(connection.inFlight)
                    inFlight -= connection.inFlight
                    connection.inFlight = 0
                    poller.forget(connection.descriptor)
                } else {
                    send(answers, on: connection)
                }
            }
        }
        assert(connections.allSatisfy { $0.isLost || $0.inFlight == 0 }, "a request is neither answered nor lost")
        var report = tally.report(seconds: Double(LoadRun.now - begin) / 1e9)
        report.processorSeconds = LoadRun.processorSeconds - busyBefore
        return report
    }

    /// Seconds that the calling thread has kept a processor busy.
    static var processorSeconds: Double { System.processorTimeOfThread / .seconds(1) }

    static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

    /// Waits for events; when none comes for too long, every connection is given up.
    func wait(into ready: inout [Readiness]) {
        thread.assertIsCurrent()
        let begin = LoadRun.now
        poller.wait(milliseconds: LoadRun.patienceMilliseconds, into: &ready)
        // A signal may end the wait early.
        guard ready.isEmpty, LoadRun.now - begin >= UInt64(LoadRun.patienceMilliseconds) * 1_000_000 else { return }
        for connection in connections { shutdown(connection.descriptor, CInt(SHUT_RDWR)) }
    }

    func connection(of event: Readiness) -> LoadConnection { connections[places[Int(event.descriptor)]] }

    /// Reads once on `connection`. Returns how many requests were answered.
    func receive(on connection: LoadConnection, into tally: inout Tally) -> Int {
        thread.assertIsCurrent()
        let before = tally.requests
        var now: UInt64?
        connection.receive(through: buffer) { header, body in
            let time = now ?? LoadRun.now
            now = time
            tally.record(header, body, at: time)
        }
        answered.add(UInt64(tally.requests - before), ordering: .relaxed)
        return tally.requests - before
    }

    /// Waits for room to send only while something waits to be sent.
    private func watch(_ connection: LoadConnection) {
        // It fails only for want of memory; then no answer comes, and the requests count as lost.
        try? poller.watch(
            connection.descriptor, for: connection.hasUnsent ? [.reading, .writing] : .reading, isNew: false)
    }
}
