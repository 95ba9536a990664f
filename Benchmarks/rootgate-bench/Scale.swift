import Dispatch
import LoadHarness

/// How large and how long the benchmarks are: the real sizes, or tiny ones that only show that they run.
///
/// A round ends by time, not by count, so that it takes no longer on a slow machine than on a quick one.
struct Scale: Sendable {
    /// Set-up gives up after this time.
    private static let setUpSecondsMax = 900.0
    /// The number of rounds that are measured even when their time is over.
    private static let roundsMin = 3

    let isTiny: Bool
    /// How long a round repeats what it measures.
    let seconds: Double
    /// Shows the progress.
    let progress: ProgressMeter
    /// Seconds on a clock that never goes back.
    let now: @Sendable () -> Double
    /// The share of the present benchmark's time that set-up takes, from 0 to below 1.
    private(set) var setUpShare = 0.0
    /// When the present benchmark began.
    private var begin = 0.0

    init(
        isTiny: Bool, seconds: Double? = nil, progress: ProgressMeter = .silent,
        now: @escaping @Sendable () -> Double = monotonicSeconds
    ) {
        self.isTiny = isTiny
        self.seconds = seconds ?? (isTiny ? 0.02 : 0.4)
        self.progress = progress
        self.now = now
        begin = now()
    }

    /// The scale for a benchmark that begins now.
    func beginning(setUpShare: Double) -> Scale {
        var scale = self
        scale.setUpShare = setUpShare
        scale.begin = now()
        return scale
    }

    var rounds: Int { isTiny ? 1 : 5 }
    /// How long a round sends signed proofs. Each of them has to be signed beforehand, which takes several times as
    /// long as its verification.
    var sendingSeconds: Double { seconds * 0.375 }
    /// Seconds after which no further round begins.
    var roundsSeconds: Double { seconds * 150 }

    func size(_ full: Int, tiny: Int) -> Int { isTiny ? tiny : full }

    /// The number of items that take `seconds` at the given rate, within `bounds`.
    func count(at rate: Double, for seconds: Double, in bounds: ClosedRange<Int>) -> Int {
        Int(min(max(rate * seconds, Double(bounds.lowerBound)), Double(bounds.upperBound)))
    }

    // MARK: Rounds

    /// Runs both in alternation, one of each a round, after one of each that does not count. No round begins when
    /// `limit` seconds are over, but three are run in any case.
    func alternate(
        rounds count: Int? = nil, limit: Double? = nil, _ subject: () throws -> Double, _ baseline: () throws -> Double
    ) rethrows -> [(subject: Double, baseline: Double)] {
        try measured(count ?? rounds, limit ?? roundsSeconds) { (subject: try subject(), baseline: try baseline()) }
    }

    /// The results of all rounds, after a call that does not count. Ends by time as `alternate` does.
    func repeated(_ body: () throws -> Double) rethrows -> [Double] {
        try measured(rounds, roundsSeconds, body)
    }

    private func measured<Result>(_ count: Int, _ limit: Double, _ round: () throws -> Result) rethrows -> [Result] {
        if !isTiny {
            progress.show("warming up", done: setUpShare)
            _ = try round()
        }
        let begin = now()
        var results: [Result] = []
        while results.count < count, results.count < Scale.roundsMin || now() - begin < limit {
            let done = Double(results.count) / Double(count)
            progress.show("round \(results.count + 1) of \(count)", done: setUpShare + (1 - setUpShare) * done)
            results.append(try round())
        }
        return results
    }

    /// Calls of `body` per second times `items`, over about `seconds`.
    func rate(items: Int, _ body: () throws -> Void) rethrows -> Double {
        let begin = now()
        var calls = 0
        while true {
            try body()
            calls += 1
            let elapsed = now() - begin
            if elapsed >= seconds { return Double(calls * items) / elapsed }
        }
    }

    // MARK: Set-up

    /// Says that `done` of some set-up is done, from 0 to 1.
    ///
    /// Throws `SetUpTooLong` when the benchmark's set-up has taken more time than there is for it.
    func settingUp(_ what: String, _ done: Double) throws {
        progress.show("\(what), \(Int(done * 100)) %", done: setUpShare > 0 ? setUpShare * done : nil)
        guard now() - begin <= Scale.setUpSecondsMax else { throw SetUpTooLong(what: what, done: done) }
    }
}

/// Set-up took too long; the benchmark is left out.
struct SetUpTooLong: Error, CustomStringConvertible {
    let what: String
    let done: Double

    var description: String { "\(what) takes too long on this machine: \(Int(done * 100)) % done" }
}

/// The machine lacks a program that a benchmark needs; the benchmark is skipped.
struct Skipped: Error {
    let reason: String
}

/// Seconds that `body` takes.
func seconds(_ body: () throws -> Void) rethrows -> Double {
    let begin = monotonicSeconds()
    try body()
    return monotonicSeconds() - begin
}

/// Seconds on the system's clock that never goes back.
@Sendable func monotonicSeconds() -> Double { Double(DispatchTime.now().uptimeNanoseconds) / 1e9 }
