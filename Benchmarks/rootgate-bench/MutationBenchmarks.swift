import CLMDB
import Core
import Dispatch
import RootSets
import Synchronization

let mutationBenchmarks = [
    Benchmark("mutations.bulk", "durable adds, 5 roots a mutation") { scale in
        // Five roots a mutation, each to a collaboration of its own, as in an import.
        let bounds = scale.size(2000, tiny: 500)...scale.size(40_000, tiny: 500)
        let directory = try TemporaryDirectory()
        let sets = try RootSets(RootSets.Configuration(directory: directory.path))
        var (first, count) = (0, bounds.lowerBound)
        let values = try scale.repeated {
            let rate = try importRate(sets, first..<first + count)
            first += count
            count = scale.count(at: rate, for: 2.5 * scale.seconds, in: bounds)
            return rate * Double(Synthetic.rootsPerCollaboration)
        }
        return Measurement("mutations.bulk", unit: "roots/s", values: values)
    },
    Benchmark("mutations.peers", "mutations.bulk by 16 peers, who take turns") { scale in
        let directory = try TemporaryDirectory()
        let sets = try RootSets(RootSets.Configuration(directory: directory.path))
        var (first, count) = (0, scale.size(5000, tiny: 500))
        func rate(peers: Int) throws -> Double {
            defer { first += count }
            return try importRate(sets, first..<first + count, peers: peers) * Double(Synthetic.rootsPerCollaboration)
        }
        if !scale.isTiny {
            let bounds = scale.size(5000, tiny: 500)...scale.size(40_000, tiny: 500)
            let fast = try rate(peers: 1) / Double(Synthetic.rootsPerCollaboration)
            count = scale.count(at: fast, for: 1.5 * scale.seconds, in: bounds)
        }
        let rounds = try scale.alternate {
            try rate(peers: 16)
        } _: {
            try rate(peers: 1)
        }
        return Measurement("mutations.peers", unit: "roots/s", rounds: rounds, against: "one peer")
    },
    Benchmark("mutations.small", "durable adds of one root, 64 clients") { scale in
        let directory = try TemporaryDirectory()
        let sets = try RootSets(RootSets.Configuration(directory: directory.path))
        let collaboration = try Synthetic.collaboration(0)
        try sets.apply(Mutation(.createCollaboration(collaboration, .challenge)))
        var first = 0
        func rate(clients: Int) -> Double {
            let chain = MutationChain(
                sets, collaboration, first: first, until: scale.now() + 4 * scale.seconds, now: scale.now)
            let elapsed = seconds {
                let group = DispatchGroup()
                for _ in 0..<clients {
                    group.enter()
                    chain.go { group.leave() }
                }
                group.wait()
            }
            first += chain.count
            return Double(chain.count) / elapsed
        }
        let rounds = scale.alternate {
            rate(clients: 64)
        } _: {
            rate(clients: 1)
        }
        return Measurement(
            "mutations.small", unit: "mutations/s", rounds: rounds, against: "one client waiting for each commit")
    },
]

/// Durable adds in a second, each of five roots to a collaboration of its own, which is made before.
private func importRate(_ sets: RootSets, _ numbers: Range<Int>, peers: Int = 1) throws -> Double {
    try sets.applyAll(numbers.count) { number in
        Mutation(.createCollaboration(try Synthetic.collaboration(numbers.lowerBound + number), .challenge))
    }
    let elapsed = try seconds {
        try sets.applyAll(numbers.count, peers: peers) { number in
            let root = (numbers.lowerBound + number) * Synthetic.rootsPerCollaboration
            return Mutation(
                .addRoots(
                    try Synthetic.collaboration(numbers.lowerBound + number),
                    (root..<root + Synthetic.rootsPerCollaboration).map { Synthetic.root($0) }))
        }
    }
    return Double(numbers.count) / elapsed
}

/// Clients that each send their next mutation when the last one is durable, until a time.
final class MutationChain: Sendable {
    private let sets: RootSets
    private let collaboration: CollaborationIdentifier
    private let first: Int
    private let sent = Atomic<Int>(0)
    private let end: Double
    private let now: @Sendable () -> Double

    /// The mutations add the roots with the numbers from `first` on, one each.
    init(
        _ sets: RootSets, _ collaboration: CollaborationIdentifier, first: Int, until end: Double,
        now: @escaping @Sendable () -> Double
    ) {
        (self.sets, self.collaboration, self.first) = (sets, collaboration, first)
        (self.end, self.now) = (end, now)
    }

    /// How many mutations were sent. All of them are durable when every client is done.
    var count: Int { sent.load(ordering: .relaxed) }

    /// Runs one client; it sends at least one mutation and calls `done` when the time is over.
    func go(_ done: @escaping @Sendable () -> Void) {
        let number = first + sent.add(1, ordering: .relaxed).oldValue
        sets.submit(Mutation(.addRoots(collaboration, [Synthetic.root(number)]))) { [self] result in
            if case .failure(let error) = result { preconditionFailure("\(error)") }
            if now() < end { go(done) } else { done() }
        }
    }
}
