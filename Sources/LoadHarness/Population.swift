package import Core
import Dispatch
package import Identity
package import Signatures

/// Simulated people of one collaboration, and a stranger who is none of them.
package struct Population: Sendable {
    package let collaboration: CollaborationIdentifier
    package let people: [SimulatedIdentity]
    package let stranger: PrivateKey

    /// `count` people, made on all cores. Their numbers of devices go through `devices` in turn.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package init(
        people count: Int, devices: ClosedRange<Int>, in collaboration: CollaborationIdentifier,
        encoding: KeyEncoding = .uncompressed
    ) throws(ServiceError) {
        self.collaboration = collaboration
        stranger = try PrivateKey()
        people = try inParallel(count) { number throws(ServiceError) in
            let person = Person(deviceCount: devices.lowerBound + number % devices.count)
            return try person.identity(in: collaboration, encoding: encoding)
        }
    }

    package var rootHashes: [Digest] { people.map(\.rootHash) }

    /// All devices, as positions of a person and of a device of that person.
    package var devices: [(person: Int, device: Int)] {
        people.indices.flatMap { person in people[person].keys.indices.map { (person, $0) } }
    }
}

/// The results of `body` for 0..<count, in order, computed on all cores.
///
/// Throws what the first failing call threw.
package func inParallel<T: Sendable>(
    _ count: Int, _ body: @Sendable (Int) throws(ServiceError) -> T
) throws(ServiceError) -> [T] {
    let results = Lock([T?](repeating: nil, count: count))
    let failure = Lock<ServiceError?>(nil)
    let strides = 64
    withoutActuallyEscaping(body) { body in
        DispatchQueue.concurrentPerform(iterations: (count + strides - 1) / strides) { block in
            var made: [T] = []
            for index in block * strides..<min(count, (block + 1) * strides) {
                do throws(ServiceError) {
                    made.append(try body(index))
                } catch {
                    failure.withLock { $0 = $0 ?? error }
                    return
                }
            }
            let finished = made
            results.withLock { results in
                for (offset, result) in finished.enumerated() { results[block * strides + offset] = result }
            }
        }
    }
    if let failure = failure.withLock({ $0 }) { throw failure }
    return results.withLock { $0.compactMap { $0 } }
}
