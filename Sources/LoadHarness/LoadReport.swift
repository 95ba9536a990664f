package import Core

/// The result of driving a list of requests.
package struct LoadReport: Sendable {
    package var proofs: UInt64 = 0
    package var requests: UInt64 = 0
    package var seconds = 0.0
    /// When the last request was due, in seconds from the first moment; 0 when nothing was sent on a schedule.
    package var scheduledSeconds = 0.0
    /// Seconds for which the load generator kept a processor busy; 0 when it sent on a schedule, with another thread.
    package var processorSeconds = 0.0
    /// From sending a request to its answer, in nanoseconds, by kind. When requests are sent on a schedule, from the
    /// time at which the request was due.
    package var latencies: [LoadKind: Histogram] = [:]
    /// Grants that were checked.
    package var grants: UInt64 = 0
    /// How often each verdict came.
    package var verdicts: [Verdict: UInt64] = [:]
    /// Proofs whose verdict, and grants whose status, was not the expected one.
    package var wrong: UInt64 = 0
    /// Requests that got an error, by its name.
    package var errors: [String: UInt64] = [:]

    package init() {}

    package var proofsPerSecond: Double { seconds > 0 ? Double(proofs) / seconds : 0 }

    package var requestsPerSecond: Double { seconds > 0 ? Double(requests) / seconds : 0 }

    /// The latencies of all kinds.
    package var latency: Histogram { latencies.values.reduce(into: Histogram()) { $0.add($1) } }

    /// Adds what was sent after this.
    package mutating func add(_ other: LoadReport) {
        let seconds = seconds + other.seconds
        let scheduledSeconds = scheduledSeconds + other.scheduledSeconds
        merge(other)
        (self.seconds, self.scheduledSeconds) = (seconds, scheduledSeconds)
    }

    /// Adds what was sent at the same time.
    package mutating func merge(_ other: LoadReport) {
        proofs += other.proofs
        grants += other.grants
        requests += other.requests
        seconds = max(seconds, other.seconds)
        scheduledSeconds = max(scheduledSeconds, other.scheduledSeconds)
        processorSeconds += other.processorSeconds
        latencies.merge(other.latencies) { first, second in
            var both = first
            both.add(second)
            return both
        }
        verdicts.merge(other.verdicts, uniquingKeysWith: +)
        wrong += other.wrong
        errors.merge(other.errors, uniquingKeysWith: +)
    }
}
