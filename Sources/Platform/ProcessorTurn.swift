import Foundation

/// How long a thread that always has work keeps its processor before it lets others run.
///
/// The system interrupts such a thread at its next tick only, after 4 ms on most machines. What waits for the processor
/// may be another thread of the service, or the client that was just answered.
package struct ProcessorTurn {
    private let length: Duration
    private let letOthersRun: () -> Void
    private var end: ContinuousClock.Instant

    /// Begins a turn of so many microseconds. `letOthersRun` is for tests.
    package init(microseconds: Int64, letOthersRun: @escaping () -> Void = { System.letOthersRun() }) {
        length = .microseconds(microseconds)
        self.letOthersRun = letOthersRun
        end = ContinuousClock.now + length
    }

    /// Begins a turn, because the thread has waited and others could run.
    package mutating func begin() {
        end = ContinuousClock.now + length
    }

    /// Lets others run when the turn is over, and begins another one. Costs less than a microsecond when nobody waits
    /// for the processor.
    package mutating func endIfOver() {
        guard ContinuousClock.now >= end else { return }
        letOthersRun()
        begin()
    }
}

extension System {
    /// Lets other threads run before the calling one continues.
    package static func letOthersRun() { sched_yield() }
}
