import Core
import Foundation
import TestSupport
import Testing
import Wire

@testable import Server

/// A clock that advances by the test's number of nanoseconds each time it is read.
private final class SteppingTime: Sendable {
    private let steps: Lock<[UInt64]>
    private let time = Lock<UInt64>(0)

    init(_ steps: [UInt64]) { self.steps = Lock(steps) }

    func next() -> UInt64 {
        let step = steps.withLock { $0.isEmpty ? 0 : $0.removeFirst() }
        return time.withLock { time in
            time += step
            return time
        }
    }
}

@Suite struct RequestTraceTests {
    private let header = FrameHeader(kind: .request, operation: Operation.verify.rawValue, requestID: 7)

    /// A log that appends each line's text and its request.
    private func log(to lines: Shared<[String]>) -> Log {
        Log { line in
            let request = line.request.map { " (\($0.connection), \($0.number))" } ?? ""
            lines.with { $0.append(line.text + request) }
        }
    }

    private func trace(_ tracer: RequestTracer, through stages: [RequestStage]) -> RequestTrace {
        let trace = tracer.begin(header, connection: 9)
        for stage in stages { trace.begin(stage) }
        return trace
    }

    @Test("A slow request is logged with the time of each stage, a quick one is not")
    func slow() throws {
        let lines = Shared<[String]>([])
        let time = SteppingTime([0, 1_000, 4_000_000, 2_000_000, 30_000, 0, 0, 0, 0, 5_000_000])
        let tracer = try RequestTracer(
            RequestTracer.Settings(slowMilliseconds: 5), log: log(to: lines), now: { time.next() })
        let stages: [RequestStage] = [.queued, .working, .answering]
        tracer.end(trace(tracer, through: stages))
        let expected =
            "slow: verify took 6.031 ms: decoding 0.001, queued 4.000, working 2.000, answering 0.030 (9, 7)"
        #expect(lines.value == [expected])
        // A request of the collaboration layer goes by its own name.
        let named = RequestTrace(header, connection: 9, number: 1) { 0 }
        named.describe("prepare")
        #expect(named.summary(end: 0).hasPrefix("prepare took "))
        #expect(RequestTracer.events(of: named, end: 0).contains("\"cat\":\"prepare\""))
        // Exactly five milliseconds are not longer than five milliseconds.
        tracer.end(trace(tracer, through: stages))
        #expect(lines.value.count == 1)
    }

    @Test("Waiting for a change does not make a request slow")
    func suspended() throws {
        let lines = Shared<[String]>([])
        let time = SteppingTime([0, 0, 0, 60_000_000_000, 0, 0])
        let tracer = try RequestTracer(
            RequestTracer.Settings(slowMilliseconds: 1), log: log(to: lines), now: { time.next() })
        tracer.end(trace(tracer, through: [.working, .suspended, .queued, .working]))
        #expect(lines.value == [])
    }

    @Test("The file has one interval a stage for one request in so many, as JSON")
    func file() throws {
        let directory = ScratchDirectory()
        try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: true)
        let path = directory.path + "/trace.json"
        let time = SteppingTime([UInt64](repeating: 1500, count: 100))
        let tracer = try RequestTracer(
            RequestTracer.Settings(path: path, interval: 2), log: .none, now: { time.next() })
        for _ in 0..<3 { tracer.end(trace(tracer, through: [.queued, .queued, .working])) }
        let text = try String(contentsOf: URL(fileURLWithPath: path), encoding: .utf8)
        // The list is not closed, so that a trace can be read while it is written.
        let events = try JSONDecoder().decode([Event].self, from: Data((text + "]").utf8))
        #expect(events.count == 6)
        #expect(events.map(\.name) == ["decoding", "queued", "working", "decoding", "queued", "working"])
        #expect(events.map(\.tid) == [0, 0, 0, 2, 2, 2])
        #expect(events[0].ts == 1.5 && events[0].dur == 1.5 && events[1].dur == 3)
        #expect(events.allSatisfy { $0.ph == "X" && $0.cat == "verify" && $0.args.request == 7 })
    }

    private struct Event: Decodable {
        struct Arguments: Decodable { let request: UInt64 }
        let name: String
        let cat: String
        let ph: String
        let tid: UInt64
        let ts: Double
        let dur: Double
        let args: Arguments
    }

    @Test("A file that is full ends the trace, which the log says once, and what is in the file is whole")
    func fullFile() throws {
        let directory = ScratchDirectory()
        try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: true)
        let path = directory.path + "/trace.json"
        let lines = Shared<[String]>([])
        let time = SteppingTime([UInt64](repeating: 1500, count: 400))
        let tracer = try RequestTracer(
            RequestTracer.Settings(path: path, bytesMax: 2000), log: log(to: lines), now: { time.next() })
        for _ in 0..<50 { tracer.end(trace(tracer, through: [.queued, .working])) }
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect((1000...2000).contains(bytes.count))
        #expect(try JSONDecoder().decode([Event].self, from: bytes + Data("]".utf8)).count > 6)
        #expect(lines.value.count == 1 && lines.value.first?.contains("the trace ends here") == true)
    }

    @Test("A query that is suspended many times has its time added up, and the first stages recorded")
    func manyStages() throws {
        let lines = Shared<[String]>([])
        let time = SteppingTime([0] + [UInt64](repeating: 1_000_000, count: 101))
        let tracer = try RequestTracer(
            RequestTracer.Settings(slowMilliseconds: 50), log: log(to: lines), now: { time.next() })
        let trace = trace(tracer, through: (0..<100).map { $0 % 2 == 0 ? .suspended : .queued })
        let intervals = trace.intervals(end: 1_000_000_000)
        #expect(intervals.count == RequestTrace.marksMax)
        #expect(intervals.allSatisfy { $0.end - $0.mark.began == 1_000_000 })
        tracer.end(trace)
        let line = "slow: verify took 101.000 ms: decoding 1.000, queued 50.000, suspended 50.000 (9, 7)"
        #expect(lines.value == [line])
    }

    @Test("A file that can't be made keeps the service from starting")
    func noFile() throws {
        #expect(throws: (any Error).self) {
            try RequestTracer(RequestTracer.Settings(path: "/nonexistent/trace.json"), log: .none)
        }
    }
}
