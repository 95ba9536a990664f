import Core
import Foundation
import Platform
import Synchronization
import Transport

extension LoadRun {
    /// Sends `requests`, `perSecond` in a second on average and independently of each other (a Poisson process); see
    /// `drive(_:at:spins:)`.
    package func drive(_ requests: [LoadRequest], perSecond: Double, spins: Bool = false) -> LoadReport {
        precondition(perSecond > 0, "requests are sent at no rate")
        var due = 0.0
        let moments = requests.map { _ in
            due += -log(Double.random(in: .leastNonzeroMagnitude..<1)) / perSecond
            return due
        }
        return drive(requests, at: moments, spins: spins)
    }

    /// Sends each of `requests` when it is due, whether or not earlier ones are answered, on the connections in turn;
    /// waits for all answers. Latency counts from when a request was due, so that a delay shows even when the
    /// service reads requests late.
    ///
    /// `moments`: when each request is due, in seconds from the beginning, in ascending order.
    ///
    /// `spins`: the calling thread has a processor of its own. Then it sends and receives without ever sleeping.
    /// Otherwise another thread sends, and both sleep: with tens of thousands of requests a second, falling asleep and
    /// waking up can take the generator more time than anything else.
    package func drive(_ requests: [LoadRequest], at moments: [Double], spins: Bool = false) -> LoadReport {
        precondition(moments.count == requests.count, "a request has no moment")
        thread.bind()
        defer { thread.unbind() }
        let workload = Workload(requests)
        var tally = Tally(workload)
        // Nothing is due before all is set up: making the list of times alone takes a millisecond.
        let begin = LoadRun.now + LoadRun.leadNanoseconds
        for number in requests.indices { tally.begins[number] = begin + UInt64(moments[number] * 1e9) }
        // It sleeps from one request to the next on a thread of its own while this one waits for answers.
        let sender = PacedSender(workload, dueAt: tally.begins, on: connections.map(\.descriptor))
        if spins {
            spin(sender, &tally)
            return report(tally, since: begin, moments)
        }
        let hasSent = DispatchSemaphore(value: 0)
        let thread = Thread {
            sender.send()
            hasSent.signal()
        }
        thread.start()
        var ready: [Readiness] = []
        var isLost = false
        while tally.requests < requests.count, !isLost {
            wait(into: &ready)
            for event in ready where !isLost {
                let connection = connection(of: event)
                _ = receive(on: connection, into: &tally)
                isLost = connection.isLost
            }
        }
        if isLost {
            // It is not known which requests were in flight on the connection, so all unanswered ones count as lost.
            sender.isStopped.store(true, ordering: .relaxed)
            tally.lost(requests.count - tally.requests)
        }
        hasSent.wait()
        return report(tally, since: begin, moments)
    }

    private func report(_ tally: Tally, since begin: UInt64, _ moments: [Double]) -> LoadReport {
        var report = tally.report(seconds: max(0, Double(LoadRun.now) - Double(begin)) / 1e9)
        report.scheduledSeconds = moments.last ?? 0
        return report
    }
}

extension LoadRun {
    /// Between the call and the moment from which on requests are due.
    private static let leadNanoseconds: UInt64 = 20_000_000

    /// Sends what is due and receives what has come, in turn, until all is answered or nothing has come for too long.
    private func spin(_ sender: PacedSender, _ tally: inout Tally) {
        let count = tally.begins.count
        var next = 0
        var ready: [Readiness] = []
        var last = LoadRun.now
        while tally.requests < count {
            let now = LoadRun.now
            if next < count, sender.sendIfDue(next, at: now) {
                next += 1
                last = now
            }
            poller.wait(milliseconds: 0, into: &ready)
            var isLost = now - last > UInt64(LoadRun.patienceMilliseconds) * 1_000_000
            for event in ready where !isLost {
                let connection = connection(of: event)
                if receive(on: connection, into: &tally) > 0 { last = now }
                isLost = connection.isLost
            }
            // It is not known which requests were in flight on the connection, so all unanswered ones count as lost.
            if isLost { return tally.lost(count - tally.requests) }
        }
    }
}

/// Sends a workload's requests at given times.
private final class PacedSender: Sendable {
    private let workload: Workload
    private let dueAt: [UInt64]
    private let descriptors: [CInt]
    let isStopped = Atomic<Bool>(false)

    init(_ workload: Workload, dueAt: [UInt64], on descriptors: [CInt]) {
        precondition(dueAt.count == workload.count && !descriptors.isEmpty, "a request has no time or no connection")
        self.workload = workload
        self.dueAt = dueAt
        self.descriptors = descriptors
    }

    func send() {
        System.sharpenTimers()
        for number in 0..<workload.count {
            let now = LoadRun.now
            if dueAt[number] > now { sleep(nanoseconds: dueAt[number] - now) }
            guard sendWhole(number, on: descriptors[number % descriptors.count]) else { return }
        }
    }

    /// Sends a request if its time has come.
    func sendIfDue(_ number: Int, at now: UInt64) -> Bool {
        dueAt[number] <= now && sendWhole(number, on: descriptors[number % descriptors.count])
    }

    /// Sends one request, waiting while the socket takes nothing. False when the run is over.
    private func sendWhole(_ number: Int, on descriptor: CInt) -> Bool {
        var range = workload.bytes(of: number..<number + 1)
        while !range.isEmpty {
            guard !isStopped.load(ordering: .relaxed) else { return false }
            switch workload.withFrames(range, { Socket.send(descriptor, $0) }) {
            case .bytes(let count): range = range.lowerBound + count..<range.upperBound
            case .wouldBlock:
                var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&waiting, 1, 100)
            // The next read reports it.
            case .ended: return false
            }
        }
        return !isStopped.load(ordering: .relaxed)
    }

    private func sleep(nanoseconds: UInt64) {
        var time = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        nanosleep(&time, nil)
    }
}
