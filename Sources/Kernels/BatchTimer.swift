/// Times contenders against each other.
///
/// They run in turn, several short rounds of each size of batch, and the least time counts: what else the machine does
/// can only make a round longer. A contender that has no chance is timed less often.
package struct BatchTimer {
    /// One that can be timed.
    package struct Contender {
        let width: Int
        /// Processes a batch of so many items, one of `BatchPlan.sizes`.
        let run: (Int) -> Void

        package init(width: Int, run: @escaping (Int) -> Void) {
            (self.width, self.run) = (width, run)
        }
    }

    private static let rounds = 5
    /// Rounds that every contender takes part in: one that was disturbed in all of them would be left out wrongly.
    private static let roundsMin = 3
    /// A contender that takes so many times as long as the quickest has no chance.
    private static let hopeless = 2.0

    /// Batches that are timed together, for a size: a clock does not see a single one if it takes nanoseconds.
    private let repetitions: (Int) -> Int
    /// Seconds on a clock that never goes back.
    private let now: () -> Double

    package init(repetitions: @escaping (Int) -> Int = { _ in 1 }, now: @escaping () -> Double = BatchTimer.secondsNow)
    {
        (self.repetitions, self.now) = (repetitions, now)
    }

    /// The times of all contenders, in their order.
    ///
    /// One that is hopeless at a size of at least its width stays so: in large batches its steps take a little less
    /// time each, but so do those of others. Its times for larger sizes are not measured but follow from that one.
    package func times(of contenders: [Contender]) -> [BatchPlan.Times] {
        var seconds = [[Double]](repeating: [], count: contenders.count)
        var isOut = [Bool](repeating: false, count: contenders.count)
        for (index, size) in BatchPlan.sizes.enumerated() {
            var least = [Double](repeating: .infinity, count: contenders.count)
            for round in 0..<BatchTimer.rounds {
                let quickest = least.min() ?? .infinity
                for place in contenders.indices where !isOut[place] {
                    guard round < BatchTimer.roundsMin || least[place] <= BatchTimer.hopeless * quickest else {
                        continue
                    }
                    least[place] = min(least[place], time(contenders[place], size))
                }
            }
            let quickest = least.min() ?? .infinity
            for place in contenders.indices {
                if isOut[place] {
                    let before = Double(BatchPlan.sizes[index - 1])
                    seconds[place].append(seconds[place][index - 1] * Double(size) / before)
                } else {
                    seconds[place].append(least[place])
                    isOut[place] = contenders[place].width <= size && least[place] > BatchTimer.hopeless * quickest
                }
            }
        }
        return zip(contenders, seconds).map { BatchPlan.Times(width: $0.width, seconds: $1) }
    }

    private func time(_ contender: Contender, _ size: Int) -> Double {
        let count = max(1, repetitions(size))
        let begin = now()
        for _ in 0..<count { contender.run(size) }
        return (now() - begin) / Double(count)
    }

    /// Seconds on the system's clock that never goes back.
    package static func secondsNow() -> Double {
        let elapsed = ContinuousClock.now - start
        return elapsed / .seconds(1)
    }

    private static let start = ContinuousClock.now
}
