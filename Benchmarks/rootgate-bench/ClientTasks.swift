import Core
import Dispatch
import LoadHarness
import RootgateClient
import Synchronization

/// Many tasks that verify proofs with one client, one proof a call.
struct ClientTasks {
    let client: RootgateClient
    let collaboration: CollaborationIdentifier
    let tasks: Int

    /// What the tasks of one run share.
    private final class Run: Sendable {
        let proofs: ReceivedProofs
        let end: Double
        let next = Atomic<Int>(0)
        let granted = Atomic<Int>(0)
        let failure = Lock<ServiceError?>(nil)

        init(_ proofs: ReceivedProofs, end: Double) {
            self.proofs = proofs
            self.end = end
        }

        /// Verifies proofs that no other task has taken.
        func verify(with client: RootgateClient, in collaboration: CollaborationIdentifier) async {
            var count = 0
            defer { granted.add(count, ordering: .relaxed) }
            do throws(ServiceError) {
                while monotonicSeconds() < end {
                    let number = next.add(1, ordering: .relaxed).oldValue
                    guard number < proofs.count else { return }
                    let verdict = try await client.verify(proofs[number], in: collaboration)
                    precondition(verdict == .granted, "a verdict is wrong")
                    count += 1
                }
            } catch {
                failure.withLock { $0 = $0 ?? error }
            }
        }
    }

    /// Connects, then verifies each of `proofs`, none after `seconds`. Returns how many were verified, and the seconds
    /// that it took without the connecting.
    ///
    /// Throws what a call has thrown.
    func verify(_ proofs: [SignedIdentityProof], seconds: Double) throws -> (count: Int, seconds: Double) {
        let refusal = Lock<ServiceError?>(nil)
        perform { [client] in
            do throws(ServiceError) { try await client.ping() } catch { refusal.withLock { $0 = error } }
        }
        if let refusal = refusal.withLock({ $0 }) { throw refusal }
        let received = ReceivedProofs(proofs)
        let begin = monotonicSeconds()
        let run = Run(received, end: begin + seconds)
        perform { [client, collaboration, tasks] in
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<tasks { group.addTask { await run.verify(with: client, in: collaboration) } }
            }
        }
        if let failure = run.failure.withLock({ $0 }) { throw failure }
        return (run.granted.load(ordering: .relaxed), monotonicSeconds() - begin)
    }

    /// Waits for `body`.
    private func perform(_ body: @escaping @Sendable () async -> Void) {
        let done = DispatchSemaphore(value: 0)
        Task {
            await body()
            done.signal()
        }
        done.wait()
    }
}
