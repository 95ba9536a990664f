import Core

/// Reports passes that took long, with the time of each stage; made when an operator asks for it.
package struct SlowPassLog: Sendable {
    private let nanosecondsMax: UInt64
    private let now: @Sendable () -> UInt64
    private let report: @Sendable (String) -> Void

    /// Passes that take longer than `milliseconds` are reported, one line each. `now`: nanoseconds of a monotonic
    /// clock.
    package init(
        milliseconds: UInt64, now: @escaping @Sendable () -> UInt64, report: @escaping @Sendable (String) -> Void
    ) {
        nanosecondsMax = milliseconds * 1_000_000
        self.now = now
        self.report = report
    }

    /// The clock of one pass after another; each verifier has its own.
    struct Stopwatch {
        private let log: SlowPassLog?
        private var began: UInt64 = 0
        private var stages: [(name: StaticString, end: UInt64)] = []

        /// Does nothing without a log.
        init(_ log: SlowPassLog?) {
            self.log = log
        }

        /// A pass begins.
        mutating func start() {
            guard let log else { return }
            stages.removeAll(keepingCapacity: true)
            began = log.now()
        }

        /// A stage ends.
        mutating func lap(_ name: StaticString) {
            guard let log else { return }
            stages.append((name, log.now()))
        }

        /// The pass over so many proofs ends.
        func finish(_ count: Int) {
            guard let log, let end = stages.last?.end, end - min(end, began) > log.nanosecondsMax else { return }
            var last = began
            let times = stages.map { stage in
                defer { last = stage.end }
                return "\(stage.name) \((stage.end - min(stage.end, last)).asMilliseconds)"
            }
            let total = (end - began).asMilliseconds
            log.report("slow: a pass of \(count) proofs took \(total) ms: \(times.joined(separator: ", "))")
        }
    }
}
