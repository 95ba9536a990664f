package import Core
import Dispatch
package import Identity
package import Signatures

/// Simulated people of some collaborations, and a stranger who is none of them. Each person takes part in one
/// collaboration; the people take the collaborations in turn.
package struct Population: Sendable {
    package let collaborations: [CollaborationIdentifier]
    package let people: [SimulatedIdentity]
    package let stranger: PrivateKey
    /// All devices, as positions of a person and of a device of that person.
    package let devices: [(person: Int, device: Int)]

    /// `count` people of one collaboration, made on all cores. Their numbers of devices go through `devices` in turn.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package init(
        people count: Int, devices: ClosedRange<Int>, in collaboration: CollaborationIdentifier,
        encoding: KeyEncoding = .uncompressed
    ) throws(ServiceError) {
        try self.init(people: count, devices: devices, in: [collaboration], encoding: encoding)
    }

    /// `count` people of some collaborations, of which there are not more than people.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package init(
        people count: Int, devices: ClosedRange<Int>, in collaborations: [CollaborationIdentifier],
        encoding: KeyEncoding = .uncompressed
    ) throws(ServiceError) {
        precondition((1...max(1, count)).contains(collaborations.count), "a collaboration has no people")
        self.collaborations = collaborations
        stranger = try PrivateKey()
        let people = try inParallel(count) { number throws(ServiceError) in
            let person = Person(deviceCount: devices.lowerBound + number % devices.count)
            return try person.identity(in: collaborations[number % collaborations.count], encoding: encoding)
        }
        self.people = people
        self.devices = people.indices.flatMap { person in people[person].keys.indices.map { (person, $0) } }
    }

    /// The only collaboration, or the first one.
    package var collaboration: CollaborationIdentifier { collaborations[0] }

    package var rootHashes: [Digest] { people.map(\.rootHash) }

    /// The root hashes of a collaboration's people.
    package func rootHashes(of collaboration: Int) -> [Digest] {
        (0..<members(of: collaboration)).map { people[person($0, of: collaboration)].rootHash }
    }

    /// The position of a person's collaboration.
    package func collaboration(ofPerson person: Int) -> Int { person % collaborations.count }

    /// How many people a collaboration has.
    package func members(of collaboration: Int) -> Int {
        (people.count - collaboration + collaborations.count - 1) / collaborations.count
    }

    /// How many people the collaboration with the most has.
    var membersMax: Int { members(of: 0) }

    /// The position of a collaboration's person among all.
    package func person(_ member: Int, of collaboration: Int) -> Int { member * collaborations.count + collaboration }
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
