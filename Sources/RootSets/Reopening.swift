import Core
import Dispatch

/// Opens the storage again after a failure. Only the writer's thread uses it, between two commits.
///
/// The environment is closed when no reader uses it any more. The data file is judged as at a start. So a storage that
/// has failed for a moment recovers, and a damaged one stays failed.
final class Reopening: Sendable {
    private struct State {
        /// Signalled when the environment before is closed; `nil` when it is.
        var closing: DispatchSemaphore?
        var seconds = Limits.reopeningSecondsMin
        var due: ContinuousClock.Instant?
        var told: String?
    }

    private let storage: ReadTransactionPool
    private let log: Log
    private let open: @Sendable () throws(ServiceError) -> StorageEnvironment
    private let state = Lock(State())

    init(
        _ storage: ReadTransactionPool, log: Log,
        open: @escaping @Sendable () throws(ServiceError) -> StorageEnvironment
    ) {
        self.storage = storage
        self.log = log
        self.open = open
    }

    /// Tries to open the storage, unless the last attempt was a moment ago. Returns after how many seconds to try
    /// again; `nil` when the storage is open.
    func attempt() -> Double? {
        state.withLock { state in
            let now = ContinuousClock.now
            if let due = state.due, now < due { return (due - now) / .seconds(1) }
            if let closing = storage.retire() { state.closing = closing }
            do throws(ServiceError) {
                if let closing = state.closing {
                    guard closing.wait(timeout: .now() + .seconds(Limits.reopeningSecondsMin)) == .success else {
                        throw ServiceError(.busy, "a reader still uses it")
                    }
                    state.closing = nil
                }
                storage.adopt(try open())
                storage.health.recover()
                state = State()
                return nil
            } catch {
                if state.told != error.reason { log(.critical, "the storage can't be opened again: \(error.reason)") }
                state.told = error.reason
                let pause = state.seconds
                state.seconds = min(2 * state.seconds, Limits.reopeningSecondsMax)
                state.due = ContinuousClock.now + .seconds(pause)
                return Double(pause)
            }
        }
    }
}
