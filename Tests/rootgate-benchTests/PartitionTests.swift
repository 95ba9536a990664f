import Core
import Testing

@testable import rootgate_bench

@Suite("Partitions by collaboration")
struct PartitionTests {
    private func sizes(_ table: PartitionTable, of count: Int) -> [Int] {
        table.partitions.reduce(into: [Int](repeating: 0, count: count)) { $0[$1] += 1 }
    }

    @Test("A slot is the first 12 bits of the identifier's SHA-256")
    func slot() throws {
        // printf deck-42 | sha256sum
        let deck = try #require(CollaborationIdentifier("deck-42"))
        #expect(PartitionTable.slot(of: deck) == 0x380)
        #expect(PartitionTable.slot(of: UInt64.max) == PartitionTable.slots - 1)
    }

    @Test(
        "Partitions have the same number of slots, and a further one takes its share from all", arguments: [1, 3, 64])
    func shares(count: Int) {
        var table = PartitionTable(partitions: count)
        #expect(sizes(table, of: count).allSatisfy { abs($0 - PartitionTable.slots / count) <= 1 })
        let moved = table.slotsOfOneMore
        #expect(moved.count == PartitionTable.slots / (count + 1) && Set(moved).count == moved.count)
        for slot in moved { table.move(slot, to: count) }
        #expect(sizes(table, of: count + 1).allSatisfy { abs($0 - PartitionTable.slots / (count + 1)) <= 1 })
    }

    @Test("Slots move under load, and every look-up is answered as the changes say")
    func move() throws {
        let move = try PartitionMove(collaborations: 60)
        try move.run()
        #expect(move.moved > 0 && move.changes > 0 && move.refused > 0)
    }
}
