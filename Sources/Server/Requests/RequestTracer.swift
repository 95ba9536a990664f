import Core
import Dispatch
import Foundation
import Platform
import Synchronization
import Wire

/// Traces requests when an operator asks for it: logs slow ones with the time of each stage, and writes the stages of
/// one in N requests to a file.
///
/// The file has the trace event format that Perfetto and Chrome's `about:tracing` read: one interval a line, a row for
/// each request.
final class RequestTracer: Sendable {
    /// What is traced.
    struct Settings: Sendable {
        /// Requests that take longer are logged; `nil` logs none. Waiting for a change does not count.
        var slowMilliseconds: UInt64?
        /// Where the stages are written; `nil` writes none.
        var path: String?
        /// N, if one in N requests is written; at least 1.
        var interval: UInt64 = 1
        /// Bytes of the file, at most.
        var bytesMax = Limits.traceBytesMax

        var isOn: Bool { slowMilliseconds != nil || path != nil }
    }

    private struct Output {
        let handle: FileHandle
        var bytes: Int
    }

    private let settings: Settings
    private let log: Log
    private let now: @Sendable () -> UInt64
    private let count = Atomic<UInt64>(0)
    /// `nil` when nothing is written, after a write has failed, or when the file is full.
    private let file: Lock<Output?>
    /// Whether there is a file. Changed with its lock held, as what follows is.
    private let isWriting: Atomic<Bool>
    private let hasEvents = Atomic<Bool>(false)

    /// Makes the file, or empties it. `now`: nanoseconds of a monotonic clock.
    ///
    /// Throws when the file can't be made.
    init(
        _ settings: Settings, log: Log,
        now: @escaping @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }
    ) throws(SystemFailure) {
        precondition(settings.interval > 0)
        self.settings = settings
        self.log = log
        self.now = now
        isWriting = Atomic(settings.path != nil)
        guard let path = settings.path else {
            file = Lock(nil)
            return
        }
        let beginning = Data("[\n".utf8)
        let descriptor = try System.create(path, beginning)
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        file = Lock(Output(handle: handle, bytes: beginning.count))
    }

    /// A trace for a request whose frame has arrived.
    func begin(_ header: FrameHeader, connection: UInt64) -> RequestTrace {
        RequestTrace(header, connection: connection, number: count.add(1, ordering: .relaxed).oldValue, now: now)
    }

    /// Ends the trace of a request that is answered: logs it when it was slow, and writes it when it is a sample.
    func end(_ trace: RequestTrace) {
        let end = now()
        if let slow = settings.slowMilliseconds {
            let busy = trace.totals(end: end).reduce(0) { $1.key == .suspended ? $0 : $0 + $1.value }
            if busy > slow * 1_000_000 { log(.warning, "slow: \(trace.summary(end: end))", request: trace.request) }
        }
        if isWriting.load(ordering: .relaxed), trace.number % settings.interval == 0 {
            write(RequestTracer.events(of: trace, end: end))
        }
    }

    /// One line for each stage: a complete event with its beginning and length in microseconds.
    static func events(of trace: RequestTrace, end: UInt64) -> String {
        let operation = trace.operation
        return trace.intervals(end: end).map { mark, end in
            let length = end - min(end, mark.began)
            return """
                {"name":"\(mark.stage.rawValue)","cat":"\(operation)","ph":"X","pid":1,"tid":\(trace.number),\
                "ts":\(Double(mark.began) / 1000),"dur":\(Double(length) / 1000),\
                "args":{"request":\(trace.header.requestID)}}
                """
        }.joined(separator: ",\n")
    }

    /// Appends events to the list in the file. The list is not closed, so that it can be read while it grows. With a
    /// `]` appended the file is JSON.
    private func write(_ text: String) {
        let end = file.withLock { file -> (level: LogLevel, reason: String)? in
            guard let output = file else { return nil }
            let separator = hasEvents.load(ordering: .relaxed) ? ",\n" : ""
            let bytes = Data((separator + text).utf8)
            guard output.bytes + bytes.count <= settings.bytesMax else {
                file = nil
                isWriting.store(false, ordering: .relaxed)
                return (.warning, "its file has \(settings.bytesMax >> 20) MiB: a restart begins it anew")
            }
            do throws(SystemFailure) {
                try System.writeAll(bytes, to: output.handle.fileDescriptor)
                file?.bytes += bytes.count
                hasEvents.store(true, ordering: .relaxed)
                return nil
            } catch {
                file = nil
                isWriting.store(false, ordering: .relaxed)
                return (.error, "it can't be written: \(error.reason)")
            }
        }
        if let end { log(end.level, "the trace ends here, because \(end.reason)") }
    }
}
