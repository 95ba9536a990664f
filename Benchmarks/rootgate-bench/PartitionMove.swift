import Core
import RootSets

/// Partitions of which one is new: slots move to it one after the other while root hashes are added, removed and looked
/// up. The order of everything is random.
///
/// A slot moves in steps: its changes are refused; its collaborations are copied; the table names the new partition;
/// the old one drops them. Look-ups go where the table says, and are never refused. The states of all collaborations
/// are kept beside, and every look-up is compared with them.
final class PartitionMove {
    private static let rootsPerCollaboration = 8

    private(set) var changes = 0
    /// Changes that were refused because their slot moved.
    private(set) var refused = 0
    private(set) var lookups = 0
    private(set) var moved = 0

    private let directories: [TemporaryDirectory]
    private let partitions: [RootSets]
    private var table: PartitionTable
    private let collaborations: [CollaborationIdentifier]
    private let slots: [Int]
    /// Which of a collaboration's root hashes are members.
    private var members: [[Bool]]
    private var movingSlot: Int?
    private var random = SystemRandomNumberGenerator()

    /// Three partitions with so many collaborations, and an empty fourth one.
    init(collaborations count: Int) throws {
        directories = try (0..<4).map { _ in try TemporaryDirectory() }
        partitions = try directories.map { try RootSets(RootSets.Configuration(directory: $0.path)) }
        table = PartitionTable(partitions: 3)
        collaborations = try (0..<count).map { try Synthetic.collaboration($0) }
        slots = collaborations.map { PartitionTable.slot(of: $0) }
        members = collaborations.map { _ in (0..<PartitionMove.rootsPerCollaboration).map { $0 % 2 == 0 } }
        for (number, collaboration) in collaborations.enumerated() {
            let storage = partitions[table.partitions[slots[number]]]
            try storage.apply(Mutation(.createCollaboration(collaboration, .challenge)))
            try storage.apply(Mutation(.addRoots(collaboration, roots(of: number).filter { isMember($0, number) })))
        }
    }

    deinit { for partition in partitions { partition.close() } }

    private func roots(of number: Int) -> [Digest] {
        let first = number * PartitionMove.rootsPerCollaboration
        return (first..<first + PartitionMove.rootsPerCollaboration).map { Synthetic.root($0) }
    }

    private func isMember(_ root: Digest, _ number: Int) -> Bool {
        zip(roots(of: number), members[number]).contains { $0 == root && $1 }
    }

    /// Moves a part of the slots to the fourth partition, under load, and looks at everything once more.
    ///
    /// Throws when a partition fails, and when an answer is not what the states say.
    func run() throws {
        for slot in table.slotsOfOneMore {
            let numbers = slots.indices.filter { slots[$0] == slot }
            guard !numbers.isEmpty else { continue }
            let (old, new) = (partitions[table.partitions[slot]], partitions[3])
            movingSlot = slot
            try useSome(near: numbers)
            for number in numbers {
                try copy(collaborations[number], from: old, to: new)
                try useSome(near: numbers)
            }
            table.move(slot, to: 3)
            movingSlot = nil
            try useSome(near: numbers)
            for number in numbers {
                try old.apply(Mutation(.dropCollaboration(collaborations[number])))
                try useSome(near: numbers)
            }
            moved += numbers.count
        }
        for number in collaborations.indices {
            for root in 0..<PartitionMove.rootsPerCollaboration { try lookUp(root, of: number) }
            for (place, partition) in partitions.enumerated() where place != table.partitions[slots[number]] {
                guard try found(roots(of: number), of: number, in: partition) == nil else {
                    throw wrong("a partition has a collaboration that has moved away")
                }
            }
        }
    }

    private func copy(_ collaboration: CollaborationIdentifier, from old: RootSets, to new: RootSets) throws {
        try new.apply(Mutation(.createCollaboration(collaboration, .challenge)))
        let page = try old.read { snapshot throws(ServiceError) in
            try snapshot.roots(of: collaboration, after: nil, limit: PartitionMove.rootsPerCollaboration)
        }
        guard let page, !page.items.isEmpty else { return }
        try new.apply(Mutation(.addRoots(collaboration, page.items)))
    }

    /// Changes and look-ups, half of them of these collaborations.
    private func useSome(near numbers: [Int]) throws {
        for _ in 0..<4 {
            let isNear = Bool.random(using: &random)
            guard
                let number = isNear
                    ? numbers.randomElement(using: &random) : slots.indices.randomElement(using: &random)
            else { continue }
            let root = Int.random(in: 0..<PartitionMove.rootsPerCollaboration, using: &random)
            if Bool.random(using: &random) { try change(root, of: number) }
            try lookUp(root, of: number)
        }
    }

    private func change(_ root: Int, of number: Int) throws {
        guard slots[number] != movingSlot else { return refused += 1 }
        let (collaboration, hashes) = (collaborations[number], [roots(of: number)[root]])
        let isAdded = !members[number][root]
        try partitions[table.partitions[slots[number]]].apply(
            Mutation(isAdded ? .addRoots(collaboration, hashes) : .removeRoots(collaboration, hashes)))
        members[number][root] = isAdded
        changes += 1
    }

    private func lookUp(_ root: Int, of number: Int) throws {
        let partition = partitions[table.partitions[slots[number]]]
        let answers = try found([roots(of: number)[root]], of: number, in: partition)
        guard answers == [members[number][root]] else { throw wrong("a look-up is answered wrongly") }
        lookups += 1
    }

    /// Which root hashes a partition has; `nil`: it does not have the collaboration.
    private func found(_ roots: [Digest], of number: Int, in partition: RootSets) throws -> [Bool]? {
        try partition.read { snapshot throws(ServiceError) in
            try snapshot.test(roots, in: collaborations[number])
        }
    }

    private func wrong(_ what: String) -> ServiceError { ServiceError(.internalFault, what) }
}
