package import Core
import Dispatch
import Foundation
import Platform
package import Synchronization
package import Transport
import Wire

/// What came of driving a list of requests.
package struct LoadReport: Sendable {
    package var proofs: UInt64 = 0
    package var requests: UInt64 = 0
    package var seconds = 0.0
    /// From sending a request, or from when it was due in an open loop, to its answer, in nanoseconds.
    package var latency = Histogram()
    /// How often each verdict came.
    package var verdicts: [Verdict: UInt64] = [:]
    /// Proofs whose verdict was not the expected one.
    package var wrong: UInt64 = 0
    /// Requests that got an error, by its name.
    package var errors: [String: UInt64] = [:]

    package init() {}

    package var proofsPerSecond: Double { seconds > 0 ? Double(proofs) / seconds : 0 }

    package mutating func add(_ other: LoadReport) {
        proofs += other.proofs
        requests += other.requests
        seconds += other.seconds
        latency.add(other.latency)
        verdicts.merge(other.verdicts, uniquingKeysWith: +)
        wrong += other.wrong
        errors.merge(other.errors, uniquingKeysWith: +)
    }
}

/// Drives a service from several connections: as fast as it answers, with several requests in flight on each,
/// or at a pace of its own (`drive(_:perSecond:)`).
///
/// It shares the cores with the service as a rule, so it is made to cost little: frames are made beforehand,
/// sending copies nothing and allocates nothing, and all answers come through one buffer.
///
/// Sendable without the compiler's proof: one thread drives at a time, and `answered` is atomic.
package final class LoadRun: @unchecked Sendable {
    /// How long no answer at all may come before the requests in flight are given up.
    private static let patienceMilliseconds: CInt = 60_000
    private static let bufferBytes = 256 << 10

    let lanes: [Lane]
    let poller: any Poller
    private let receiveBuffer = ScratchBuffer<UInt8>(uninitializedCount: LoadRun.bufferBytes, alignment: 64)
    var buffer: UnsafeMutableRawBufferPointer { receiveBuffer.bytes }
    private let depth: Int
    /// The lanes' positions by their descriptors.
    private var places: [Int]
    /// Proofs answered so far, for a progress line.
    package let answered = Atomic<UInt64>(0)

    /// Connects. `depth` is how many requests are in flight on each connection when there is no pace.
    ///
    /// Throws `connectionRefused` or `internalFault`.
    package init(_ endpoint: Endpoint, connections: Int, depth: Int) throws(ServiceError) {
        self.depth = depth
        var lanes: [Lane] = []
        for _ in 0..<connections { lanes.append(Lane(try Socket.connect(to: endpoint, milliseconds: 5000))) }
        self.lanes = lanes
        places = [Int](repeating: 0, count: 1 + Int(lanes.map(\.descriptor).max() ?? 0))
        do throws(SystemFailure) {
            poller = try makePoller()
            for (place, lane) in lanes.enumerated() {
                places[Int(lane.descriptor)] = place
                try poller.watch(lane.descriptor, for: .reading, isNew: true)
            }
        } catch {
            throw ServiceError(.internalFault, detail: UInt32(bitPattern: error.number), "\(error)")
        }
    }

    /// Sends `requests` and waits for all answers. With `isRepeating` it begins again at the end of the list;
    /// then a request may be in flight once only, so the list is to be longer than connections x depth. Sends
    /// nothing after `seconds`.
    package func drive(_ requests: [LoadRequest], isRepeating: Bool = false, seconds: Double = .infinity) -> LoadReport
    {
        let volley = Volley(requests)
        var tally = Tally(volley)
        let begin = LoadRun.now
        let end = seconds.isFinite ? begin + UInt64(seconds * 1e9) : .max
        var next = 0
        var inFlight = 0

        /// Sends the next `count` requests, as many as there are, on `lane`.
        func send(_ count: Int, on lane: Lane) {
            var left = count
            let now = LoadRun.now
            while left > 0, now < end, !lane.isLost {
                if next == volley.count, isRepeating { next = 0 }
                let requests = next..<min(volley.count, next + left)
                guard !requests.isEmpty else { return }
                for number in requests { tally.begins[number] = now }
                next = requests.upperBound
                left -= requests.count
                lane.inFlight += requests.count
                inFlight += requests.count
                lane.send(volley.bytes(of: requests), of: volley)
            }
            if lane.hasUnsent { watch(lane) }
        }

        for lane in lanes { send(depth, on: lane) }
        var ready: [Readiness] = []
        while inFlight > 0 {
            wait(into: &ready)
            for event in ready {
                let lane = lane(of: event)
                if event.interest.contains(.writing) {
                    lane.flush(volley)
                    if !lane.hasUnsent { watch(lane) }
                }
                guard event.interest.contains(.reading), !lane.isLost else { continue }
                let answers = receive(on: lane, into: &tally)
                lane.inFlight -= answers
                inFlight -= answers
                if lane.isLost {
                    tally.lost(lane.inFlight)
                    inFlight -= lane.inFlight
                    lane.inFlight = 0
                    poller.forget(lane.descriptor)
                } else {
                    send(answers, on: lane)
                }
            }
        }
        return tally.report(seconds: Double(LoadRun.now - begin) / 1e9)
    }

    static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

    /// Waits for events; when none comes for too long, every connection is given up.
    func wait(into ready: inout [Readiness]) {
        let begin = LoadRun.now
        poller.wait(milliseconds: LoadRun.patienceMilliseconds, into: &ready)
        // A signal may end the wait early.
        guard ready.isEmpty, LoadRun.now - begin >= UInt64(LoadRun.patienceMilliseconds) * 1_000_000 else { return }
        for lane in lanes { shutdown(lane.descriptor, CInt(SHUT_RDWR)) }
    }

    func lane(of event: Readiness) -> Lane { lanes[places[Int(event.descriptor)]] }

    /// Reads once on `lane`. Returns how many requests were answered.
    func receive(on lane: Lane, into tally: inout Tally) -> Int {
        let before = tally.requests
        var proofs = 0
        var now: UInt64?
        lane.receive(through: buffer) { header, body in
            let time = now ?? LoadRun.now
            now = time
            proofs += tally.record(header, body, at: time)
        }
        answered.add(UInt64(proofs), ordering: .relaxed)
        return tally.requests - before
    }

    /// Waits for room to send only while something waits to be sent.
    private func watch(_ lane: Lane) {
        // It can only fail for want of memory; then patience ends.
        try? poller.watch(lane.descriptor, for: lane.hasUnsent ? [.reading, .writing] : .reading, isNew: false)
    }
}
