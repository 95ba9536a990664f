import Core
import Foundation
import RootSets
import TestSupport
import Testing
@testable import Verification

@Suite("Invariants of verification that are asserted")
struct VerificationInvariantsTests {
    @Test("A request whose proofs are finished twice ends the process")
    func doubleFinish() async {
        await #expect(processExitsWith: .failure) {
            let request = newRequest(of: 3)
            request.finish(0..<3, .always, failure: nil)
            request.finish(0..<1, .always, failure: nil)
        }
        await #expect(processExitsWith: .failure) {
            newRequest(of: 3).finish(0..<4, .always, failure: nil)
        }
        await #expect(processExitsWith: .success) {
            let request = newRequest(of: 3)
            request.finish(0..<2, .always, failure: nil)
            request.finish(0..<1, .always, failure: nil)
        }
    }

    @Test("A request is busy only when no challenge of it may be spent")
    func busy() {
        let unchecked = ServiceError(.busy, detail: Limits.uncheckedMilliseconds, "it is being checked")
        for (isSigned, firstFails, code) in [
            (true, false, ServiceError.Code.storageFailed), (true, true, .busy), (false, false, .busy),
        ] {
            let answer = Shared<ServiceError?>(nil)
            let request = VerificationRequest(count: 2, isSigned: isSigned, wantsRoots: false) { _, _ in
            } completion: { _, error in
                answer.with { $0 = error }
            }
            request.finish(0..<1, .always, failure: firstFails ? unchecked : nil)
            request.finish(1..<2, .always, failure: unchecked)
            #expect(answer.value?.code == code, "\(isSigned), \(firstFails)")
        }
    }

    @Test("A worker that is called by two threads ends the process")
    func worker() async {
        await #expect(processExitsWith: .failure) {
            let fixture = try Fixture()
            let pool = try WorkerPool(fixture.resources, workerCount: 0, waitingItemsMax: 8)
            let worker = try pool.attachWorker {}
            _ = worker.work()
            onThreads(1) { _ in _ = worker.work() }
        }
        await #expect(processExitsWith: .failure) {
            let fixture = try Fixture()
            let pool = try WorkerPool(fixture.resources, workerCount: 0, waitingItemsMax: 8)
            let worker = try pool.attachWorker {}
            _ = worker.work()
            onThreads(1) { _ in worker.awoke() }
        }
    }

    @Test("A batch without room for each verdict and each root ends the process")
    func room() async {
        for (verdicts, roots) in [(0, 1), (1, 0)] {
            await #expect(processExitsWith: .failure) { [verdicts = verdicts as Int, roots = roots as Int] in
                let fixture = try Fixture()
                let proofs = PackedProofs([(Fixture.challenged, try fixture.proof())]).proofs
                let verdictRoom = ScratchBuffer<Verdict>(repeating: .malformed, count: verdicts)
                let rootRoom = ScratchBuffer<Digest>(repeating: .zero, count: roots)
                let verifier = try BatchVerifier(fixture.resources)
                try proofs.withUnsafeBufferPointer {
                    try verifier.verify($0, verdicts: verdictRoom.elements, roots: rootRoom.elements)
                }
            }
        }
    }
}

private func newRequest(of count: Int) -> VerificationRequest {
    VerificationRequest(count: count, isSigned: true, wantsRoots: true) { _, _ in
    } completion: { _, _ in
    }
}
