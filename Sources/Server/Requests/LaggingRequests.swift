import Core
import RootSets

/// Requests that demand a change which another service of the cluster has made, and which was not applied here yet, or
/// which may only seem to fail because of such a change. Each is tried again when that change was applied, or when its
/// time is over. So a client that has changed something at one service can ask another one at once.
///
/// Peers share the places. Any thread may use it.
final class LaggingRequests: Sendable {
    /// What a request lacks.
    enum Lack: Sendable {
        /// The change with a sequence.
        case change(UInt64)
        /// A change of which the sequence is not known.
        case someChange
        /// Whatever was in the shared log at a time, in milliseconds of the log's clock.
        case news(asOf: UInt64)
    }

    private struct Waiting {
        let owner: Holder
        let lack: Lack
        /// In milliseconds of the clock.
        let deadline: UInt64
        let retry: @Sendable () -> Void
    }

    private struct State {
        var waiting: [Waiting] = []
        /// The sequence of the last change that was applied, as far as it was told.
        var applied: UInt64 = 0
        /// Up to when everything of the log was applied, as far as it was told.
        var freshAsOf: UInt64 = 0
        var places = PeerShares(capacity: Limits.laggingRequestsMax)

        /// Whether what a request lacks was applied.
        func has(_ lack: Lack) -> Bool {
            switch lack {
            case .change(let sequence): sequence <= applied
            case .someChange: false
            case .news(let asOf): asOf <= freshAsOf
            }
        }
    }

    /// A request's patience: it begins when the request lacks a change for the first time.
    final class Patience: Sendable {
        fileprivate let deadline = Lock<UInt64?>(nil)
    }

    private let clock: MonotonicClock
    private let state = Lock(State())
    private let timer = Lock<RepeatingTimer?>(nil)

    init(clock: MonotonicClock, timers: Timers = .system) {
        self.clock = clock
        let timer = timers.every(milliseconds: Limits.laggingLookMilliseconds, leeway: 10) { [weak self] in
            self?.retryOverdue()
        }
        self.timer.withLock { $0 = timer }
    }

    deinit { timer.withLock { $0 }?.cancel() }

    /// Keeps a request of `owner`. `retry` is called once, on any thread, at once when what the request lacks was
    /// applied meanwhile. It must only look for that, and queue the request. Returns false, and keeps nothing, when the
    /// request has waited long enough, or when its owner has too many that wait. One that lacks some change is tried
    /// again after any change.
    func keep(
        of owner: Holder, lacking lack: Lack, _ patience: Patience, retry: @escaping @Sendable () -> Void
    ) -> Bool {
        let now = clock.milliseconds
        let deadline = patience.deadline.withLock { deadline in
            let known = deadline ?? now + Limits.laggingMilliseconds
            deadline = known
            return known
        }
        guard now < deadline else { return false }
        let isKept: Bool? = state.withLock { state in
            guard !state.has(lack) else { return nil }
            guard state.places.take(1, by: owner) else { return false }
            state.waiting.append(Waiting(owner: owner, lack: lack, deadline: deadline, retry: retry))
            return true
        }
        guard let isKept else {
            // Once: a storage that still lacks it has lost it.
            patience.deadline.withLock { $0 = now }
            retry()
            return true
        }
        return isKept
    }

    /// The changes up to a sequence were applied: tries those again that lacked one of them.
    func progress(to sequence: UInt64) {
        state.withLock { $0.applied = max($0.applied, sequence) }
        retry {
            switch $0.lack {
            case .change(let lacking): lacking <= sequence
            case .someChange: true
            case .news: false
            }
        }
    }

    /// Everything that was in the log at a time was applied: tries those again that lacked no more than that.
    func news(asOf time: UInt64) {
        state.withLock { $0.freshAsOf = max($0.freshAsOf, time) }
        retry { if case .news(let asOf) = $0.lack { asOf <= time } else { false } }
    }

    private func retryOverdue() {
        let now = clock.milliseconds
        retry { $0.deadline <= now }
    }

    private func retry(_ isDue: (Waiting) -> Bool) {
        let due = state.withLock { state in
            guard !state.waiting.isEmpty else { return [Waiting]() }
            let due = state.waiting.filter(isDue)
            state.waiting.removeAll(where: isDue)
            for waiting in due { state.places.giveBack(1, by: waiting.owner) }
            return due
        }
        for waiting in due { waiting.retry() }
    }
}

extension PendingRequest {
    /// Fails the request; but when it only lacks a change that others have made, tries it again when that may be there.
    ///
    /// `lagging`: `nil` where nobody else makes changes. `retry` queues the request, or throws the error that fails it.
    func fail(
        _ error: ServiceError, lacking lack: LaggingRequests.Lack, unlessKeptBy lagging: LaggingRequests?,
        _ patience: LaggingRequests.Patience, retry: @escaping @Sendable () throws(ServiceError) -> Void
    ) {
        guard !isKept(after: error, lacking: lack, by: lagging, patience, retry: retry) else { return }
        fail(error)
    }

    /// Calls `answer`, which says that something is not there, is not allowed, or needs no change. But a storage that
    /// lacks what others had changed when the request arrived does not know that: then the request is tried again when
    /// it knows, or fails with `busy`.
    ///
    /// `moment`: taken before what the answer comes from. `arrival`: of the request, see `RootSets.logTime`. `lagging`,
    /// `retry`: as above.
    func answerIfKnown(
        as moment: ReadMoment, since arrival: UInt64?, keptBy lagging: LaggingRequests?,
        _ patience: LaggingRequests.Patience, _ answer: () -> Void,
        retry: @escaping @Sendable () throws(ServiceError) -> Void
    ) {
        guard let lagging, let arrival, !moment.has(arrival) else { return answer() }
        guard !keep(lacking: .news(asOf: arrival), by: lagging, patience, retry: retry) else { return }
        fail(ServiceError(.busy, "it is not known yet what other services have changed: try again later"))
    }

    fileprivate func isKept(
        after error: ServiceError, lacking lack: LaggingRequests.Lack, by lagging: LaggingRequests?,
        _ patience: LaggingRequests.Patience, retry: @escaping @Sendable () throws(ServiceError) -> Void
    ) -> Bool {
        guard error.code == .behindSequence, let lagging else { return false }
        return keep(lacking: lack, by: lagging, patience, retry: retry)
    }

    private func keep(
        lacking lack: LaggingRequests.Lack, by lagging: LaggingRequests, _ patience: LaggingRequests.Patience,
        retry: @escaping @Sendable () throws(ServiceError) -> Void
    ) -> Bool {
        lagging.keep(of: owner, lacking: lack, patience) {
            do throws(ServiceError) {
                try retry()
            } catch {
                self.fail(error)
            }
        }
    }
}

extension RootSets {
    /// Whether the change with a sequence was not applied yet, and the request that demands it is tried again later.
    ///
    /// Throws `behindSequence` when it is not.
    func lacks(
        _ sequence: UInt64, keptBy lagging: LaggingRequests?, _ pending: PendingRequest,
        _ patience: LaggingRequests.Patience, retry: @escaping @Sendable () throws(ServiceError) -> Void
    ) throws(ServiceError) -> Bool {
        do throws(ServiceError) {
            try check(atLeast: sequence)
            return false
        } catch {
            guard pending.isKept(after: error, lacking: .change(sequence), by: lagging, patience, retry: retry) else {
                throw error
            }
            return true
        }
    }
}
