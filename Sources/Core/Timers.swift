import Dispatch

/// Calls functions later. Tests inject their own, so that their runs can be repeated.
package struct Timers: Sendable {
    package typealias Body = @Sendable () -> Void

    private let once: @Sendable (_ milliseconds: Int, @escaping Body) -> Void
    private let repeated: @Sendable (_ milliseconds: Int, _ leeway: Int, @escaping Body) -> RepeatingTimer

    /// `once`: calls a function after so many milliseconds. `repeated`: calls it each time that so many have passed,
    /// until the timer is cancelled or released.
    package init(
        once: @escaping @Sendable (_ milliseconds: Int, @escaping Body) -> Void,
        repeated: @escaping @Sendable (_ milliseconds: Int, _ leeway: Int, @escaping Body) -> RepeatingTimer
    ) {
        self.once = once
        self.repeated = repeated
    }

    /// Calls `body` after so many milliseconds, on any thread.
    package func after(milliseconds: Int, _ body: @escaping Body) {
        once(milliseconds, body)
    }

    /// Calls `body` each time that so many milliseconds, and up to `leeway` more, have passed. Two calls never overlap.
    package func every(milliseconds: Int, leeway: Int, _ body: @escaping Body) -> RepeatingTimer {
        repeated(milliseconds, leeway, body)
    }

    /// The system's timers.
    package static let system = Timers { milliseconds, body in
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds), execute: body)
    } repeated: { milliseconds, leeway, body in
        let queue = DispatchQueue(label: "rootgate timer")
        let source = DispatchSource.makeTimerSource(queue: queue)
        let interval = DispatchTimeInterval.milliseconds(milliseconds)
        source.schedule(deadline: .now() + interval, repeating: interval, leeway: .milliseconds(leeway))
        source.setEventHandler(handler: body)
        source.resume()
        // Dispatch's sources may be used from any thread.
        nonisolated(unsafe) let timer = source
        return RepeatingTimer { waits in
            timer.cancel()
            if waits { queue.sync {} }
        }
    }
}

/// A function that is called again and again until the timer is cancelled or released.
package final class RepeatingTimer: Sendable {
    private let end: @Sendable (_ waits: Bool) -> Void

    /// `end`: makes sure that no further call begins, and waits for the present one if it is to.
    package init(end: @escaping @Sendable (_ waits: Bool) -> Void) {
        self.end = end
    }

    deinit { end(false) }

    /// No further call begins. May be called by the function itself.
    package func cancel() { end(false) }

    /// Returns when the function has ended and won't be called again. Must not be called by the function.
    package func cancelAndWait() { end(true) }
}
