import Core
import TestSupport
import Testing

@Suite("Lines of peers")
struct PeerLinesTests {
    private func peer(_ number: Int) -> Holder { .address(UInt32(number)) }

    @Test("Peers take turns, and each peer's elements keep their order")
    func turns() {
        var lines = PeerLines<String>()
        for name in ["a1", "a2", "a3"] { lines.append(name, of: peer(1)) }
        for name in ["b1", "b2"] { lines.append(name, of: peer(2)) }
        lines.append("c1", of: peer(3))
        var taken: [String] = []
        while let next = lines.popFirst() { taken.append(next) }
        #expect(taken == ["a1", "b1", "c1", "a2", "b2", "a3"])
        #expect(lines.isEmpty)
    }

    @Test("The peer with the most loses its oldest element")
    func longest() {
        var lines = PeerLines<String>()
        for name in ["a1", "a2", "a3"] { lines.append(name, of: peer(1)) }
        lines.append("b1", of: peer(2))
        #expect(lines.removeFromLongest() == "a1")
        #expect(lines.removeFromLongest() == "a2")
        #expect(lines.count == 2)
        #expect(Set([lines.removeFromLongest(), lines.removeFromLongest()]) == ["a3", "b1"])
        #expect(lines.removeFromLongest() == nil && lines.popFirst() == nil)
    }

    @Test("Random elements are taken once, those of a peer in order, and no peer waits longer than one turn of each")
    func random() throws {
        var random = SeededGenerator(seed: runSeed)
        var lines = PeerLines<(peer: Int, number: Int)>()
        var waiting: [Int: [Int]] = [:]
        for number in 0..<20_000 {
            let action = Int.random(in: 0..<10, using: &random)
            if action < 5 {
                let peer = Int.random(in: 0..<6, using: &random)
                lines.append((peer, number), of: self.peer(peer))
                waiting[peer, default: []].append(number)
            } else {
                let longest = waiting.values.map(\.count).max() ?? 0
                guard let taken = action < 9 ? lines.popFirst() : lines.removeFromLongest() else {
                    try #require(longest == 0, "seed \(runSeed)")
                    continue
                }
                if action == 9 { try #require(waiting[taken.peer]?.count == longest, "seed \(runSeed)") }
                try #require(waiting[taken.peer]?.first == taken.number, "seed \(runSeed)")
                waiting[taken.peer]?.removeFirst()
            }
            try #require(lines.count == waiting.values.reduce(0) { $0 + $1.count }, "seed \(runSeed)")
        }
    }
}
