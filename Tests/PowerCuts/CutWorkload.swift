import Core
import TestSupport

/// Random changes of a storage that is often full: small and large sets, whole ones that go, records.
struct CutWorkload {
    private var random: SeededGenerator
    private let names: [CollaborationIdentifier]
    private var mutations: UInt128

    /// `first`: the number of the first mutation. Those of one history have different numbers.
    init(seed: UInt64, first: Int) {
        random = SeededGenerator(seed: seed)
        names = (0..<8).compactMap { CollaborationIdentifier("deck-\($0)") }
        mutations = UInt128(first)
    }

    /// Root hashes come from a small world, so that they come and go.
    private mutating func roots(_ count: Int) -> [Digest] {
        (0..<count).map { _ in
            var generator = SeededGenerator(seed: UInt64.random(in: 0..<6000, using: &random))
            return generator.digest()
        }
    }

    private mutating func change() -> Change {
        let name = names[Int.random(in: names.indices, using: &random)]
        let isLarge = Int.random(in: 0..<6, using: &random) == 0
        let count = Int.random(in: 1...(isLarge ? 2500 : 40), using: &random)
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<3: return .createCollaboration(name, .challenge)
        case 3: return .dropCollaboration(name)
        case 4..<10: return .addRoots(name, roots(count))
        case 10..<14: return .removeRoots(name, roots(count))
        default: return .edit(edit(name))
        }
    }

    private mutating func edit(_ name: CollaborationIdentifier) -> Edit {
        var edit = Edit(Bool.random(using: &random) ? name : nil)
        if edit.collaboration != nil {
            // One root is not added and removed at once.
            let some = Array(Set(roots(12)))
            (edit.addedRoots, edit.removedRoots) = (Array(some.prefix(some.count / 2)), Array(some.suffix(2)))
        }
        let numbers = Set((0..<3).map { _ in Int.random(in: 0..<150, using: &random) }).sorted()
        edit.records = numbers.map { number in
            let isLong = Int.random(in: 0..<8, using: &random) == 0
            let isRemoved = Int.random(in: 0..<3, using: &random) == 0
            let value = random.bytes(Int.random(in: 1...(isLong ? 9000 : 200), using: &random))
            return RecordEdit(Array("record/\(number)".utf8), value: isRemoved ? nil : value)
        }
        return edit
    }

    /// A few mutations that are sent at once.
    mutating func burst() -> [Mutation] {
        (0..<Int.random(in: 1...6, using: &random)).map { _ in
            mutations += 1
            return Mutation(identifier: MutationIdentifier(mutations), change())
        }
    }
}
