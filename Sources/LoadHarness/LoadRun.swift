package import Core
import Dispatch
import Platform
package import Synchronization
package import Transport
import Wire

/// What came of driving a list of requests.
package struct LoadReport: Sendable {
    package var proofs: UInt64 = 0
    package var requests: UInt64 = 0
    package var seconds = 0.0
    /// From sending a request to its answer, in nanoseconds.
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

/// Drives a service from several connections with several requests in flight
/// on each, as fast as it answers.
package final class LoadRun: Sendable {
    private let loop: EventLoop
    private let descriptors: Mutex<[CInt]>
    private let depth: Int
    private let course = Mutex<Course?>(nil)
    private let connected = Mutex<[LoadConnection]>([])
    /// Proofs answered so far, for a progress line.
    package let answered = Atomic<UInt64>(0)

    /// Connects.
    ///
    /// Throws `connectionRefused` or `internalFault`.
    package init(_ endpoint: Endpoint, connections: Int, depth: Int) throws(ServiceError) {
        self.depth = depth
        do throws(SystemFailure) {
            loop = try EventLoop(
                buffers: ReceiveBufferPool(bytesMax: 1 << 30),
                timeouts: EventLoop.Timeouts(idle: .max / 2, stall: 60_000))
        } catch {
            throw ServiceError(.internalFault, detail: UInt32(bitPattern: error.number), "\(error)")
        }
        var descriptors: [CInt] = []
        for _ in 0..<connections { descriptors.append(try Socket.connect(to: endpoint, milliseconds: 5000)) }
        self.descriptors = Mutex(descriptors)
        loop.start(name: "rootgate load")
        let opened = DispatchSemaphore(value: 0)
        for descriptor in descriptors {
            Connection.open(descriptor, on: loop) { [self] connection in
                let handler = LoadConnection(connection, self)
                connected.withLock { $0.append(handler) }
                opened.signal()
                return handler
            }
        }
        for _ in descriptors { opened.wait() }
    }

    /// Closes the connections.
    package func close() {
        loop.stop()
    }

    /// Sends `requests` (their ids are their positions) and waits for all answers. With `isRepeating` it
    /// begins again at the end of the list; then a request may be in flight once only, so the list is to be
    /// longer than connections x depth. Sends nothing after `seconds`.
    package func drive(_ requests: [LoadRequest], isRepeating: Bool = false, seconds: Double = .infinity) -> LoadReport {
        let done = DispatchSemaphore(value: 0)
        let connections = connected.withLock { $0 }
        let begin = DispatchTime.now().uptimeNanoseconds
        let end = seconds.isFinite ? begin + UInt64(seconds * 1e9) : .max
        let started = Course(requests, isRepeating: isRepeating, end: end, active: connections.count) { done.signal() }
        course.withLock { $0 = started }
        loop.execute { [depth] in
            for connection in connections { connection.start(started, depth: depth) }
        }
        done.wait()
        course.withLock { $0 = nil }
        var report = started.report
        report.seconds = Double(DispatchTime.now().uptimeNanoseconds - begin) / 1e9
        return report
    }

    /// The requests that are being driven and what came of them.
    ///
    /// Sendable without the compiler's proof: touched by the loop's thread only, and read after it signalled
    /// the end.
    fileprivate final class Course: @unchecked Sendable {
        private let requests: [LoadRequest]
        private var sentAt: [UInt64]
        private let isRepeating: Bool
        private let end: UInt64
        private var next = 0
        private var active: Int
        private let finished: () -> Void
        var report = LoadReport()

        init(_ requests: [LoadRequest], isRepeating: Bool, end: UInt64, active: Int, finished: @escaping () -> Void) {
            self.requests = requests
            self.isRepeating = isRepeating
            self.end = end
            self.active = active
            self.finished = finished
            sentAt = [UInt64](repeating: 0, count: requests.count)
        }

        /// The next request's frame; `nil` when nothing more is to be sent.
        func nextFrame() -> [UInt8]? {
            let now = DispatchTime.now().uptimeNanoseconds
            if next == requests.count, isRepeating { next = 0 }
            guard next < requests.count, now < end else { return nil }
            defer { next += 1 }
            sentAt[next] = now
            return requests[next].frame
        }

        func record(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) -> Int {
            let number = Int(header.requestID)
            guard requests.indices.contains(number) else { return 0 }
            let expected = requests[number].expected
            report.requests += 1
            report.latency.record(DispatchTime.now().uptimeNanoseconds - sentAt[number])
            guard header.kind == .answer, body.count == 8 + expected.count else {
                let error = try? FrameWriter.decodeError(body)
                report.errors[error?.code.name ?? "malformed-answer", default: 0] += 1
                return 0
            }
            report.proofs += UInt64(expected.count)
            for (index, verdict) in expected.enumerated() {
                let byte = body[8 + index]
                if byte != verdict.rawValue { report.wrong += 1 }
                if let found = Verdict(rawValue: byte) { counts[Int(found.rawValue)] += 1 }
            }
            return expected.count
        }

        private var counts = [UInt64](repeating: 0, count: 256)

        /// A connection has nothing more in flight, or was lost with `lost` requests in flight.
        func leave(lost: Int) {
            if lost > 0 { report.errors["connection-lost", default: 0] += UInt64(lost) }
            active -= 1
            guard active == 0 else { return }
            for verdict in Verdict.allCases where counts[Int(verdict.rawValue)] > 0 {
                report.verdicts[verdict] = counts[Int(verdict.rawValue)]
            }
            finished()
        }
    }

    /// One connection of the run.
    ///
    /// Sendable without the compiler's proof: touched by the loop's thread only.
    fileprivate final class LoadConnection: ConnectionHandler, @unchecked Sendable {
        private let connection: Connection
        private unowned let run: LoadRun
        private var course: Course?
        private var inFlight = 0
        private var isLost = false

        init(_ connection: Connection, _ run: LoadRun) {
            self.connection = connection
            self.run = run
        }

        func start(_ course: Course, depth: Int) {
            self.course = course
            for _ in 0..<depth { sendNext() }
            leaveIfDone()
        }

        private func sendNext() {
            guard !isLost, let frame = course?.nextFrame() else { return }
            inFlight += 1
            connection.send(frame)
        }

        private func leaveIfDone() {
            guard inFlight == 0, let course else { return }
            self.course = nil
            course.leave(lost: 0)
        }

        func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Progress {
            var start = range.lowerBound
            while true {
                switch FrameScanner.scan(buffer.bytes(start..<range.upperBound), expecting: [.answer, .error]) {
                case .incomplete(let frameBytes):
                    return Progress(consumed: start - range.lowerBound, nextFrameBytes: frameBytes)
                case .violation:
                    connection.close()
                    return Progress(consumed: range.count, nextFrameBytes: 0)
                case .frame(let header):
                    let end = start + Limits.frameHeaderBytes + header.bodyLength
                    let proofs = course?.record(header, buffer.bytes(start + Limits.frameHeaderBytes..<end)) ?? 0
                    run.answered.add(UInt64(proofs), ordering: .relaxed)
                    inFlight -= 1
                    sendNext()
                    leaveIfDone()
                    start = end
                }
            }
        }

        var isBusy: Bool { inFlight > 0 }
        func drained() {}

        func closed() {
            isLost = true
            guard let course else { return }
            self.course = nil
            course.leave(lost: inFlight)
        }
    }
}
