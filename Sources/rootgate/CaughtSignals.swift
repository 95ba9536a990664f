import Dispatch
import Foundation

/// Signals that call a function in place of what they do by default, until the process ends.
enum CaughtSignals {
    /// From now on each of these signals calls `told` on the queue. A signal that comes while this runs does what it
    /// did before, or is told: none is lost.
    ///
    /// `queue` has to be one of its own, since this waits for it.
    static func begin(_ numbers: [CInt], on queue: DispatchQueue, _ told: @escaping @Sendable (CInt) -> Void) {
        // Sources are installed by a thread of libdispatch, which a busy machine lets wait.
        let installed = DispatchGroup()
        for number in numbers {
            // The handler keeps the source.
            nonisolated(unsafe) let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { withExtendedLifetime(source) { told(number) } }
            installed.enter()
            source.setRegistrationHandler { installed.leave() }
            source.resume()
        }
        // A process without a free descriptor keeps what the signals do by default.
        guard installed.wait(timeout: .now() + .seconds(10)) == .success else { return }
        #if !os(Linux)
        // Here sources see signals besides what these do. On Linux a source takes the place of that.
        for number in numbers { signal(number, SIG_IGN) }
        #endif
    }
}
