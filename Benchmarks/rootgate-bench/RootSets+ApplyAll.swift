import Core
import Dispatch
import RootSets

extension RootSets {
    /// Applies mutations with many under way at once, each of the next one of so many peers; waits until all are
    /// durable. `progress` gets the share that was submitted, from 0 to 1, now and then.
    ///
    /// Throws the first refusal, and what `progress` and `mutation` throw.
    func applyAll(
        _ count: Int, peers: Int = 1, progress: (Double) throws -> Void = { _ in }, _ mutation: (Int) throws -> Mutation
    ) throws {
        let failure = FirstFailure()
        let window = DispatchSemaphore(value: 32_768)
        let group = DispatchGroup()
        // What was submitted is finished before an error ends it: it uses the sets.
        defer { group.wait() }
        for number in 0..<count {
            if number % 16_384 == 0 { try progress(Double(number) / Double(count)) }
            let next = try mutation(number)
            window.wait()
            group.enter()
            submit(next, of: .address(UInt32(number % peers))) { result in
                if case .failure(let error) = result { failure.note(error) }
                window.signal()
                group.leave()
            }
        }
        group.wait()
        if let error = failure.error { throw error }
    }
}

private final class FirstFailure: Sendable {
    private let first = Lock<ServiceError?>(nil)
    func note(_ error: ServiceError) { first.withLock { $0 = $0 ?? error } }
    var error: ServiceError? { first.withLock { $0 } }
}
