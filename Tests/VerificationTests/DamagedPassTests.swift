import Core
import Dispatch
@testable import RootSets
import TestSupport
import Testing
import Verification

@Suite("Passes over a damaged storage")
struct DamagedPassTests {
    /// Damages what has the roots of a collaboration "crowd", and not those of the others.
    private func damage(_ sets: RootSets) throws {
        // A set so large that it is in another database than the small ones.
        let crowd = try #require(CollaborationIdentifier("crowd"))
        var random = SeededGenerator(seed: runSeed)
        try sets.apply(Mutation(.createCollaboration(crowd, .challenge)))
        try sets.apply(Mutation(.addRoots(crowd, (0..<200).map { _ in random.digest() })))
        try sets.read { snapshot throws(ServiceError) in snapshot.environment.trust.distrust(.large) }
    }

    @Test("Where proofs fail singly, damage fails only those that meet it")
    func onlyItsProof() throws {
        let fixture = try Fixture()
        try damage(fixture.resources.rootSets)
        let genuine = try fixture.proof()
        let packed = PackedProofs((0..<7).map { ($0 % 2 == 0 ? Fixture.challenged : "crowd", genuine) })
        let pool = try WorkerPool(fixture.resources, workerCount: 1, waitingItemsMax: 1000)
        let answers = Shared<[Bool: (verdicts: [Verdict], damaged: Set<Int>, code: ServiceError.Code?)]>([:])
        for failsSingly in [true, false] {
            let request = VerificationRequest(
                count: 7, isSigned: false, wantsRoots: false, failsSingly: failsSingly
            ) { positions, proofs in
                for (place, position) in positions.enumerated() { proofs[place] = packed.proofs[position] }
            } completion: { request, error in
                answers.with {
                    $0[failsSingly] = (Array(request.verdicts), Set(request.failed.keys), error?.code)
                }
            }
            #expect(pool.submit(request, from: WorkSource()))
        }
        pool.close()
        let singly = try #require(answers.value[true])
        #expect(singly.code == nil && singly.damaged == [1, 3, 5])
        for place in [0, 2, 4, 6] { #expect(singly.verdicts[place] == .included) }
        let whole = try #require(answers.value[false])
        #expect(whole.code == .storageDamaged && whole.damaged.isEmpty)
    }

    @Test("Only the request that needs what is damaged gets the error, also in one pass with others")
    func onlyItsRequest() throws {
        let fixture = try Fixture()
        try damage(fixture.resources.rootSets)
        let genuine = try fixture.proof()
        let packed = PackedProofs([(Fixture.challenged, genuine), ("crowd", genuine)])
        let pool = try WorkerPool(fixture.resources, workerCount: 1, waitingItemsMax: 1000)
        let (isHeld, isOpen) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        #expect(
            pool.submit(from: WorkSource()) {
                isHeld.signal()
                isOpen.wait()
            })
        isHeld.wait()
        let answers = Shared<[Int: (verdict: Verdict, code: ServiceError.Code?)]>([:])
        for number in 0..<6 {
            let request = VerificationRequest(count: 1, isSigned: false, wantsRoots: false) { _ in
                packed.proofs[number % 2]
            } completion: { request, error in
                answers.with { $0[number] = (request.verdicts[0], error?.code) }
            }
            #expect(pool.submit(request, from: WorkSource()))
        }
        isOpen.signal()
        pool.close()
        for number in 0..<6 {
            let answer = try #require(answers.value[number])
            #expect(answer.code == (number % 2 == 0 ? nil : .storageDamaged), "request \(number)")
            if number % 2 == 0 { #expect(answer.verdict == .included) }
        }
    }
}
