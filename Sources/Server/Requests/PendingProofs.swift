import Core
import RootSets
import Synchronization
import Transport
import Verification
import Wire

/// Requests of one proof each that follow one another on a connection and are verified together. Each of them is owed
/// its own answer, and the answers leave together.
///
/// They are counted, and memory is reserved for them, as if each were a `PendingRequest`, but once for all of them:
/// what a request costs besides its proof is paid once for a series. A series that would not be accepted as a whole is
/// not begun. Its requests are then handled one by one, so that each gets the answer that it would get alone.
///
/// Guarantees exactly one answer to each request (asserted), also when its connection is closed meanwhile: the
/// connection discards the answer then.
final class PendingProofs: Sendable {
    private let proofs: SingleProofs
    private let frames: FrameBytes
    private let responder: Responder
    private let admission: Admission
    private let allowance: PrincipalAllowance?
    /// What is reserved for the requests and their answers.
    private let charge: MemoryCharge
    private let isAnswered = Atomic<Bool>(false)
    /// `nil` unless requests are metered.
    private let meter: RequestMeter?
    /// When the requests began, and when a worker began with them, in the meter's nanoseconds; 0: never.
    private let began: UInt64
    private let workBegan = Atomic<UInt64>(0)

    /// Takes over `charge`, and the count of the requests in `admission` and `allowance`.
    private init(
        _ proofs: SingleProofs, _ frames: FrameBytes, _ responder: Responder, _ admission: Admission,
        _ allowance: PrincipalAllowance?, _ charge: MemoryCharge, _ meter: RequestMeter?
    ) {
        self.proofs = proofs
        self.frames = frames
        self.responder = responder
        self.admission = admission
        self.allowance = allowance
        self.charge = charge
        self.meter = meter
        began = meter?.now ?? 0
        responder.began(proofs.count)
    }

    deinit {
        guard !isAnswered.load(ordering: .acquiring) else { return }
        if responder.isClosed {
            release()
            return admission.ended(proofs.count)
        }
        assertionFailure("\(proofs.count) requests of one proof were never answered")
        send { $0.append(error: ServiceError(.internalFault, "the service lost the request"), to: &$1) }
    }

    /// Reserves memory for the requests and counts them. `frames` keeps the bytes of their frames, which takes
    /// `frameBytes` more bytes of memory. Returns `nil`, and changes nothing, when one of them might be refused.
    static func begin(
        _ proofs: SingleProofs, frames: () -> FrameBytes, frameBytes: Int, _ responder: Responder,
        _ admission: Admission, _ allowance: PrincipalAllowance?, _ meter: RequestMeter? = nil
    ) -> PendingProofs? {
        // They are counted before the look at the shutdown, which looks at the count after it has begun.
        admission.began(proofs.operation, proofs.count)
        guard !admission.isDraining.load(ordering: .relaxed),
            let charge = reserve(proofs, frameBytes: frameBytes, responder, allowance)
        else {
            admission.withdrew(proofs.operation, proofs.count)
            return nil
        }
        return PendingProofs(proofs, frames(), responder, admission, allowance, charge, meter)
    }

    /// Reserves memory for the requests, and counts them in `allowance`. Returns `nil`, and changes nothing, when that
    /// is not possible for all of them.
    private static func reserve(
        _ proofs: SingleProofs, frameBytes: Int, _ responder: Responder, _ allowance: PrincipalAllowance?
    ) -> MemoryCharge? {
        guard allowance?.takeUnlimited(requests: proofs.count) ?? true else { return nil }
        let each = Limits.requestOverheadBytes + SingleProofs.answerBytes
        let charge = responder.memory.reserve(proofs.count * each + frameBytes, isUrgent: false)
        // A connection that is short of memory is read request by request.
        guard let charge, !responder.memory.isStrained else {
            responder.memory.giveBack(charge ?? MemoryCharge())
            allowance?.giveBackRequests(proofs.count)
            return nil
        }
        return charge
    }

    /// Queues the proofs. Returns false, and undoes what `begin` did, when their peer's share of the pool's places has
    /// no room for all of them.
    func submit(to pool: WorkerPool, reading rootSets: RootSets) -> Bool {
        let request = VerificationRequest(
            count: proofs.count, isSigned: proofs.isSigned, wantsRoots: false, failsSingly: true
        ) {
            // Parts of the series may be read by several workers.
            if let now = self.meter?.now, self.workBegan.load(ordering: .relaxed) == 0 {
                self.workBegan.store(now, ordering: .relaxed)
            }
            self.proofs.read($0, in: self.frames.bytes, into: $1)
        } completion: { request, failure in
            do throws(ServiceError) {
                if let failure { throw failure }
                // Its first proofs may have been verified long ago.
                try rootSets.checkFresh(request.moment)
                self.answer(request, nil)
            } catch {
                self.answer(request, error)
            }
        }
        if pool.submit(request, from: responder.source) { return true }
        isAnswered.store(true, ordering: .releasing)
        release()
        admission.withdrew(proofs.operation, proofs.count)
        return false
    }

    /// Gives back what the requests have taken, when they get no answer. They stay counted in `admission`.
    private func release() {
        allowance?.giveBackRequests(proofs.count)
        responder.memory.giveBack(charge)
        responder.ended(proofs.count)
    }

    private func answer(_ request: VerificationRequest, _ failure: ServiceError?) {
        if failure?.code == .busy { admission.refusals.add(UInt64(proofs.count), ordering: .relaxed) }
        send { proofs, bytes in
            if let failure {
                proofs.append(error: failure, to: &bytes)
            } else {
                proofs.append(
                    answers: UnsafeBufferPointer(request.verdicts), errors: request.failed, to: &bytes)
            }
        }
    }

    private func send(_ append: (SingleProofs, inout [UInt8]) -> Void) {
        guard !isAnswered.exchange(true, ordering: .acquiringAndReleasing) else {
            return assertionFailure("\(proofs.count) requests of one proof were answered twice")
        }
        var bytes: [UInt8] = []
        append(proofs, &bytes)
        allowance?.giveBackRequests(proofs.count)
        responder.send(bytes, charge, answering: proofs.count)
        admission.ended(proofs.count)
        meterEnd()
    }

    /// Counts the requests, which were answered.
    private func meterEnd() {
        guard let meter else { return }
        var times = StageTimes(.queued, now: began)
        let workBegan = workBegan.load(ordering: .relaxed)
        if workBegan > 0 { times.begin(.working, now: workBegan) }
        times.begin(.answering, now: meter.now)
        meter.count(times, .verify, requests: proofs.count, of: ObjectIdentifier(responder)) {
            "\(proofs.isSigned ? "verify" : "verifyInclusion"), \(proofs.count) requests of one proof"
        }
    }
}
