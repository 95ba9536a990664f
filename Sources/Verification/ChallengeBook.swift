package import Core
package import Hashing
import Synchronization

/// Issues challenges, recognizes those that it issued, and remembers which were spent.
///
/// Issued challenges are not stored. A challenge has 48 bytes:
///
///     issued at (8, milliseconds of the service's clock) | number (8) | epoch (8) | tag (24)
///
/// The tag is the first 24 bytes of an HMAC-SHA256 over the 24 bytes before it. Its key may outlive this object. The
/// epoch is random for each object, so no two challenges are equal. A genuine challenge of another epoch was issued
/// before a restart, or by a service with the same secret. It is never accepted here, because only its own object
/// remembers whether it is spent.
///
/// Numbers are assigned in ascending order, so that the memory of spent challenges is small where many neighbours are
/// spent: see `SpentChallenges`. When it is full, `spend` refuses. A challenge that has not expired is never forgotten.
package final class ChallengeBook: Sendable {
    /// Number of bytes in a challenge.
    package static let challengeBytes = Limits.challengeBytes
    private static let signedBytes = 24

    /// Whether a challenge can be spent now, or why it can't.
    package enum Standing: Equatable, BitwiseCopyable, Sendable {
        case usable(Token)
        case forged
        case expired
        case replayed
        /// It is genuine, and another object issued it: before a restart of the service.
        case issuedElsewhere
    }

    /// Identifies a genuine challenge, so that it can be spent.
    package struct Token: Equatable, BitwiseCopyable, Sendable {
        package let number: UInt64
        /// When it expires, in milliseconds of the service's clock.
        package let expiry: UInt64
    }

    /// What authenticates challenges.
    private let keys: RotatingKeys
    /// Differs between all objects with the same keys.
    package let epoch: UInt64
    private let clock: MonotonicClock
    private let nextNumber = Atomic<UInt64>(0)
    private let spent: Lock<SpentChallenges>
    /// How long a challenge is valid.
    package let validMilliseconds: UInt64

    /// `random` gives the epoch. `replayBytesMax`: memory for spent challenges.
    package init(
        keys: RotatingKeys, validMilliseconds: UInt64 = 120_000, replayBytesMax: Int = 64 << 20,
        clock: MonotonicClock = .system, random: RandomSource = .system
    ) {
        self.keys = keys
        epoch = random.bytes(8).withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
        self.clock = clock
        self.validMilliseconds = validMilliseconds
        spent = Lock(
            SpentChallenges(
                validMilliseconds: validMilliseconds, bytesMax: replayBytesMax, hash: KeyedHash(random: random)))
    }

    /// Makes what authenticates new challenges. Each thread needs its own.
    package func makeTagMaker() -> TagMaker {
        TagMaker(
            keys, length: ChallengeBook.signedBytes,
            tagBytes: ChallengeBook.challengeBytes - ChallengeBook.signedBytes)
    }

    /// Writes `count` new challenges to `bytes`, 48 bytes each, which need not be aligned.
    package func issue(_ count: Int, to bytes: UnsafeMutableRawPointer, with maker: TagMaker) {
        precondition(count >= 0, "the number of challenges is negative")
        let (first, next) = nextNumber.add(UInt64(count), ordering: .relaxed)
        precondition(next >= first, "the numbers of challenges are used up")
        let now = clock.milliseconds
        let size = ChallengeBook.challengeBytes
        for start in stride(from: 0, to: count, by: TagMaker.capacity) {
            let batch = min(count - start, TagMaker.capacity)
            let place = bytes + start * size
            for index in 0..<batch {
                let challenge = place + index * size
                challenge.storeBytes(of: now.littleEndian, as: UInt64.self)
                let number = first + UInt64(start + index)
                challenge.storeBytes(of: number.littleEndian, toByteOffset: 8, as: UInt64.self)
                challenge.storeBytes(of: epoch.littleEndian, toByteOffset: 16, as: UInt64.self)
            }
            maker.tag(batch) { place + $0 * size }
        }
    }

    /// Judges data of a challenge's size at the time `now`, without checking whether it was spent. `isGenuine`: whether
    /// its tag is.
    private func judge(_ data: UnsafeRawPointer, isGenuine: Bool, now: UInt64) -> Standing {
        guard isGenuine else { return .forged }
        func number(at offset: Int) -> UInt64 {
            UInt64(littleEndian: data.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        // The numbers and times of another epoch mean nothing here.
        guard number(at: 16) == epoch else { return .issuedElsewhere }
        let expiry = number(at: 0) + validMilliseconds
        guard now <= expiry else { return .expired }
        return .usable(Token(number: number(at: 8), expiry: expiry))
    }

    /// Makes what judges batches. Each thread needs its own.
    package func makeChecker() -> TagChecker {
        TagChecker(
            keys, length: ChallengeBook.signedBytes,
            tagBytes: ChallengeBook.challengeBytes - ChallengeBook.signedBytes)
    }

    /// Judges `count` candidates, at most the checker's capacity, at the time `now`, and calls `report` with each
    /// result. Does not check whether they were spent. `candidate` returns the address of a candidate's bytes, which
    /// has the size of a challenge.
    package func judge(
        _ count: Int, with checker: TagChecker, now: UInt64, candidate: (Int) -> UnsafeRawPointer,
        report: (Int, Standing) -> Void
    ) {
        let results = checker.check(count, message: candidate)
        for place in 0..<count { report(place, judge(candidate(place), isGenuine: results[place], now: now)) }
    }

    /// Judges `data` as a challenge of this book. When several threads judge copies of a challenge, all results may be
    /// usable; then `spend` accepts only one of them.
    package func standing(of data: UnsafeRawBufferPointer) -> Standing {
        guard data.count == ChallengeBook.challengeBytes, let start = data.baseAddress else { return .forged }
        let isGenuine = keys.isGenuine(
            UnsafeRawBufferPointer(rebasing: data[..<ChallengeBook.signedBytes]),
            tag: UnsafeRawBufferPointer(rebasing: data[ChallengeBook.signedBytes...]))
        let standing = judge(start, isGenuine: isGenuine, now: clock.milliseconds)
        guard case .usable(let token) = standing else { return standing }
        return isSpent(token) ? .replayed : standing
    }

    /// The time for judging challenges.
    package var now: UInt64 { clock.milliseconds }

    /// Whether the challenge is already spent.
    package func isSpent(_ token: Token) -> Bool {
        withMemory { $0.isSpent(token) }
    }

    /// Spends the challenge. Of all callers with the same challenge, exactly one gets `spent`.
    package func spend(_ token: Token, by holder: MemoryHolder) -> SpentChallenges.Spending {
        withMemory { $0.spend(token, by: holder) }
    }

    /// Calls `body` with the memory of spent challenges, under its lock. The memory knows every challenge that has not
    /// expired at its time, which is that of this call.
    package func withMemory<R>(_ body: (inout SpentChallenges) -> R) -> R {
        // What has expired is freed when the lock is released.
        var expired: [SpentChallenges.Generation] = []
        defer { withExtendedLifetime(expired) {} }
        return spent.withLock { memory in
            expired = memory.advance(to: clock.milliseconds)
            return body(&memory)
        }
    }

    /// Number of challenges issued since the start, and bytes of memory for spent ones.
    package var statistics: (issued: UInt64, replayBytes: Int) {
        (nextNumber.load(ordering: .relaxed), spent.withLock { $0.byteCount })
    }
}
