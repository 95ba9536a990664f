import Core
import Foundation

/// A watch at one member. It tells that something may have changed, and never what: an event can be lost, doubled or
/// late, so whoever hears of one reads.
///
/// A silent watch says nothing about the health of etcd.
package final class EtcdWatch {
    /// What a watch tells.
    package enum Event: Equatable, Sendable {
        /// Something in the range has changed.
        case changed
        /// Nothing was heard in the time.
        case silence
        /// The watch has ended: another one has to be begun, after a read. `reason`: for people.
        case ended(reason: String)
    }

    private let connection: MemberConnection
    private let onEnd: () -> Void
    private var received = ReceivedBytes()
    private var hasEnded = false

    /// `onEnd` is called once, when the watch ends by itself or is given up.
    init(_ connection: MemberConnection, onEnd: @escaping () -> Void) {
        self.connection = connection
        self.onEnd = onEnd
    }

    deinit { end() }

    /// Ends the watch and its connection.
    package func end() {
        hasEnded = true
        connection.close()
    }

    /// Ends a watch whose member may be gone.
    package func giveUp() { _ = finish("the watch was given up") }

    /// Waits until something is heard, at most so many milliseconds.
    package func next(milliseconds: UInt64) -> Event {
        guard !hasEnded else { return .ended(reason: "the watch has ended") }
        let deadline = MonotonicClock.system.milliseconds + milliseconds
        while true {
            do throws(ReceivedBytes.TooLong) {
                while let line = try received.line(bytesMax: Limits.etcdAnswerBytesMax) {
                    if let event = event(line) { return event }
                }
            } catch {
                return finish("the member sends too long an event")
            }
            do throws(EtcdFailure) {
                guard let bytes = try connection.nextIfAny(until: deadline) else { return .silence }
                guard !bytes.isEmpty else { return finish("the member has ended the watch") }
                received.append(bytes)
            } catch {
                return finish(error.description)
            }
        }
    }

    /// What a line tells; `nil`: nothing.
    private func event(_ line: [UInt8]) -> Event? {
        guard let answer = try? JSONDecoder().decode(Streamed<WatchAnswer>.self, from: Data(line)) else {
            return finish("the member sends what is no event")
        }
        if let error = answer.error { return finish(error.message ?? "the member has ended the watch") }
        guard let result = answer.result else { return nil }
        // The stream stays open behind this, and says nothing more.
        if result.canceled == true || result.compact_revision != nil {
            return finish(result.cancel_reason ?? "what was to be watched is not kept any more")
        }
        return result.events?.isEmpty == false ? .changed : nil
    }

    private func finish(_ reason: String) -> Event {
        if !hasEnded { onEnd() }
        end()
        return .ended(reason: reason)
    }
}
