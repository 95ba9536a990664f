import Dispatch
import Foundation

/// Calls a function for each SIGHUP, which no longer ends the process.
final class HangUpSignal: Sendable {
    /// Set in `init`; the reference never changes. Dispatch's sources may be used from any thread.
    private nonisolated(unsafe) let source: any DispatchSourceSignal

    init(_ received: @escaping @Sendable () -> Void) {
        signal(SIGHUP, SIG_IGN)
        source = DispatchSource.makeSignalSource(
            signal: SIGHUP, queue: DispatchQueue(label: "rootgate hang-up signal"))
        source.setEventHandler { received() }
        source.resume()
    }

    func stop() {
        source.cancel()
    }
}
