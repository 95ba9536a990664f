import Core
import Wire

/// The results of the requests of a workload so far.
struct Tally {
    private let workload: Workload
    /// When each request was sent, or was due, in nanoseconds; latency counts from then.
    var begins: [UInt64]
    private(set) var requests = 0
    private var report = LoadReport()
    private var counts = [UInt64](repeating: 0, count: 256)

    init(_ workload: Workload) {
        self.workload = workload
        begins = [UInt64](repeating: 0, count: workload.count)
    }

    /// Takes an answer that came at `now`. Returns how many verdicts it has.
    mutating func record(_ header: FrameHeader, _ body: UnsafeRawBufferPointer, at now: UInt64) -> Int {
        requests += 1
        guard header.requestID < UInt64(workload.count) else {
            report.errors["unknown-request", default: 0] += 1
            return 0
        }
        let number = Int(header.requestID)
        report.latency.record(now - begins[number])
        return workload.withVerdicts(of: number) { expected in
            guard header.kind == .answer, body.count == Tally.verdictsStart + expected.count else {
                let error = header.kind == .error ? try? FrameWriter.decodeError(body) : nil
                report.errors[error?.code.name ?? "malformed-answer", default: 0] += 1
                return 0
            }
            for index in 0..<expected.count {
                let verdict = body[Tally.verdictsStart + index]
                counts[Int(verdict)] += 1
                if verdict != expected[index] { report.wrong += 1 }
            }
            report.proofs += UInt64(expected.count)
            return expected.count
        }
    }

    /// Where the verdicts are in an answer's body.
    private static let verdictsStart = 8

    mutating func lost(_ requests: Int) {
        if requests > 0 { report.errors["connection-lost", default: 0] += UInt64(requests) }
    }

    func report(seconds: Double) -> LoadReport {
        var report = report
        report.requests = UInt64(requests)
        report.seconds = seconds
        for verdict in Verdict.allCases where counts[Int(verdict.rawValue)] > 0 {
            report.verdicts[verdict] = counts[Int(verdict.rawValue)]
        }
        return report
    }
}
