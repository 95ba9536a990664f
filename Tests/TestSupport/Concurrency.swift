import Core
import Foundation

/// A value that many threads of a test change.
package final class Shared<Value: Sendable>: Sendable {
    private let mutex: Lock<Value>

    package init(_ value: Value) {
        mutex = Lock(value)
    }

    /// Changes or reads the value under its lock.
    package func with<R: Sendable>(_ body: (inout Value) -> R) -> R {
        mutex.withLock { value in
            var copy = value
            let result = body(&copy)
            value = copy
            return result
        }
    }

    package var value: Value { mutex.withLock { $0 } }
}

extension Shared where Value == Int {
    /// Adds one and returns the sum.
    @discardableResult
    package func increment() -> Int {
        with {
            $0 += 1
            return $0
        }
    }
}

/// Runs `body` with 0 to `count` - 1 on as many threads and waits for all.
package func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let done = DispatchSemaphore(value: 0)
    for index in 0..<count {
        Thread {
            body(index)
            done.signal()
        }.start()
    }
    for _ in 0..<count { done.wait() }
}

/// Whether `condition` comes true; gives up after `seconds`.
package func becomesTrue(within seconds: Double = 30, _ condition: () -> Bool) -> Bool {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while !condition() {
        guard ContinuousClock.now < deadline else { return false }
        usleep(1000)
    }
    return true
}

/// Whether `condition` becomes true before the test's patience ends. It is asked every two milliseconds.
package func comesTrue(_ condition: () async throws -> Bool) async throws -> Bool {
    let end = ContinuousClock.now + patience
    while ContinuousClock.now < end {
        if try await condition() { return true }
        try await Task.sleep(for: .milliseconds(2))
    }
    return false
}
