import Core
import Synchronization

/// Bounds the memory that all admitted requests reserve together, and counts requests. Suspended queries reserve
/// nothing; their number is bounded.
final class Admission: Sendable {
    static let busy = ServiceError(.busy, "the service is busy: try again later")

    private let bytesMax: Int
    private let bytes = Atomic<Int>(0)
    /// Requests that are neither answered nor dropped, suspended ones included.
    private let unanswered = Atomic<Int>(0)
    /// Requests that a thread works on or will work on.
    let inFlight = Atomic<Int>(0)
    /// Requests since the start.
    let requests = Atomic<UInt64>(0)
    /// Requests that were answered with `busy`.
    let refusals = Atomic<UInt64>(0)
    /// Whether the service is shutting down: it answers what it accepted and accepts nothing new.
    let isDraining = Atomic<Bool>(false)
    private let unsentBytes: @Sendable () -> Int

    /// `unsentBytes`: bytes of answers that wait to be sent on all connections.
    init(bytesMax: Int, unsentBytes: @escaping @Sendable () -> Int) {
        self.bytesMax = bytesMax
        self.unsentBytes = unsentBytes
    }

    /// Whether every request is answered or dropped.
    var isIdle: Bool { unanswered.load(ordering: .acquiring) == 0 }

    /// A request has arrived.
    func began() {
        requests.add(1, ordering: .relaxed)
        unanswered.add(1, ordering: .relaxed)
        inFlight.add(1, ordering: .relaxed)
    }

    /// Counts a transition of a request for which `reserved` bytes were reserved.
    func count(_ effect: RequestLife.Effect, reserved: Int) {
        if effect.releasesMemory, reserved > 0 { bytes.subtract(reserved, ordering: .relaxed) }
        if effect.inFlight != 0 { inFlight.add(effect.inFlight, ordering: .relaxed) }
        if effect.isEnd { unanswered.subtract(1, ordering: .releasing) }
    }

    /// Reserves memory for a request.
    ///
    /// Throws `busy` or `shuttingDown`; then nothing is reserved.
    func reserve(_ wanted: Int) throws(ServiceError) {
        precondition(wanted >= 0)
        guard !isDraining.load(ordering: .relaxed) else {
            throw ServiceError(.shuttingDown, "the service is shutting down: connect again later")
        }
        let reserved = bytes.add(wanted, ordering: .relaxed).newValue
        guard reserved <= bytesMax, unsentBytes() <= Limits.unsentBytesMax else {
            bytes.subtract(wanted, ordering: .relaxed)
            throw Admission.busy
        }
    }

    /// Checks that an answer of unknown size may be built now. Its bytes count as soon as they wait to be sent.
    ///
    /// Throws `busy` when the peers leave too many bytes unread.
    func checkRoom() throws(ServiceError) {
        guard unsentBytes() <= Limits.unsentBytesMax else { throw Admission.busy }
    }
}
