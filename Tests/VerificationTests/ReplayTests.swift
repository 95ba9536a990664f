import Core
import Foundation
import Hashing
import TestSupport
import Testing
import Verification

@Suite("Challenges")
struct ChallengeBookTests {
    @Test("Issued challenges are genuine, different, and of the stated length")
    func genuine() throws {
        let book = ChallengeBook(keys: freshKeys(), clock: ManualClock().clock)
        var bytes: [UInt8] = [1, 2, 3]
        book.issue(100, into: &bytes)
        try #require(bytes.count == 3 + 100 * ChallengeBook.challengeBytes)
        #expect(bytes[..<3] == [1, 2, 3])
        let all = (0..<100).map { Array(bytes[3 + 48 * $0..<51 + 48 * $0]) }
        #expect(Set(all).count == 100)
        for challenge in all { _ = try book.token(of: challenge) }
        #expect(book.statistics.issued == 100)
        #expect(book.statistics.replayBytes == 0)
    }

    @Test("A challenge with any one bit changed is forged")
    func everyBit() {
        let book = ChallengeBook(keys: freshKeys(), clock: ManualClock().clock)
        let challenge = book.challenge()
        for bit in 0..<8 * challenge.count {
            var forged = challenge
            forged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(book.standing(ofBytes: forged) == .forged, "bit \(bit)")
        }
    }

    @Test("A challenge that is a byte short or long, or nothing at all, is forged")
    func lengths() {
        let book = ChallengeBook(keys: freshKeys(), clock: ManualClock().clock)
        let challenge = book.challenge()
        for bytes in [
            Array(challenge.dropLast()), challenge + [0], Array(challenge.dropFirst()), [], challenge + challenge,
        ] {
            #expect(book.standing(ofBytes: bytes) == .forged, "\(bytes.count) bytes")
        }
    }

    @Test("A challenge that another service has issued is forged")
    func otherBook() {
        let clock = ManualClock().clock
        let (book, other) = (
            ChallengeBook(keys: freshKeys(), clock: clock), ChallengeBook(keys: freshKeys(), clock: clock)
        )
        #expect(book.standing(ofBytes: other.challenge()) == .forged)
    }

    @Test("A challenge from before a restart is told from a forged one, spent or not, and never usable")
    func issuedBeforeARestart() throws {
        let (clock, keys) = (ManualClock().clock, freshKeys())
        let before = ChallengeBook(keys: keys, clock: clock)
        let (spent, unspent) = (before.challenge(), before.challenge())
        #expect(before.spend(try before.token(of: spent)) == .spent)
        let after = ChallengeBook(keys: keys, clock: clock)
        // The numbers begin anew, and the new ones are not the old ones.
        let fresh = after.challenge()
        #expect(fresh[8..<16] == spent[8..<16] && fresh != spent)
        for old in [spent, unspent] {
            #expect(after.standing(ofBytes: old) == .issuedElsewhere)
            for bit in 0..<8 * old.count {
                var forged = old
                forged[bit / 8] ^= 1 << UInt8(bit % 8)
                #expect(after.standing(ofBytes: forged) == .forged, "bit \(bit)")
            }
        }
        _ = try after.token(of: fresh)
        #expect(before.standing(ofBytes: spent) == .replayed)
    }

    @Test("After a rotation challenges of the key before are usable, and after a second one they are forged")
    func rotation() throws {
        let authenticators = (0..<3).map { MessageAuthenticator(key: [UInt8](repeating: UInt8($0 + 1), count: 32)) }
        let keys = RotatingKeys(KeyPair(current: authenticators[0]))
        let book = ChallengeBook(keys: keys, clock: ManualClock().clock)
        let checker = book.makeChecker()
        let first = book.challenge()
        keys.replace(KeyPair(current: authenticators[1], previous: authenticators[0]))
        let second = book.challenge()
        for challenge in [first, second] { _ = try book.token(of: challenge) }
        #expect(book.standings(of: [second, first, second], with: checker).count { $0 != .forged } == 3)
        keys.replace(KeyPair(current: authenticators[2], previous: authenticators[1]))
        #expect(book.standing(ofBytes: first) == .forged)
        _ = try book.token(of: second)
        #expect(book.standings(of: [first, second], with: checker).map { $0 == .forged } == [true, false])
    }

    @Test("A challenge expires right after its time, not before")
    func expiry() throws {
        let time = ManualClock()
        let book = ChallengeBook(keys: freshKeys(), validMilliseconds: 500, clock: time.clock)
        let challenge = book.challenge()
        time.advance(500)
        _ = try book.token(of: challenge)
        time.advance(1)
        #expect(book.standing(ofBytes: challenge) == .expired)
    }

    @Test("An expired challenge with a bit changed is forged, not expired")
    func expiredForgery() {
        let time = ManualClock()
        let book = ChallengeBook(keys: freshKeys(), validMilliseconds: 500, clock: time.clock)
        var challenge = book.challenge()
        time.advance(501)
        challenge[0] ^= 1
        #expect(book.standing(ofBytes: challenge) == .forged)
    }

    @Test("A spent challenge is replayed, and its neighbours are usable")
    func replayed() throws {
        let book = ChallengeBook(keys: freshKeys(), clock: ManualClock().clock)
        let challenges = (0..<130).map { _ in book.challenge() }
        let spent = challenges[64]
        let token = try book.token(of: spent)
        #expect(!book.isSpent(token))
        #expect(book.spend(token) == .spent)
        #expect(book.isSpent(token))
        #expect(book.spend(token) == .replayed)
        for (index, challenge) in challenges.enumerated() {
            if index == 64 {
                #expect(book.standing(ofBytes: challenge) == .replayed)
            } else {
                _ = try book.token(of: challenge)
            }
        }
    }

    @Test("Of many threads with one challenge exactly one spends it")
    func spendOnce() throws {
        let book = ChallengeBook(keys: freshKeys(), clock: ManualClock().clock)
        let tokens = try (0..<500).map { _ in try book.token(of: book.challenge()) }
        let spent = Shared([Int](repeating: 0, count: tokens.count))
        onThreads(8) { thread in
            for step in tokens.indices {
                let index = thread % 2 == 0 ? step : tokens.count - 1 - step
                if case .spent = book.spend(tokens[index]) { spent.with { $0[index] += 1 } }
            }
        }
        #expect(spent.value.allSatisfy { $0 == 1 })
    }

    @Test("A full memory refuses challenges, forgets none, and has room again when they have expired")
    func memoryFull() throws {
        let time = ManualClock()
        let book = ChallengeBook(
            keys: freshKeys(), validMilliseconds: 1000, replayBytesMax: 2 * 8192, clock: time.clock)
        var scrap: [UInt8] = []
        func nextSegment() throws -> ChallengeBook.Token {
            scrap.removeAll(keepingCapacity: true)
            book.issue(65_535, into: &scrap)
            return try book.token(of: book.challenge())
        }
        let (first, second, third) = (try nextSegment(), try nextSegment(), try nextSegment())
        #expect(book.spend(first) == .spent)
        #expect(book.spend(second) == .spent)
        #expect(book.spend(third) == .memoryFull)
        #expect(book.statistics.replayBytes == 2 * 8192)
        #expect(book.spend(first) == .replayed)
        time.advance(1000)
        #expect(book.spend(third) == .memoryFull)
        #expect(book.spend(second) == .replayed)
        time.advance(1)
        let fresh = try book.token(of: book.challenge())
        #expect(book.spend(fresh) == .spent)
        #expect(book.statistics.replayBytes == 8192)
    }

    @Test("A challenge that was spent before it expired is never spent again, even after it is forgotten")
    func spentThenForgotten() throws {
        let time = ManualClock()
        let book = ChallengeBook(keys: freshKeys(), validMilliseconds: 1000, replayBytesMax: 8192, clock: time.clock)
        let token = try book.token(of: book.challenge())
        #expect(book.spend(token) == .spent)
        time.advance(1001)
        var scrap: [UInt8] = []
        book.issue(65_536, into: &scrap)
        #expect(book.spend(try book.token(of: book.challenge())) == .spent)
        time.advance(1001)
        #expect(book.spend(token) != .spent)
    }
}

@Suite("Nonces")
struct NonceMemoryTests {
    private func fingerprint(_ key: UInt8, _ nonce: UInt8) -> NonceMemory.Fingerprint {
        let digests = [key, nonce].map { Digest([UInt8](repeating: $0, count: 32)) ?? .zero }
        return NonceMemory.Fingerprint(leaf: digests[0], nonceDigest: digests[1])
    }

    @Test("A nonce is replayed until its window has passed, and new again then")
    func window() {
        let time = ManualClock()
        let memory = NonceMemory(clock: time.clock)
        let one = fingerprint(1, 1)
        #expect(!memory.isSpent(one))
        for _ in 0..<3 {
            #expect(memory.spend(one, windowSeconds: 2) == .spent)
            #expect(memory.isSpent(one))
            time.advance(1999)
            #expect(memory.isSpent(one))
            #expect(memory.spend(one, windowSeconds: 2) == .replayed)
            time.advance(1)
            #expect(!memory.isSpent(one))
        }
    }

    @Test("A spent nonce can be spent by another key, and another nonce by the same key")
    func pairs() {
        let memory = NonceMemory(clock: ManualClock().clock)
        #expect(memory.spend(fingerprint(1, 2), windowSeconds: 5) == .spent)
        for (key, nonce) in [(2, 1), (1, 1), (2, 2), (1, 3)] as [(UInt8, UInt8)] {
            #expect(!memory.isSpent(fingerprint(key, nonce)))
            #expect(memory.spend(fingerprint(key, nonce), windowSeconds: 5) == .spent)
        }
        #expect(memory.count == 5)
        #expect(memory.spend(fingerprint(1, 2), windowSeconds: 5) == .replayed)
    }

    @Test("A full memory refuses nonces, forgets none early, and has room again when windows have passed")
    func memoryFull() {
        let time = ManualClock()
        let memory = NonceMemory(entriesMax: 10, clock: time.clock)
        for nonce in 0..<10 {
            #expect(memory.spend(fingerprint(1, UInt8(nonce)), windowSeconds: nonce < 5 ? 1 : 10) == .spent)
        }
        #expect(memory.spend(fingerprint(2, 0), windowSeconds: 1) == .memoryFull)
        time.advance(999)
        #expect(memory.spend(fingerprint(2, 0), windowSeconds: 1) == .memoryFull)
        #expect(memory.spend(fingerprint(1, 0), windowSeconds: 1) == .replayed)
        time.advance(2001)
        for nonce in 0..<5 { #expect(memory.spend(fingerprint(2, UInt8(nonce)), windowSeconds: 10) == .spent) }
        #expect(memory.spend(fingerprint(2, 5), windowSeconds: 1) == .memoryFull)
        for nonce in 5..<10 { #expect(memory.isSpent(fingerprint(1, UInt8(nonce)))) }
        #expect(memory.count == 10)
        time.advance(20_000)
        #expect(memory.spend(fingerprint(3, 0), windowSeconds: 1) == .spent)
        #expect(memory.count == 1)
    }

    @Test("Of many threads with one nonce exactly one spends it")
    func spendOnce() {
        let memory = NonceMemory(clock: ManualClock().clock)
        let pairs = (0..<200).map { fingerprint(1, UInt8($0)) }
        let spent = Shared([Int](repeating: 0, count: pairs.count))
        onThreads(8) { thread in
            for step in pairs.indices {
                let index = thread % 2 == 0 ? step : pairs.count - 1 - step
                if case .spent = memory.spend(pairs[index], windowSeconds: 60) { spent.with { $0[index] += 1 } }
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
            let outcome = memory.spend(fingerprint(7, nonce), windowSeconds: window)
            #expect(outcome == (isSpent ? .replayed : .spent), "seed \(runSeed), step \(step)")
            if !isSpent { expiries[nonce] = time.now.value + UInt64(window) * 1000 }
            time.advance(UInt64.random(in: 0...300, using: &random))
        }
    }
}
