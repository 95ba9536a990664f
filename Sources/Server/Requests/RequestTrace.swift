import Core
import Synchronization
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

    /// The number of stages that are recorded. Later ones are not, for example of a query that is suspended many times.
    static let marksMax = 32

    let header: FrameHeader
    /// Identifies the request; requests of different connections may have the same request id.
    let number: UInt64
    private let now: @Sendable () -> UInt64
    private let state: Mutex<[Mark]>

    /// Begins with the stage `decoding`.
    init(_ header: FrameHeader, number: UInt64, now: @escaping @Sendable () -> UInt64) {
        self.header = header
        self.number = number
        self.now = now
        state = Mutex([Mark(stage: .decoding, began: now())])
    }

    var marks: [Mark] { state.withLock { $0 } }

    /// Records that the stage begins, unless the request is in it already.
    func begin(_ stage: RequestStage) {
        let time = now()
        state.withLock { marks in
            guard marks.last?.stage != stage, marks.count < RequestTrace.marksMax else { return }
            marks.append(Mark(stage: stage, began: time))
        }
    }

    /// One line for people: the time of the whole request and the time of each stage, in milliseconds.
    func summary(end: UInt64) -> String {
        let operation = Operation(rawValue: header.operation).map { "\($0)" } ?? "operation \(header.operation)"
        let marks = marks
        let ends = marks.dropFirst().map(\.began) + [end]
        let stages = zip(marks, ends).map { mark, end in
            "\(mark.stage.rawValue) \((end - min(end, mark.began)).asMilliseconds)"
        }
        let total = (end - min(end, marks[0].began)).asMilliseconds
        return "\(operation), request \(header.requestID), took \(total) ms: \(stages.joined(separator: ", "))"
    }
}
