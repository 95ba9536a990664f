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
            try sets.applyAll(count) { number in
                Mutation(.createCollaboration(try Synthetic.collaboration(first + number), .challenge))
            }
            let elapsed = try seconds {
                try sets.applyAll(count) { number in
                    let root = (first + number) * Synthetic.rootsPerCollaboration
                    return Mutation(
                        .addRoots(
                            try Synthetic.collaboration(first + number),
                            (root..<root + Synthetic.rootsPerCollaboration).map { Synthetic.root($0) }))
                }
            }
            let rate = Double(count) / elapsed
            first += count
            count = scale.count(at: rate, for: 2.5 * scale.seconds, in: bounds)
            return rate * Double(Synthetic.rootsPerCollaboration)
        }
        return Measurement("mutations.bulk", unit: "roots/s", values: values)
    },
    Benchmark("mutations.small", "durable adds of one root, 64 clients") { scale in
        let directory = try TemporaryDirectory()
        let sets = try RootSets(RootSets.Configuration(directory: directory.path))
        let collaboration = try Synthetic.collaboration(0)
        try sets.apply(Mutation(.createCollaboration(collaboration, .challenge)))
        let next = Atomic<Int>(0)
        func rate(clients: Int, mutations: Int) -> Double {
            let elapsed = seconds {
                let group = DispatchGroup()
                let chain = Chain(
                    sets, collaboration, next: next.add(mutations, ordering: .relaxed).oldValue, count: mutations)
                for _ in 0..<clients {
                    group.enter()
                    chain.go { group.leave() }
                }
                group.wait()
            }
            return Double(mutations) / elapsed
        }
        /// A function that measures a round of as many mutations as take its time, by the rate of the last one.
        func rounds(clients: Int, _ bounds: ClosedRange<Int>) -> () -> Double {
            var count = bounds.lowerBound
            return {
                let rate = rate(clients: clients, mutations: count)
                count = scale.count(at: rate, for: 4 * scale.seconds, in: bounds)
                return rate
            }
        }
        let many = rounds(clients: 64, scale.size(2000, tiny: 500)...scale.size(40_000, tiny: 500))
        let one = rounds(clients: 1, scale.size(200, tiny: 50)...scale.size(4000, tiny: 50))
        let rounds = scale.alternate {
            many()
        } _: {
            one()
        }
        return Measurement(
            "mutations.small", unit: "mutations/s", rounds: rounds, against: "one client waiting for each commit")
    },
]

/// Clients that each send their next mutation when the last one is durable.
private final class Chain: Sendable {
    private let sets: RootSets
    private let collaboration: CollaborationIdentifier
    private let next: Atomic<Int>
    private let end: Int

    init(_ sets: RootSets, _ collaboration: CollaborationIdentifier, next: Int, count: Int) {
        self.sets = sets
        self.collaboration = collaboration
        self.next = Atomic(next)
        end = next + count
    }

    func go(_ done: @escaping @Sendable () -> Void) {
        let number = next.add(1, ordering: .relaxed).oldValue
        guard number < end else { return done() }
        sets.submit(Mutation(.addRoots(collaboration, [Synthetic.root(number)]))) { result in
            if case .failure(let error) = result { preconditionFailure("\(error)") }
            self.go(done)
        }
    }
}
