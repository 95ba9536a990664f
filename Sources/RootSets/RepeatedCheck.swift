import Dispatch
import Synchronization

/// Calls a function each second, on a queue of its own, until it is stopped or released.
final class RepeatedCheck: Sendable {
    private let queue = DispatchQueue(label: "rootgate storage")
    private let timer: Mutex<(any DispatchSourceTimer)?> = Mutex(nil)

    func start(_ body: @escaping @Sendable () -> Void) {
        timer.withLock { timer in
            precondition(timer == nil, "a check was started twice")
            let source = DispatchSource.makeTimerSource(queue: queue)
            source.schedule(deadline: .now() + 1, repeating: 1, leeway: .milliseconds(100))
            source.setEventHandler(handler: body)
            source.resume()
            timer = source
        }
    }

    /// The function is not called any more after a call that runs already. May be called on any thread, and again.
    func stop() {
        timer.withLock { timer in
            timer?.cancel()
            timer = nil
        }
    }

    deinit {
        stop()
    }
}
