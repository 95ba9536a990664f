import Core
import Foundation
import Principals
import RootSets
import Verification

/// What the service did in the last minutes: a moment every two seconds, and so many of them (`Limits.historyMoments`).
///
/// A timer reads what the service counts anyway, so requests do nothing for it. Its memory does not grow.
final class ServiceHistory: Sendable {
    /// Rates and states at one moment. Rates and times are about the time since the moment before; `nil`: nothing that
    /// they could be about has happened, or it can't be read.
    struct Moment: Sendable {
        var proofs: Double?
        var requests: Double?
        var granted: Double?
        var refused: Double?
        var challenges: Double?
        var mutations: Double?
        var commits: Double?
        var passes: Double?
        /// Proofs in a pass, on average.
        var proofsPerPass: Double?
        /// Seconds in which half of the requests, and 99 of 100, were answered.
        var halfWithin: Double?
        var mostWithin: Double?
        /// Seconds in which half of the commits, and 99 of 100, were durable.
        var halfDurable: Double?
        var mostDurable: Double?
        var waitingProofs: Double?
        var waitingMutations: Double?
        var connections: Double?
        var suspended: Double?
        var residentBytes: Double?
        var usedBytes: Double?
    }

    /// What is shown at one time.
    struct Present: Sendable {
        let view: ServiceView
        /// The oldest one first.
        let moments: [Moment]
    }

    /// What the service has counted since its start.
    struct Counted: Sendable {
        let sample: ServiceSample
        /// How long all requests took.
        let requests: PowerHistogram
        /// Proofs in a pass.
        let passes: PowerHistogram
        /// How long the writing of commits took.
        let commits: PowerHistogram
    }

    private struct State {
        var moments: [Moment]
        var last: Counted
        var view: ServiceView
    }

    private let read: @Sendable () -> Counted
    private let state: Lock<State>
    /// Released with the history.
    private let timer: Lock<RepeatingTimer?> = Lock(nil)

    /// `read`: called now and by `observe`.
    init(_ read: @escaping @Sendable () -> Counted) {
        self.read = read
        let first = read()
        state = Lock(State(moments: [], last: first, view: ServiceView(first.sample, after: nil)))
    }

    /// A history of what the pipeline does.
    convenience init(of pipeline: Pipeline, _ meter: RequestMeter) {
        let (rootSets, pool, statistics) = (pipeline.resources.rootSets, pipeline.pool, pipeline.statistics)
        self.init {
            // The figures of a storage that has failed are missing.
            let storage = try? rootSets.read { snapshot throws(ServiceError) in try snapshot.statistics() }
            let figures = statistics.figures(storage: storage)
            var requests = PowerHistogram.durations
            let metered = meter.figures
            for role in PrincipalRole.allCases + [nil] { requests.add(metered.durations(of: role)) }
            return Counted(
                sample: ServiceSample(figures: Dictionary(figures.map { ($0.name, $0.value) }) { $1 }),
                requests: requests, passes: pool.passFigures.proofs, commits: rootSets.commitFigures.writing)
        }
    }

    /// Begins to observe the service, every two seconds until `stop`.
    func start(_ timers: Timers) {
        let period = Limits.historyMilliseconds
        let timer = timers.every(milliseconds: period, leeway: period / 10) { [weak self] in self?.observe() }
        self.timer.withLock { $0 = timer }
    }

    /// Observes no more, and waits until the last observation has ended.
    func stop() {
        let timer = self.timer.withLock { timer in
            defer { timer = nil }
            return timer
        }
        timer?.cancelAndWait()
    }

    /// Adds a moment. The oldest one is forgotten when there are too many.
    func observe() {
        let now = read()
        state.withLock { state in
            let view = ServiceView(now.sample, after: state.last.sample)
            if state.moments.count >= Limits.historyMoments { state.moments.removeFirst() }
            state.moments.append(Moment(view, now, after: state.last))
            (state.last, state.view) = (now, view)
        }
    }

    var present: Present { state.withLock { Present(view: $0.view, moments: $0.moments) } }
}

extension ServiceHistory.Moment {
    private static let refusals = Verdict.allCases.filter(\.isRefusal).map { ServiceSample.verdictPrefix + $0.name }
    private static let passes = Verdict.allCases.filter { !$0.isRefusal }.map { ServiceSample.verdictPrefix + $0.name }

    fileprivate init(_ view: ServiceView, _ now: ServiceHistory.Counted, after before: ServiceHistory.Counted) {
        func state(_ name: String) -> Double? { view.sample.figures[name].map { Double($0) } }
        func sum(_ names: [String]) -> Double? {
            let rates = names.compactMap { view.rates[$0] }
            return rates.isEmpty ? nil : rates.reduce(0, +)
        }
        let rates = view.rates
        (proofs, requests) = (view.proofRate, rates["requests"])
        (granted, refused) = (sum(Self.passes), sum(Self.refusals))
        (challenges, mutations, commits) = (rates["challenges-issued"], rates["mutations"], rates["commits"])
        let answered = now.requests.since(before.requests)
        (halfWithin, mostWithin) = (answered.quantile(0.5), answered.quantile(0.99))
        let written = now.commits.since(before.commits)
        (halfDurable, mostDurable) = (written.quantile(0.5), written.quantile(0.99))
        let passes = now.passes.since(before.passes)
        self.passes = view.seconds > 0 ? Double(passes.count) / view.seconds : nil
        proofsPerPass = passes.count > 0 ? Double(passes.sum) / Double(passes.count) : nil
        (waitingProofs, waitingMutations) = (state("proofs-waiting"), state("mutations-waiting"))
        (connections, suspended) = (state("connections"), state("requests-following"))
        (residentBytes, usedBytes) = (state("resident-bytes"), state("storage-used-bytes"))
    }
}
