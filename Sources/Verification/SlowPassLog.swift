package import Core

/// Reports passes that took long, with the time of each stage; made when an operator asks for it.
package struct SlowPassLog: Sendable {
    private let nanosecondsMax: UInt64
    private let now: @Sendable () -> UInt64
    private let log: Log

    /// Passes that take longer than `milliseconds` are reported, one line each. `now`: nanoseconds of a monotonic
    /// clock.
    package init(milliseconds: UInt64, now: @escaping @Sendable () -> UInt64, log: Log) {
        nanosecondsMax = milliseconds * 1_000_000
        self.now = now
        self.log = log
    }

    /// The clock of one pass after another; each verifier has its own.
    struct Stopwatch {
        private let log: SlowPassLog?
        private let meter: PassMeter?
        private var last: UInt64 = 0
        private var stages: [(stage: PassStage, nanoseconds: UInt64)] = []

        /// Does nothing without a log and a meter.
        init(_ log: SlowPassLog?, _ meter: PassMeter? = nil) {
            self.log = log
            self.meter = meter
            stages.reserveCapacity(PassStage.allCases.count)
        }

        private var now: UInt64? { log.map { $0.now() } ?? meter.map { _ in MonotonicClock.nanoseconds } }

        /// A pass begins.
        mutating func start() {
            guard let now else { return }
            stages.removeAll(keepingCapacity: true)
            last = now
        }

        /// A stage ends.
        mutating func lap(_ stage: PassStage) {
            guard let now else { return }
            stages.append((stage, now - min(now, last)))
            last = now
        }

        /// The pass over so many proofs ends.
        func finish(_ count: Int) {
            meter?.count(count, stages)
            let total = stages.reduce(0) { $0 + $1.nanoseconds }
            guard let log, total > log.nanosecondsMax else { return }
            let times = stages.map { "\($0.stage.rawValue) \($0.nanoseconds.asMilliseconds)" }.joined(separator: ", ")
            log.log(.warning, "slow: a pass of \(count) proofs took \(total.asMilliseconds) ms: \(times)")
        }
    }
}
