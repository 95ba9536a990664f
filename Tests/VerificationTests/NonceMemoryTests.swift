import Core
import Foundation
import TestSupport
import Testing

@testable import Verification

@Suite("Nonces")
struct NonceMemoryTests {
    private func fingerprint(_ key: UInt8, _ nonce: UInt8) -> NonceMemory.Fingerprint {
        let digests = [key, nonce].map { Digest([UInt8](repeating: $0, count: 32)) ?? .zero }
        return NonceMemory.Fingerprint(leaf: digests[0], nonceDigest: digests[1])
    }

    private func fingerprint(of number: UInt64) -> NonceMemory.Fingerprint {
        let bytes = withUnsafeBytes(of: number) { Array($0) } + [UInt8](repeating: 0, count: 24)
        return NonceMemory.Fingerprint(leaf: Digest(bytes) ?? .zero, nonceDigest: .zero)
    }

    @Test("A nonce is replayed until its window has passed, and new again then")
    func window() {
        let time = ManualClock()
        let memory = NonceMemory(clock: time.clock)
        let one = fingerprint(1, 1)
        #expect(!memory.isSpent(one))
        for _ in 0..<3 {
            #expect(memory.spend(one, windowSeconds: 2, by: holder(1, 1)) == .spent)
            #expect(memory.isSpent(one))
            time.advance(1999)
            #expect(memory.isSpent(one))
            #expect(memory.spend(one, windowSeconds: 2, by: holder(1, 1)) == .replayed)
            time.advance(1)
            #expect(!memory.isSpent(one))
        }
    }

    @Test("A spent nonce can be spent by another key, and another nonce by the same key")
    func pairs() {
        let memory = NonceMemory(clock: ManualClock().clock)
        #expect(memory.spend(fingerprint(1, 2), windowSeconds: 5, by: holder(1, 1)) == .spent)
        for (key, nonce) in [(2, 1), (1, 1), (2, 2), (1, 3)] as [(UInt8, UInt8)] {
            #expect(!memory.isSpent(fingerprint(key, nonce)))
            #expect(memory.spend(fingerprint(key, nonce), windowSeconds: 5, by: holder(1, 1)) == .spent)
        }
        #expect(memory.count == 5)
        #expect(memory.spend(fingerprint(1, 2), windowSeconds: 5, by: holder(1, 1)) == .replayed)
    }

    @Test("A full memory refuses nonces, forgets none early, and has room again when windows have passed")
    func memoryFull() {
        let time = ManualClock()
        let memory = NonceMemory(entriesMax: 10, clock: time.clock)
        // Each by a holder of its own, so that no share is used up.
        func spend(_ key: UInt8, _ nonce: Int, _ windowSeconds: UInt32) -> NonceMemory.Spending {
            let holder = holder(UInt32(key) << 5 | UInt32(nonce), UInt32(key) << 5 | UInt32(nonce))
            return memory.spend(fingerprint(key, UInt8(nonce)), windowSeconds: windowSeconds, by: holder)
        }
        for nonce in 0..<10 { #expect(spend(1, nonce, nonce < 5 ? 1 : 10) == .spent) }
        #expect(spend(2, 0, 1) == .memoryFull)
        time.advance(999)
        #expect(spend(2, 0, 1) == .memoryFull)
        #expect(spend(1, 0, 1) == .replayed)
        time.advance(2001)
        for nonce in 0..<5 { #expect(spend(2, nonce, 10) == .spent) }
        #expect(spend(2, 5, 1) == .memoryFull)
        for nonce in 5..<10 { #expect(memory.isSpent(fingerprint(1, UInt8(nonce)))) }
        #expect(memory.count == 10)
        time.advance(20_000)
        // Each call forgets some of them.
        #expect(spend(3, 0, 1) == .spent)
        #expect(memory.count == 10 + 1 - Limits.noncesForgottenAtOnce)
        #expect(spend(3, 1, 1) == .spent)
        #expect(memory.count == 2)
    }

    @Test("Expired pairs are forgotten a few at a time, an eighth of their window late at most, and no others are")
    func forgetting() {
        var random = SeededGenerator(seed: runSeed)
        var pairs = NoncePairs(max: 1 << 20, hash: KeyedHash())
        var now: UInt64 = 1_000_000
        var windows: [(end: UInt64, latest: UInt64)] = []
        for step in 0..<3000 {
            let seconds = UInt32.random(in: 1...(1 << UInt32.random(in: 0...19, using: &random)), using: &random)
            let fingerprint = UInt128(random.next()) << 64 | UInt128(random.next())
            let number = UInt32(step) % 1000
            let isAdded = pairs.add(fingerprint, at: now, windowSeconds: seconds, by: holder(number, number))
            #expect(isAdded)
            windows.append((now + UInt64(seconds) * 1000, now + UInt64(seconds) * 1125))
            now += UInt64.random(in: 0...100_000, using: &random)
            var before = pairs.count + 1
            while pairs.count < before {
                before = pairs.count
                pairs.forget(at: now, atMost: 3)
                #expect(before - pairs.count <= 3)
            }
            windows.removeAll { $0.latest <= now }
            #expect(pairs.count >= windows.count { $0.end > now }, "seed \(runSeed), step \(step)")
            #expect(pairs.count <= windows.count, "seed \(runSeed), step \(step)")
        }
    }

    @Test("A collaboration that takes all it can leaves half of the memory to the others")
    func collaborationShare() {
        let memory = NonceMemory(entriesMax: 1000, clock: ManualClock().clock)
        var number: UInt64 = 0
        func fill(_ collaboration: UInt32, participants: UInt32) -> Int {
            var (spent, refused) = (0, 0)
            while refused < participants {
                number += 1
                let fingerprint = fingerprint(of: number)
                let holder = holder(collaboration, collaboration * 100 + UInt32(number) % participants)
                switch memory.spend(fingerprint, windowSeconds: 604_800, by: holder) {
                case .spent: (spent, refused) = (spent + 1, 0)
                default: refused += 1
                }
            }
            return spent
        }
        #expect(fill(1, participants: 50) == 500)
        // The next ones find half of what is left each; the first one gets no more.
        #expect(fill(2, participants: 50) == 250)
        #expect(fill(3, participants: 50) == 125)
        #expect(fill(1, participants: 50) == 0)
        #expect(memory.count == 875)
    }

    @Test("A participant who takes all he can leaves room to his collaboration, and gets it back in time")
    func participantShare() {
        let time = ManualClock()
        let memory = NonceMemory(entriesMax: 1000, clock: time.clock)
        var number: UInt64 = 0
        func spend(_ participant: UInt32) -> NonceMemory.Spending {
            number += 1
            return memory.spend(fingerprint(of: number), windowSeconds: 10, by: holder(1, participant))
        }
        func fill(_ participant: UInt32) -> Int {
            var spent = 0
            while spend(participant) == .spent { spent += 1 }
            return spent
        }
        #expect(fill(1) == 200)
        #expect(spend(2) == .spent)
        #expect(fill(2) == 159)
        time.advance(10_000)
        // A call forgets more than it adds, so the first refusal is one by the share.
        #expect(fill(1) == 200)
        #expect(memory.count == 200)
    }

    @Test("Of many threads with one nonce exactly one spends it")
    func spendOnce() {
        let memory = NonceMemory(clock: ManualClock().clock)
        let pairs = (0..<200).map { fingerprint(1, UInt8($0)) }
        let spent = Shared([Int](repeating: 0, count: pairs.count))
        onThreads(8) { thread in
            for step in pairs.indices {
                let index = thread % 2 == 0 ? step : pairs.count - 1 - step
                if case .spent = memory.spend(pairs[index], windowSeconds: 60, by: holder(1, 1)) {
                    spent.with { $0[index] += 1 }
                }
            }
        }
        #expect(spent.value.allSatisfy { $0 == 1 })
    }

    @Test("Random spending agrees with a list of expiries")
    func model() {
        var random = SeededGenerator(seed: runSeed)
        let time = ManualClock()
        let memory = NonceMemory(clock: time.clock)
        var expiries: [UInt8: UInt64] = [:]
        for step in 0..<5000 {
            let nonce = UInt8.random(in: 0..<40, using: &random)
            let isSpent = expiries[nonce, default: 0] > time.now.value
            #expect(memory.isSpent(fingerprint(7, nonce)) == isSpent, "seed \(runSeed), step \(step)")
            let window = UInt32.random(in: 1...5, using: &random)
            let outcome = memory.spend(fingerprint(7, nonce), windowSeconds: window, by: holder(1, 1))
            #expect(outcome == (isSpent ? .replayed : .spent), "seed \(runSeed), step \(step)")
            if !isSpent { expiries[nonce] = time.now.value + UInt64(window) * 1000 }
            time.advance(UInt64.random(in: 0...300, using: &random))
        }
    }
}
