import Core
import Dispatch

/// Calls a function at regular intervals, on a queue of its own, until it is stopped.
final class Housekeeping: Sendable {
    private let queue = DispatchQueue(label: "rootgate housekeeping")
    /// Only `init` and `stop` use it.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer

    init(everySeconds seconds: Int, _ body: @escaping @Sendable () -> Void) {
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + .seconds(seconds), repeating: .seconds(seconds), leeway: .seconds(1))
        timer.setEventHandler(handler: body)
        timer.resume()
    }

    /// Returns when the function has ended and won't be called again.
    func stop() {
        timer.cancel()
        queue.sync {}
    }
}
