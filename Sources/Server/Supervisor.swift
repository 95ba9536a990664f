package import Core
import Platform
import Transport

/// Tells the program that has started this process, such as systemd, how the service is: sd_notify(3). Without such a
/// program nothing is sent.
package final class Supervisor: Sendable {
    private struct State {
        var isStopping = false
        var hasFailed = false
    }

    private let sender: DatagramSender?
    private let log: Log
    private let state = Lock(State())

    /// `address`: see `Supervision`. When nobody can be reached there, the log says so, and nothing is sent. Must be
    /// made before a sandbox is entered.
    package init(at address: String?, log: Log) {
        self.log = log
        do throws(SystemFailure) {
            sender = try address.map { address throws(SystemFailure) in
                try DatagramSender(to: address, milliseconds: Limits.supervisorMilliseconds)
            }
        } catch {
            sender = nil
            log(.warning, "can't tell the supervisor at \(address ?? "") anything: \(error)")
        }
    }

    /// A start goes on for so many seconds at least: it may take longer than the supervisor allows without that.
    package func isStarting(for seconds: UInt64, _ status: String) {
        tell(["EXTEND_TIMEOUT_USEC=\(seconds * 1_000_000)", "STATUS=\(status)"])
    }

    /// The service accepts connections. `status`: a line about it, for people.
    package func isReady(_ status: String) {
        tell(["READY=1", "STATUS=\(status)"])
    }

    /// Reads options, certificates and secrets again by calling `body`.
    package func reloads(_ body: () -> Void) {
        let microseconds = MonotonicClock.nanoseconds / 1000
        tell(["RELOADING=1", "MONOTONIC_USEC=\(microseconds)"])
        body()
        tell(["READY=1"])
    }

    /// The service shuts down. From now on only signs of life are sent.
    package func stops(_ status: String) {
        tell(["STOPPING=1", "STATUS=\(status)"], isLast: true)
    }

    /// A sign of life.
    package func isAlive() {
        state.withLock { send("WATCHDOG=1", &$0) }
    }

    private func tell(_ lines: [String], isLast: Bool = false) {
        let text = lines.map { $0.escapingControls.prefix(bytesMax: Limits.supervisorLineBytesMax) }
        state.withLock { state in
            guard !state.isStopping else { return }
            state.isStopping = isLast
            send(text.joined(separator: "\n"), &state)
        }
    }

    /// The log has a line about the first message that can't be sent.
    private func send(_ text: String, _ state: inout State) {
        guard let sender else { return }
        do throws(SystemFailure) {
            try sender.send(text)
        } catch {
            if !state.hasFailed { log(.warning, "can't tell the supervisor how the service is: \(error)") }
            state.hasFailed = true
        }
    }
}
