import Core
import Wire

/// The results of the requests of a workload so far.
struct Tally {
    private let workload: Workload
    /// When each request was sent, or was due, in nanoseconds; latency counts from then.
    var begins: [UInt64]
    private(set) var requests = 0
    private var report = LoadReport()
    private var latencies = [Histogram](repeating: Histogram(), count: LoadKind.allCases.count)
    private var verdicts = [UInt64](repeating: 0, count: 256)

    init(_ workload: Workload) {
        self.workload = workload
        begins = [UInt64](repeating: 0, count: workload.count)
    }

    /// Takes an answer that came at `now`.
    mutating func record(_ header: FrameHeader, _ body: UnsafeRawBufferPointer, at now: UInt64) {
        requests += 1
        guard header.requestID < UInt64(workload.count) else {
            report.errors["unknown-request", default: 0] += 1
            return
        }
        let number = Int(header.requestID)
        let kind = workload.kind(of: number)
        latencies[kind.place].record(now - begins[number])
        workload.withResults(of: number) { expected in
            guard header.kind == .answer, kind.answerBytes(expected.count).map({ $0 == body.count }) ?? true else {
                let error = header.kind == .error ? try? FrameWriter.decodeError(body) : nil
                report.errors[error?.code.name ?? "malformed-answer", default: 0] += 1
                return
            }
            for index in 0..<expected.count {
                let result = body[LoadKind.resultsStart + index * kind.resultBytes]
                if kind.hasProofs { verdicts[Int(result)] += 1 }
                if result != expected[index] { report.wrong += 1 }
            }
            if kind.hasProofs { report.proofs += UInt64(expected.count) }
            if kind == .check { report.grants += UInt64(expected.count) }
        }
    }

    mutating func lost(_ requests: Int) {
        if requests > 0 { report.errors["connection-lost", default: 0] += UInt64(requests) }
    }

    func report(seconds: Double) -> LoadReport {
        var report = report
        report.requests = UInt64(requests)
        report.seconds = seconds
        for kind in LoadKind.allCases where latencies[kind.place].count > 0 {
            report.latencies[kind] = latencies[kind.place]
        }
        for verdict in Verdict.allCases where verdicts[Int(verdict.rawValue)] > 0 {
            report.verdicts[verdict] = verdicts[Int(verdict.rawValue)]
        }
        return report
    }
}
