import Core
import TestSupport
import Testing

@testable import RootSets

@Suite("Lines of mutations")
struct MutationLinesTests {
    private let nobody = CollaborationIdentifier("nobody")!

    private func waiting(_ peer: Int, _ number: Int, isUrgent: Bool = false) -> WaitingMutation {
        WaitingMutation(
            mutation: Mutation(.dropCollaboration(nobody)), bytes: number, peer: .address(UInt32(peer)),
            isUrgent: isUrgent
        ) { _ in }
    }

    /// The peers and numbers of all mutations, in the order in which they are taken.
    private func drain(_ lines: inout MutationLines) -> [(Holder, Int)] {
        var taken: [(Holder, Int)] = []
        while let next = lines.first {
            lines.removeFirst()
            taken.append((next.peer, next.bytes))
        }
        return taken
    }

    @Test("An urgent mutation goes before other peers' mutations, and behind the earlier ones of its peer")
    func urgent() {
        var lines = MutationLines()
        for number in 0..<100 { lines.append(waiting(1, number)) }
        lines.append(waiting(2, 0))
        lines.append(waiting(2, 1, isUrgent: true))
        #expect(!lines.hasUrgent)
        lines.append(waiting(3, 0, isUrgent: true))
        #expect(lines.hasUrgent && lines.count == 103)
        let taken = drain(&lines)
        #expect(taken.count == 103 && lines.isEmpty)
        #expect(taken[0] == (.address(UInt32(3)), 0))
        #expect(taken.filter { $0.0 == .address(UInt32(2)) }.map(\.1) == [0, 1])
        // The second peer's removal is taken as soon as its own earlier mutation is.
        #expect(Array(taken[2...3].map(\.0)) == [.address(UInt32(2)), .address(UInt32(2))])
    }

    @Test("Urgent mutations in masses leave every ninth turn to others, and peers take turns")
    func starvation() {
        var lines = MutationLines()
        for number in 0..<100 {
            lines.append(waiting(1, number, isUrgent: true))
            lines.append(waiting(2, number, isUrgent: true))
        }
        for number in 0..<5 { lines.append(waiting(3, number)) }
        let peers = drain(&lines).map(\.0)
        let every = Limits.urgentMutationsInRow + 1
        let others = peers.indices.filter { peers[$0] == .address(UInt32(3)) }
        #expect(others == (1...5).map { $0 * every - 1 })
        #expect(Array(peers.prefix(4)) == [1, 2, 1, 2].map { .address(UInt32($0)) })
    }

    @Test("What is put back comes before the other mutations of its peer, and peers still take turns")
    func puttingBack() {
        var lines = MutationLines()
        for number in 0..<3 { lines.append(waiting(1, number)) }
        for number in 0..<3 { lines.append(waiting(2, number, isUrgent: true)) }
        lines.append(waiting(3, 0))
        let taken = (0..<5).map { _ in
            defer { lines.removeFirst() }
            return lines.first
        }
        lines.append(waiting(2, 3))
        lines.putBack(taken.dropFirst().compactMap { $0 })
        #expect(lines.count == 7 && lines.hasUrgent)
        let all = drain(&lines)
        let expected = [(2, 1), (2, 2), (1, 0), (3, 0), (2, 3), (1, 1), (1, 2)]
        #expect(all.map(\.0) == expected.map { .address(UInt32($0.0)) } && all.map(\.1) == expected.map(\.1), "\(all)")
    }

    @Test("Random mutations are all taken once, those of a peer in their order")
    func random() throws {
        var random = SeededGenerator(seed: runSeed)
        var lines = MutationLines()
        var expected: [Int: [Int]] = [:]
        var count = 0
        for number in 0..<20_000 {
            if Int.random(in: 0..<5, using: &random) < 3 {
                let peer = Int.random(in: 0..<7, using: &random)
                lines.append(waiting(peer, number, isUrgent: Bool.random(using: &random)))
                expected[peer, default: []].append(number)
                count += 1
            } else if let next = lines.first {
                lines.removeFirst()
                count -= 1
                let peer = try #require((0..<7).first { .address(UInt32($0)) == next.peer })
                try #require(expected[peer]?.first == next.bytes, "seed \(runSeed)")
                expected[peer]?.removeFirst()
            }
            try #require(lines.count == count && lines.isEmpty == (count == 0), "seed \(runSeed)")
        }
    }
}
