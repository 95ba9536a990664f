import Core
import Dispatch
import Foundation

/// What a load has made at services, so that an interrupt ends it before the process ends.
final class LoadLeftovers: Sendable {
    private let ends = Lock<[@Sendable () async -> Void]>([])

    /// From now on SIGINT and SIGTERM end what was made, and then the process. The second one ends it at once.
    init() {
        let numbers = [SIGINT, SIGTERM]
        CaughtSignals.begin(numbers, on: DispatchQueue(label: "rootgate signals")) { [self] number in
            for number in numbers { signal(number, SIG_DFL) }
            complain("interrupted: ending what the load has made")
            Task { [self] in
                await endAll()
                exit(128 + number)
            }
        }
    }

    /// `end` is called when the process is interrupted.
    func add(_ end: @escaping @Sendable () async -> Void) {
        ends.withLock { $0.append(end) }
    }

    private func endAll() async {
        for end in ends.withLock({ $0 }) { await end() }
    }
}
