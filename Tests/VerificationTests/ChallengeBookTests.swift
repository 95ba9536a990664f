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
        let maker = book.makeTagMaker()
        var all: Set<[UInt8]> = []
        // Also more than are made at once, at addresses that are not aligned.
        let counts = [0, 1, 2, 63, 64, 65, 128, 1000]
        for (index, count) in counts.enumerated() {
            let guardBytes = 7 + index
            var bytes = [UInt8](repeating: 0xa5, count: count * 48 + 2 * guardBytes)
            bytes.withUnsafeMutableBytes { bytes in
                if let start = bytes.baseAddress { book.issue(count, to: start + guardBytes, with: maker) }
            }
            for place in 0..<guardBytes { #expect(bytes[place] == 0xa5 && bytes[bytes.count - 1 - place] == 0xa5) }
            for start in stride(from: guardBytes, to: guardBytes + count * 48, by: 48) {
                let challenge = Array(bytes[start..<start + 48])
                _ = try book.token(of: challenge)
                all.insert(challenge)
            }
        }
        #expect(all.count == counts.reduce(0, +))
        #expect(book.statistics.issued == UInt64(all.count))
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
        keys.replace(KeyPair(current: authenticators[1], other: authenticators[0]))
        let second = book.challenge()
        for challenge in [first, second] { _ = try book.token(of: challenge) }
        #expect(book.standings(of: [second, first, second], with: checker).count { $0 != .forged } == 3)
        keys.replace(KeyPair(current: authenticators[2], other: authenticators[1]))
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

    @Test("A challenge that was spent before it expired is never spent again, even after it is forgotten")
    func spentThenForgotten() throws {
        let time = ManualClock()
        let book = ChallengeBook(keys: freshKeys(), validMilliseconds: 1000, replayBytesMax: 8192, clock: time.clock)
        let token = try book.token(of: book.challenge())
        #expect(book.spend(token) == .spent)
        time.advance(1200)
        #expect(book.spend(try book.token(of: book.challenge())) == .spent)
        time.advance(1200)
        #expect(book.spend(token) != .spent)
    }
}
