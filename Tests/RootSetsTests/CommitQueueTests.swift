import Core
import Dispatch
import Foundation
import RootSets
import TestSupport
import Testing

@Suite struct CommitQueueTests {
    @Test("Half of the mutations that may wait for the writer may be one peer's, and for one more the answer is busy")
    func waitingMutations() throws {
        let storage = try Storage()
        let sets = try storage.sets
        let nobody = try #require(CollaborationIdentifier("nobody"))
        let hold = DispatchSemaphore(value: 0)
        let (isHeld, done) = (Shared(false), Shared(0))
        // The completion is called on the writer's thread, which then takes no more mutations.
        sets.submit(Mutation(.dropCollaboration(nobody))) { _ in
            isHeld.with { $0 = true }
            hold.wait()
        }
        #expect(becomesTrue { isHeld.value })
        let share = Limits.mutationsQueuedMax / 2
        let refusals = Shared<[ServiceError]>([])
        for _ in 0...share {
            sets.submit(Mutation(.dropCollaboration(nobody))) { result in
                if case .failure(let error) = result, error.code == .busy { refusals.with { $0.append(error) } }
                done.increment()
            }
        }
        #expect(refusals.value.count == 1)
        #expect(done.value == 1)
        hold.signal()
        #expect(becomesTrue { done.value == share + 1 })
        #expect(refusals.value.count == 1)
        _ = try storage.create("afterwards")
    }
}
