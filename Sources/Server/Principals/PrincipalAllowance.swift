import Core
import Principals

/// What a principal uses of its limits, over all of its connections, and what it is refused above them.
///
/// A request is checked before its work is done. That takes a short lock and allocates nothing, unless it is refused.
final class PrincipalAllowance: Sendable {
    private struct State {
        var limits: PrincipalLimits
        var proofs: TokenBucket?
        var challenges: TokenBucket?
        var grants: TokenBucket?
        var mutations: TokenBucket?
        /// For removals that are above the limit of mutations.
        var removals: TokenBucket
        var requestsInFlight = 0
        var followers = 0
        /// When the next connection that is not read for a while may be read again, in milliseconds.
        var nextTurn: UInt64 = 0
    }

    private let clock: MonotonicClock
    private let refusals: LimitRefusals
    private let state: Lock<State>

    init(_ limits: PrincipalLimits, _ clock: MonotonicClock, _ refusals: LimitRefusals) {
        self.clock = clock
        self.refusals = refusals
        let now = clock.milliseconds
        state = Lock(
            State(
                limits: PrincipalLimits(),
                removals: TokenBucket(
                    tokensPerSecond: Limits.removalsPerSecondReserve, burst: Limits.removalsAtOnceReserve, at: now)))
        replace(limits)
    }

    /// Sets other limits, which hold for every request from now on. What was used stays used.
    func replace(_ limits: PrincipalLimits) {
        let now = clock.milliseconds
        state.withLock { state in
            guard limits != state.limits else { return }
            func resize(_ bucket: inout TokenBucket?, _ limit: Int?) {
                guard let limit, limit > 0 else {
                    bucket = nil
                    return
                }
                let rate = min(limit, Limits.principalLimitMax)
                let burst = min(rate * Limits.burstSeconds, Limits.principalLimitMax)
                bucket =
                    bucket?.resized(tokensPerSecond: rate, burst: burst, at: now)
                    ?? TokenBucket(tokensPerSecond: rate, burst: burst, at: now)
            }
            state.limits = limits
            resize(&state.proofs, limits.proofsPerSecond)
            resize(&state.challenges, limits.proofsPerSecond)
            resize(&state.grants, limits.proofsPerSecond.map { $0 * Limits.grantsPerProof })
            resize(&state.mutations, limits.mutationsPerSecond)
        }
    }

    // MARK: Rates

    /// Takes what a request costs of the rates.
    ///
    /// Throws `busy` with the time to wait, or `limitExceeded` when the limit is 0 and the request is no removal.
    func spend(_ cost: RequestCost) throws(ServiceError) {
        let now = clock.milliseconds
        let refusal = state.withLock { state -> (PrincipalLimits.Kind, Int, UInt64)? in
            let limits = state.limits
            func take(_ count: Int, _ bucket: inout TokenBucket?, _ kind: PrincipalLimits.Kind)
                -> (PrincipalLimits.Kind, Int, UInt64)?
            {
                guard count > 0, let limit = limits[kind] else { return nil }
                guard limit > 0 else { return (kind, 0, 0) }
                return bucket?.take(count, at: now).map { (kind, limit, $0) }
            }
            if let refusal = take(cost.proofs, &state.proofs, .proofsPerSecond)
                ?? take(cost.challenges, &state.challenges, .proofsPerSecond)
                ?? take(cost.grants, &state.grants, .proofsPerSecond)
            {
                return refusal
            }
            guard let refusal = take(cost.mutations, &state.mutations, .mutationsPerSecond) else { return nil }
            guard cost.isRemoval else { return refusal }
            return state.removals.take(cost.mutations, at: now).map { (refusal.0, refusal.1, $0) }
        }
        if let (kind, limit, milliseconds) = refusal {
            throw refuse(kind, limit, after: milliseconds, hasReserve: cost.isRemoval)
        }
    }

    // MARK: Numbers

    /// Counts a request as in flight. A removal may use the reserve. `giveBackRequest` is owed then.
    ///
    /// Throws `busy` with the time to wait, or `limitExceeded` when the limit is 0 and the request is no removal.
    func takeRequest(isRemoval: Bool) throws(ServiceError) {
        let limit = state.withLock { state -> Int? in
            let reserve = isRemoval ? Limits.removalsInFlightReserve : 0
            if let limit = state.limits.requestsInFlight, state.requestsInFlight >= limit + reserve { return limit }
            state.requestsInFlight += 1
            return nil
        }
        if let limit {
            throw refuse(.requestsInFlight, limit, after: Limits.occupiedMilliseconds, hasReserve: isRemoval)
        }
    }

    func giveBackRequest() { giveBackRequests(1) }

    /// Counts requests for proofs as in flight if none of the principal's limits could refuse one of them.
    /// `giveBackRequests` is owed then. Returns false, and counts nothing, otherwise.
    func takeUnlimited(requests count: Int) -> Bool {
        state.withLock { state in
            let limits = state.limits
            guard limits.proofsPerSecond == nil, limits.requestBytes == nil else { return false }
            if let limit = limits.requestsInFlight, state.requestsInFlight + count > limit { return false }
            state.requestsInFlight += count
            return true
        }
    }

    func giveBackRequests(_ count: Int) {
        state.withLock { state in
            precondition(state.requestsInFlight >= count, "a request in flight was not counted")
            state.requestsInFlight -= count
        }
    }

    /// Counts a query that waits for a change. `giveBackFollower` is owed then.
    ///
    /// Throws `busy` with the time to wait, or `limitExceeded` when the limit is 0.
    func takeFollower() throws(ServiceError) {
        let limit = state.withLock { state -> Int? in
            if let limit = state.limits.followers, state.followers >= limit { return limit }
            state.followers += 1
            return nil
        }
        if let limit { throw refuse(.followers, limit, after: Limits.occupiedMilliseconds) }
    }

    func giveBackFollower() {
        state.withLock { state in
            precondition(state.followers > 0, "a query that waits was not counted")
            state.followers -= 1
        }
    }

    /// The most bytes that the principal may hold. A removal may use a reserve.
    func bytesMax(isRemoval: Bool) -> Int {
        guard let limit = state.withLock({ $0.limits.requestBytes }) else { return .max }
        return limit + (isRemoval ? Limits.removalBytesReserve : 0)
    }

    /// The error for a request that needs `bytes` with its frame, beyond those that the principal holds.
    func refuse(bytes: Int, isRemoval: Bool) -> ServiceError {
        let limit = bytesMax(isRemoval: isRemoval)
        guard bytes > limit else { return refuse(.requestBytes, limit, after: Limits.occupiedMilliseconds) }
        refusals.count(.requestBytes)
        return ServiceError(
            .limitExceeded, detail: UInt32(clamping: limit),
            "the request takes \(bytes) bytes of memory, and the principal's limit requestBytes is \(limit)")
    }

    // MARK: Refusing

    /// How long a connection is not read that sent requests above a limit, in milliseconds. The principal's connections
    /// get such turns one after the other.
    func pause() -> UInt64 {
        let now = clock.milliseconds
        return state.withLock { state in
            let latest = now + Limits.limitPauseMillisecondsMax
            state.nextTurn = min(max(state.nextTurn, now) + Limits.limitTurnMilliseconds, latest)
            return state.nextTurn - now
        }
    }

    /// `hasReserve`: whether the request passes after that time also when the limit is 0.
    private func refuse(
        _ kind: PrincipalLimits.Kind, _ limit: Int, after milliseconds: UInt64, hasReserve: Bool = false
    ) -> ServiceError {
        refusals.count(kind)
        guard limit > 0 || hasReserve else {
            return ServiceError(.limitExceeded, "the principal's limit \(kind.rawValue) is 0")
        }
        return ServiceError(
            .busy, detail: UInt32(clamping: milliseconds),
            "the principal's limit \(kind.rawValue) of \(limit) is reached: try again in \(milliseconds) ms")
    }
}
