import Core
import Synchronization
import Transport
import Verification
import Wire

/// Bounds what all requests together may hold in memory, and counts them.
final class Admission: Sendable {
    static let busy = ServiceError(.busy, "the service is busy: try again later")

    private let bytesMax: Int
    private let bytes = Atomic<Int>(0)
    let inFlight = Atomic<Int>(0)
    /// Requests that wait for news.
    let parked = Atomic<Int>(0)
    let requests = Atomic<UInt64>(0)
    let refusals = Atomic<UInt64>(0)
    /// Whether the service is on its way down: what was accepted is answered, nothing new is accepted.
    let isDraining = Atomic<Bool>(false)
    private let unsentBytes: @Sendable () -> Int

    init(bytesMax: Int, unsentBytes: @escaping @Sendable () -> Int) {
        self.bytesMax = bytesMax
        self.unsentBytes = unsentBytes
    }

    /// Reserves memory for a request, until its ticket is answered.
    ///
    /// Throws `busy` or `shuttingDown`.
    func admit(_ ticket: Ticket, bytes wanted: Int) throws(ServiceError) {
        guard !isDraining.load(ordering: .relaxed) else {
            throw ServiceError(.shuttingDown, "the service is shutting down: connect again later")
        }
        guard bytes.load(ordering: .relaxed) + wanted <= bytesMax, unsentBytes() <= Limits.unsentBytesMax else {
            throw Admission.busy
        }
        bytes.add(wanted, ordering: .relaxed)
        ticket.reservedBytes.store(wanted, ordering: .relaxed)
    }

    /// Whether an answer of unknown length may be made now: answers count as soon as they wait to be sent.
    ///
    /// Throws `busy`, also when the peer of a connection with so much unsent may not read.
    fileprivate func checkRoom(unsentOnConnection: Int = 0) throws(ServiceError) {
        guard unsentBytes() <= Limits.unsentBytesMax, unsentOnConnection <= Limits.unsentBytesPerConnectionMax else {
            throw Admission.busy
        }
    }

    /// Whether nothing is left to be answered.
    var isIdle: Bool {
        parked.load(ordering: .acquiring) == 0 && inFlight.load(ordering: .acquiring) == 0
    }

    fileprivate func release(_ reserved: Int) {
        bytes.subtract(reserved, ordering: .relaxed)
    }
}

/// The right and the duty to answer one request, once.
final class Ticket: Sendable {
    private let header: FrameHeader
    private let session: Session
    private let admission: Admission
    let reservedBytes = Atomic<Int>(0)
    private let isAnswered = Atomic<Bool>(false)

    init(_ header: FrameHeader, _ session: Session, _ admission: Admission) {
        self.header = header
        self.session = session
        self.admission = admission
        admission.requests.add(1, ordering: .relaxed)
        admission.inFlight.add(1, ordering: .relaxed)
        session.began()
    }

    /// Whose turn the request's work is.
    var source: WorkSource { session.source }

    /// Answers with the body that `body` appends.
    func answer(_ body: (inout [UInt8]) -> Void) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256)
        FrameWriter.append(.answer, header.operation, requestID: header.requestID, to: &bytes, body: body)
        send(bytes)
    }

    /// Answers all with the same body: those of one connection in one go, or `busy` when its peer does not read.
    static func answer(_ tickets: [Ticket], _ body: [UInt8]) {
        guard tickets.count > 1 else {
            tickets.first?.answer { $0.append(contentsOf: body) }
            return
        }
        for tickets in Dictionary(grouping: tickets, by: { ObjectIdentifier($0.session) }).values {
            var bytes: [UInt8] = []
            var answered: [Ticket] = []
            func flush() {
                answered.first?.session.answer(bytes, requests: answered.count)
                for ticket in answered { ticket.ended() }
                (bytes, answered) = ([], [])
            }
            for ticket in tickets {
                if answered.isEmpty, ticket.session.unsentBytes > Limits.unsentBytesPerConnectionMax {
                    ticket.fail(Admission.busy)
                    continue
                }
                guard !ticket.isAnswered.exchange(true, ordering: .relaxed) else { continue }
                FrameWriter.append(.answer, ticket.header.operation, requestID: ticket.header.requestID, to: &bytes) {
                    $0.append(contentsOf: body)
                }
                answered.append(ticket)
                if bytes.count >= Limits.unsentBytesPerConnectionMax { flush() }
            }
            flush()
        }
    }

    func answer(_ result: Result<MutationReceipt, ServiceError>) {
        switch result {
        case .success(let receipt): answer { Answer.append(receipt, to: &$0) }
        case .failure(let error): fail(error)
        }
    }

    /// Has the request wait for news, which takes nothing from others. False when the connection has too many.
    func park() -> Bool {
        guard session.park() else { return false }
        admission.release(reservedBytes.exchange(0, ordering: .relaxed))
        admission.parked.add(1, ordering: .acquiringAndReleasing)
        admission.inFlight.subtract(1, ordering: .releasing)
        return true
    }

    /// The request is about to be answered.
    func unpark() {
        admission.inFlight.add(1, ordering: .acquiringAndReleasing)
        admission.parked.subtract(1, ordering: .releasing)
        session.unpark()
    }

    /// Throws `busy` when there is no room for an answer of unknown length.
    func checkRoom() throws(ServiceError) {
        try admission.checkRoom()
    }

    /// The same for a request that waited for news: a connection may have many of those.
    func checkRoomForNews() throws(ServiceError) {
        try admission.checkRoom(unsentOnConnection: session.unsentBytes)
    }

    /// Nobody waits for the answer any more.
    func forgetParked() {
        admission.parked.subtract(1, ordering: .releasing)
    }

    /// Answers a parked request.
    func answerParked(_ body: [UInt8]) {
        unpark()
        answer { $0.append(contentsOf: body) }
    }

    func fail(_ error: ServiceError) {
        if error.code == .busy { admission.refusals.add(1, ordering: .relaxed) }
        var bytes: [UInt8] = []
        FrameWriter.appendError(error, operation: header.operation, requestID: header.requestID, to: &bytes)
        send(bytes)
    }

    private func send(_ bytes: [UInt8]) {
        guard !isAnswered.exchange(true, ordering: .relaxed) else { return }
        session.answer(bytes, requests: 1)
        ended()
    }

    private func ended() {
        admission.release(reservedBytes.load(ordering: .relaxed))
        admission.inFlight.subtract(1, ordering: .releasing)
    }
}
