import Core
import Foundation
import TestSupport
import Testing

@testable import Verification

/// A memory that expectations can change.
private final class TestedMemory {
    private var memory: SpentChallenges

    init(_ memory: SpentChallenges) { self.memory = memory }

    var byteCount: Int { memory.byteCount }
    func isSpent(_ token: ChallengeBook.Token) -> Bool { memory.isSpent(token) }
    func advance(to time: UInt64) { _ = memory.advance(to: time) }
    func spend(_ token: ChallengeBook.Token, by holder: MemoryHolder) -> SpentChallenges.Spending {
        memory.spend(token, by: holder)
    }
}

@Suite("The memory of spent challenges")
struct SpentChallengesTests {
    /// Bytes for shares and tables, beside the groups: of ten generations.
    private let fixedBytes = 10 * (4 * 1024 * 4 + 512 * 16)

    private func memory(_ bytesMax: Int, validMilliseconds: UInt64 = 800) -> SpentChallenges {
        SpentChallenges(validMilliseconds: validMilliseconds, bytesMax: bytesMax, hash: KeyedHash())
    }

    /// A memory for that many groups.
    private func memory(groups: Int, validMilliseconds: UInt64 = 800) -> SpentChallenges {
        var bytes = 1 << 20
        while memory(bytes, validMilliseconds: validMilliseconds).groupsMax != groups {
            bytes += 32 * (groups - memory(bytes, validMilliseconds: validMilliseconds).groupsMax)
        }
        return memory(bytes, validMilliseconds: validMilliseconds)
    }

    /// Somebody else for each number.
    private func anybody(_ number: Int) -> MemoryHolder {
        holder(UInt32(number % 1024), UInt32(number % 1024))
    }

    @Test("A spent challenge takes at most 32 bytes, however many were issued since the one before and never spent")
    func sparse() {
        for gap in [64, 1000, 65_536, 4_500_000_000] as [UInt64] {
            let memory = TestedMemory(memory(16 << 20))
            memory.advance(to: 1000)
            let count = 20_000
            for index in 0..<count {
                let token = ChallengeBook.Token(
                    number: UInt64(index) * gap, expiry: 1000 + UInt64(index) * 800 / 20_000)
                #expect(memory.spend(token, by: anybody(index)) == .spent)
                #expect(memory.spend(token, by: anybody(index)) == .replayed)
            }
            #expect(memory.byteCount <= count * 32 + fixedBytes, "a gap of \(gap)")
            for index in 0..<count {
                let token = ChallengeBook.Token(
                    number: UInt64(index) * gap, expiry: 1000 + UInt64(index) * 800 / 20_000)
                #expect(memory.isSpent(token))
                let next = ChallengeBook.Token(number: token.number + 1, expiry: token.expiry)
                #expect(!memory.isSpent(next))
            }
        }
    }

    @Test("When every challenge is spent, each takes half a byte")
    func dense() {
        let memory = TestedMemory(memory(16 << 20))
        memory.advance(to: 1000)
        let count = 1 << 20
        var isRight = true
        for number in 0..<count {
            let token = ChallengeBook.Token(number: UInt64(number), expiry: 1800)
            isRight = isRight && memory.spend(token, by: anybody(number / 64)) == .spent
        }
        #expect(isRight)
        #expect(memory.byteCount <= count / 2 + fixedBytes)
    }

    @Test("A full memory refuses challenges, forgets none, and has room again when they have expired")
    func full() {
        let memory = TestedMemory(memory(groups: 100))
        memory.advance(to: 10_000)
        func token(_ group: Int, _ place: UInt64 = 0, expiry: UInt64 = 10_500) -> ChallengeBook.Token {
            ChallengeBook.Token(number: UInt64(group) * 64 + place, expiry: expiry)
        }
        for group in 0..<100 { #expect(memory.spend(token(group), by: anybody(group)) == .spent) }
        #expect(memory.spend(token(100), by: anybody(100)) == .memoryFull)
        // A neighbour of a spent one takes no room.
        #expect(memory.spend(token(7, 63), by: anybody(7)) == .spent)
        memory.advance(to: 10_500)
        #expect(memory.spend(token(100), by: anybody(100)) == .memoryFull)
        for group in 0..<100 { #expect(memory.spend(token(group), by: anybody(group)) == .replayed) }
        // The generation's time is over an eighth of the validity later at most.
        memory.advance(to: 10_500 + 101)
        #expect(memory.byteCount == 0)
        #expect(memory.spend(token(7), by: anybody(7)) == .expired)
        for group in 0..<100 {
            #expect(memory.spend(token(group, expiry: 11_000), by: anybody(group)) == .spent)
        }
    }

    @Test("A collaboration that takes all it can leaves half of the memory free, and a participant four fifths")
    func shares() {
        let memory = TestedMemory(memory(groups: 1000))
        memory.advance(to: 10_000)
        var group: UInt64 = 0
        func fill(_ collaboration: UInt32, _ participants: ClosedRange<UInt32>, expiry: UInt64) -> Int {
            var (spent, refused) = (0, 0)
            while refused < participants.count {
                group += 1
                let participant = participants.lowerBound + UInt32(group) % UInt32(participants.count)
                let token = ChallengeBook.Token(number: group * 64, expiry: expiry)
                switch memory.spend(token, by: holder(collaboration, participant)) {
                case .spent: (spent, refused) = (spent + 1, 0)
                default: refused += 1
                }
            }
            return spent
        }
        #expect(fill(1, 1...1, expiry: 10_100) == 200)
        #expect(fill(1, 2...51, expiry: 10_700) == 300)
        #expect(fill(2, 100...150, expiry: 10_700) == 250)
        #expect(fill(1, 1...51, expiry: 10_700) == 0)
        // What has expired no longer counts.
        memory.advance(to: 10_250)
        #expect(fill(1, 1...51, expiry: 10_700) == 75)
        memory.advance(to: 10_900)
        #expect(fill(1, 1...51, expiry: 11_500) == 500)
    }

    /// What the memory should do, told with a dictionary and loops.
    private struct Model {
        let groupsMax: Int
        let span: UInt64
        var now: UInt64 = 0
        var spent: [UInt64: UInt64] = [:]
        var groups: [[UInt64]: UInt32] = [:]

        mutating func advance(to time: UInt64) {
            now = time
            groups = groups.filter { $0.key[0] >= now / span }
            spent = spent.filter { $0.value >= now }
        }

        mutating func spend(_ token: ChallengeBook.Token, by holder: UInt32) -> SpentChallenges.Spending {
            guard now <= token.expiry else { return .expired }
            guard spent[token.number] == nil else { return .replayed }
            let group = [token.expiry / span, token.number / 64]
            if groups[group] == nil {
                let free = groupsMax - groups.count
                let held = groups.values.count { $0 == holder }
                // The holder is the only participant of his collaboration.
                guard free > 0, 4 * held < free + 3 - (free + 3) % 4 else { return .memoryFull }
                groups[group] = holder
            }
            spent[token.number] = token.expiry
            return .spent
        }
    }

    @Test("Random spending agrees with a model while the time goes on", arguments: [10, 30, 5000])
    func model(groups: Int) {
        var random = SeededGenerator(seed: runSeed &+ UInt64(groups))
        let valid: UInt64 = 800
        let memory = TestedMemory(memory(groups: groups, validMilliseconds: valid))
        var model = Model(groupsMax: groups, span: valid / 8 + 1)
        var issued: [ChallengeBook.Token] = []
        var (number, now) = (0 as UInt64, 5000 as UInt64)
        var seen: Set<String> = []
        for step in 0..<6000 {
            if Int.random(in: 0..<4, using: &random) == 0 { now += UInt64.random(in: 0...60, using: &random) }
            memory.advance(to: now)
            model.advance(to: now)
            // Many that nobody uses, then a few that are used sooner or later, some twice.
            number += Bool.random(using: &random) ? 1 : UInt64.random(in: 0...1_000_000, using: &random)
            for _ in 0..<3 {
                issued.append(ChallengeBook.Token(number: number, expiry: now + valid))
                number += 1
            }
            for _ in 0..<3 {
                let index = max(0, issued.count - 1 - Int.random(in: 0..<400, using: &random))
                let token = issued[index]
                let who = UInt32.random(in: 0..<40, using: &random)
                let expected = model.spend(token, by: who)
                seen.insert("\(expected)")
                let outcome = memory.spend(token, by: holder(who, who))
                #expect(outcome == expected, "seed \(runSeed), step \(step), number \(token.number)")
                #expect(memory.isSpent(token) || now > token.expiry || outcome == .memoryFull)
            }
        }
        #expect(seen.isSuperset(of: groups < 1000 ? ["spent", "replayed", "expired", "memoryFull"] : ["spent"]))
    }
}
