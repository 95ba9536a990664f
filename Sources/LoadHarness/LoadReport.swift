package import Core

/// The result of driving a list of requests.
package struct LoadReport: Sendable {
    package var proofs: UInt64 = 0
    package var requests: UInt64 = 0
    package var seconds = 0.0
    /// Seconds for which the load generator kept a processor busy; 0 when it sent on a schedule, with another thread.
    package var processorSeconds = 0.0
    /// From sending a request to its answer, in nanoseconds. When requests are sent on a schedule, from the time at
    /// which the request was due.
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
        processorSeconds += other.processorSeconds
        latency.add(other.latency)
        verdicts.merge(other.verdicts, uniquingKeysWith: +)
        wrong += other.wrong
        errors.merge(other.errors, uniquingKeysWith: +)
    }
}
