import Core
import TestSupport
import Testing

@testable import Verification

@Suite("Shares of a memory")
struct MemorySharesTests {
    @Test("Nobody has less than was counted for him, and who shares no counter has exactly that")
    func counts() {
        var random = SeededGenerator(seed: runSeed)
        var shares = MemoryShares()
        var part = MemoryShares()
        var held: [UInt32: Int] = [:]
        var inPart: [UInt32: Int] = [:]
        for step in 0..<5000 {
            let who = UInt32.random(in: 0..<60, using: &random)
            if held[who, default: 0] > inPart[who, default: 0], Bool.random(using: &random) {
                shares.remove(holder(who, who))
                held[who, default: 0] -= 1
            } else {
                shares.add(holder(who, who))
                held[who, default: 0] += 1
                if Bool.random(using: &random) {
                    part.add(holder(who, who))
                    inPart[who, default: 0] += 1
                }
            }
            if step % 1000 == 999 {
                shares.remove(all: part)
                for (who, count) in inPart { held[who, default: 0] -= count }
                (part, inPart) = (MemoryShares(), [:])
            }
            let count = held[who, default: 0]
            // A participant may have a quarter of what is free, and one who has that gets no more.
            #expect(shares.allows(holder(who, who), free: 4 * count + 1), "seed \(runSeed), step \(step)")
            #expect(!shares.allows(holder(who, who), free: 4 * count), "seed \(runSeed), step \(step)")
            #expect(shares.allows(holder(who, 1000), free: count + 1))
            #expect(!shares.allows(holder(who, 1000), free: count))
        }
    }

    @Test("Holders who share one counter don't add up, and those who share both do")
    func collisions() {
        var shares = MemoryShares()
        let first = MemoryHolder(collaboration: 5 << 10 | 7, participant: 1)
        let sharesOne = MemoryHolder(collaboration: 6 << 10 | 7, participant: 1 << 10 | 2)
        let sharesBoth = MemoryHolder(collaboration: 1 << 20 | 5 << 10 | 7, participant: 2 << 10 | 3)
        for _ in 0..<10 { shares.add(first) }
        #expect(shares.allows(sharesOne, free: 1))
        #expect(!shares.allows(sharesBoth, free: 10))
        #expect(shares.allows(sharesBoth, free: 11))
    }

    @Test("A holder is the same for the same collaboration and root, and another one otherwise")
    func holders() {
        func holder(_ name: String, _ root: UInt8) -> MemoryHolder {
            Array(name.utf8).withUnsafeBytes {
                MemoryHolder(collaboration: $0, root: Digest([UInt8](repeating: root, count: 32)) ?? .zero)
            }
        }
        let one = holder("a", 1)
        #expect(one.collaboration == holder("a", 2).collaboration && one.participant == holder("a", 1).participant)
        #expect(one.participant != holder("a", 2).participant)
        #expect(one.collaboration != holder("b", 1).collaboration && one.participant != holder("b", 1).participant)
    }
}
