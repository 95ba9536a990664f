import Core
import Wire

/// A stage of a request's life. It lasts until the next one begins.
enum RequestStage: String, Sendable, CaseIterable {
    /// The frame is decoded, on the event loop.
    case decoding
    /// The request waits for a worker.
    case queued
    /// A worker verifies, reads or decides.
    case working
    /// The request waits for the writer and for the disk.
    case committing
    /// The query waits until one of its topics changes.
    case suspended
    /// The answer is encoded and sent.
    case answering
}

/// The stages of one request's life, with the times at which they began.
final class RequestTrace: Sendable {
    /// A stage, and when it began in nanoseconds of the tracer's clock.
    struct Mark: Equatable, Sendable {
        let stage: RequestStage
        let began: UInt64
    }

    /// The number of stages whose beginnings are recorded. A query that is suspended many times has more; of those only
    /// the time is added up.
    static let marksMax = 32

    private struct State {
        var marks: [Mark]
        /// The stage that the request is in.
        var current: Mark
        /// The time of the stages that ended, in nanoseconds.
        var totals: [RequestStage: UInt64] = [:]
        /// When the first stage began that is not in `marks`.
        var marksEnd: UInt64?
        /// The name of the collaboration layer's request.
        var name: String?
    }

    let header: FrameHeader
    /// The number of its connection since the start.
    private let connection: UInt64
    /// Identifies the request; requests of different connections may have the same request id.
    let number: UInt64
    private let now: @Sendable () -> UInt64
    private let state: Lock<State>

    /// Begins with the stage `decoding`.
    init(_ header: FrameHeader, connection: UInt64, number: UInt64, now: @escaping @Sendable () -> UInt64) {
        self.header = header
        self.connection = connection
        self.number = number
        self.now = now
        let first = Mark(stage: .decoding, began: now())
        state = Lock(State(marks: [first], current: first))
    }

    /// The request, for the log.
    var request: LogLine.Request { LogLine.Request(connection: connection, number: header.requestID) }

    /// The recorded stages, each with its end. `end`: of the request.
    func intervals(end: UInt64) -> [(mark: Mark, end: UInt64)] {
        let (marks, marksEnd) = state.withLock { ($0.marks, $0.marksEnd) }
        return Array(zip(marks, marks.dropFirst().map(\.began) + [marksEnd ?? end]))
    }

    /// The time that the request spent in each stage, in nanoseconds. `end`: of the request.
    func totals(end: UInt64) -> [RequestStage: UInt64] {
        state.withLock { state in
            state.totals.merging([state.current.stage: end - min(end, state.current.began)], uniquingKeysWith: +)
        }
    }

    /// Records that the stage begins, unless the request is in it already.
    func begin(_ stage: RequestStage) {
        let time = now()
        state.withLock { state in
            guard state.current.stage != stage else { return }
            state.totals[state.current.stage, default: 0] += time - min(time, state.current.began)
            state.current = Mark(stage: stage, began: time)
            if state.marks.count < RequestTrace.marksMax {
                state.marks.append(state.current)
            } else if state.marksEnd == nil {
                state.marksEnd = time
            }
        }
    }

    /// Says which request of the collaboration layer it is.
    func describe(_ name: String) {
        state.withLock { $0.name = name }
    }

    /// The request's name in the collaboration layer, or else its operation's.
    var operation: String {
        state.withLock(\.name) ?? Operation(rawValue: header.operation).map { "\($0)" }
            ?? "operation \(header.operation)"
    }

    /// One line for people: the time of the whole request and the time of each stage, in milliseconds.
    func summary(end: UInt64) -> String {
        let totals = totals(end: end)
        let stages = RequestStage.allCases.compactMap { stage in
            totals[stage].map { "\(stage.rawValue) \($0.asMilliseconds)" }
        }
        let total = totals.values.reduce(0, +).asMilliseconds
        return "\(operation) took \(total) ms: \(stages.joined(separator: ", "))"
    }
}
