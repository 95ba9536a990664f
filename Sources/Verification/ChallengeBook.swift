package import Core
package import Hashing
import Synchronization

/// Issues challenges, recognizes those that it issued, and remembers which were spent.
///
/// Issued challenges are not stored. A challenge has 48 bytes:
///
///     issued at (8, milliseconds of the service's clock) | number (8) | random (8) | tag (24)
///
/// The tag is the first 24 bytes of an HMAC-SHA256 over the 24 bytes before it. Its key lives as long as this object,
/// so no challenge survives a restart.
///
/// Numbers are assigned in ascending order. So the memory of spent challenges needs one bit for each number: a segment
/// of 8 KiB holds 65,536 of them. When a new segment begins, those segments are freed whose spent challenges have all
/// expired. When the memory is full, `spend` refuses. A challenge that has not expired is never forgotten.
package final class ChallengeBook: Sendable {
    /// Number of bytes in a challenge.
    package static let challengeBytes = 48
    private static let signedBytes = 24
    fileprivate static let segmentBits: UInt64 = 1 << 16

    /// Whether a challenge can be spent now, or why it can't.
    package enum Standing: Equatable, BitwiseCopyable, Sendable {
        case usable(Token)
        case forged
        case expired
        case replayed
    }

    /// Identifies a genuine challenge, so that it can be spent.
    package struct Token: Equatable, BitwiseCopyable, Sendable {
        package let number: UInt64
        /// When it expires, in milliseconds of the service's clock.
        package let expiry: UInt64
    }

    package enum Spending: Sendable {
        case spent
        case replayed
        /// The challenge expired after it was judged. The memory may already have forgotten whether it was spent.
        case expired
        case memoryFull
    }

    fileprivate struct Segment {
        var bits = [UInt64](repeating: 0, count: Int(ChallengeBook.segmentBits / 64))
        var expiry: UInt64 = 0

        mutating func mark(word: Int, mask: UInt64, _ expiry: UInt64) -> Spending {
            assert(mask.nonzeroBitCount == 1, "not exactly one challenge is spent")
            guard bits[word] & mask == 0 else { return .replayed }
            bits[word] |= mask
            self.expiry = max(self.expiry, expiry)
            return .spent
        }
    }

    private let authenticator: MessageAuthenticator
    private let clock: MonotonicClock
    private let random: RandomSource
    private let nextNumber = Atomic<UInt64>(0)
    private let memory = Mutex(Memory())
    /// How long a challenge is valid.
    package let validMilliseconds: UInt64

    /// `replayBytesMax`: memory for spent challenges. It is allocated in steps of 8 KiB, and at least one.
    package init(
        validMilliseconds: UInt64 = 120_000, replayBytesMax: Int = 64 << 20, clock: MonotonicClock = .system,
        random: RandomSource = .system
    ) {
        authenticator = MessageAuthenticator(key: random.bytes(32))
        self.clock = clock
        self.random = random
        self.validMilliseconds = validMilliseconds
        memory.withLock { $0.segmentsMax = max(1, replayBytesMax / Int(ChallengeBook.segmentBits / 8)) }
    }

    /// Appends `count` new challenges, 48 bytes each.
    package func issue(_ count: Int, into bytes: inout [UInt8]) {
        precondition(count >= 0, "the number of challenges is negative")
        let (first, next) = nextNumber.add(UInt64(count), ordering: .relaxed)
        precondition(next >= first, "the numbers of challenges are used up")
        let end = bytes.count + count * ChallengeBook.challengeBytes
        let now = clock.milliseconds
        let salts = random.bytes(8 * count)
        bytes.reserveCapacity(bytes.count + count * ChallengeBook.challengeBytes)
        for index in 0..<count {
            let start = bytes.count
            withUnsafeBytes(of: now.littleEndian) { bytes.append(contentsOf: $0) }
            withUnsafeBytes(of: (first + UInt64(index)).littleEndian) { bytes.append(contentsOf: $0) }
            bytes.append(contentsOf: salts[8 * index..<8 * index + 8])
            let tag = bytes.withUnsafeBytes { authenticator.tag(of: UnsafeRawBufferPointer(rebasing: $0[start...])) }
            tag.withUnsafeBytes {
                bytes.append(contentsOf: $0.prefix(ChallengeBook.challengeBytes - ChallengeBook.signedBytes))
            }
        }
        precondition(bytes.count == end, "a challenge does not have \(ChallengeBook.challengeBytes) bytes")
    }

    /// Judges data of a challenge's size at the time `now`, without checking whether it was spent. `tag`: the HMAC of
    /// the part before the tag.
    private func judge(_ data: UnsafeRawPointer, tag: Digest, now: UInt64) -> Standing {
        let isGenuine = tag.withUnsafeBytes { tag in
            guard let expected = tag.baseAddress else { return false }
            return equalInConstantTime(
                data + ChallengeBook.signedBytes, expected,
                count: ChallengeBook.challengeBytes - ChallengeBook.signedBytes)
        }
        guard isGenuine else { return .forged }
        let issued = UInt64(littleEndian: data.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        let number = UInt64(littleEndian: data.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        let expiry = issued + validMilliseconds
        guard now <= expiry else { return .expired }
        return .usable(Token(number: number, expiry: expiry))
    }

    /// Makes an authenticator for judging batches. Each thread needs its own.
    package func makeAuthenticator() -> BatchAuthenticator {
        BatchAuthenticator(authenticator, length: ChallengeBook.signedBytes)
    }

    /// Judges `count` candidates, at most the authenticator's capacity, at the time `now`, and calls `report` with each
    /// result. Does not check whether they were spent. `candidate` returns the address of a candidate's bytes, which
    /// has the size of a challenge.
    package func judge(
        _ count: Int, with authenticator: BatchAuthenticator, now: UInt64, candidate: (Int) -> UnsafeRawPointer,
        report: (Int, Standing) -> Void
    ) {
        let tags = authenticator.tags(of: count, message: candidate)
        for place in 0..<count { report(place, judge(candidate(place), tag: tags[place], now: now)) }
    }

    /// Judges `data` as a challenge of this book. When several threads judge copies of a challenge, all results may be
    /// usable; then `spend` accepts only one of them.
    package func standing(of data: UnsafeRawBufferPointer) -> Standing {
        guard data.count == ChallengeBook.challengeBytes, let start = data.baseAddress else { return .forged }
        let tag = authenticator.tag(of: UnsafeRawBufferPointer(rebasing: data[..<ChallengeBook.signedBytes]))
        let standing = judge(start, tag: tag, now: clock.milliseconds)
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
    package func spend(_ token: Token) -> Spending {
        withMemory { $0.spend(token) }
    }

    /// The memory of spent challenges, while its lock is held.
    package struct Memory {
        fileprivate var spent: [UInt64: Segment] = [:]
        fileprivate var segmentsMax = 1
        /// The time of this batch, read under the lock. The memory still knows every challenge that has not expired at
        /// this time.
        fileprivate var now: UInt64 = 0

        package func isSpent(_ token: Token) -> Bool {
            guard let segment = spent[token.number / ChallengeBook.segmentBits] else { return false }
            let bit = Int(token.number % ChallengeBook.segmentBits)
            return segment.bits[bit / 64] >> UInt64(bit % 64) & 1 == 1
        }

        package mutating func spend(_ token: Token) -> Spending {
            guard now <= token.expiry else { return .expired }
            let place = token.number / ChallengeBook.segmentBits
            if spent[place] == nil {
                // Frees expired segments. This happens once for each 65,536 challenges, so that the memory grows with
                // the valid challenges and not to its limit.
                for (place, segment) in spent where segment.expiry < now { spent[place] = nil }
                guard spent.count < segmentsMax else { return .memoryFull }
            }
            let bit = Int(token.number % ChallengeBook.segmentBits)
            let mask: UInt64 = 1 << UInt64(bit % 64)
            let spending = spent[place, default: Segment()].mark(word: bit / 64, mask: mask, token.expiry)
            precondition(spent.count <= segmentsMax, "the memory of spent challenges is over its limit")
            assert(isSpent(token), "a spent challenge was not remembered")
            return spending
        }
    }

    /// Calls `body` with the memory of spent challenges, under its lock.
    package func withMemory<R>(_ body: (inout Memory) -> R) -> R {
        memory.withLock { memory in
            // The time never goes back: a segment that was freed has also expired for all later callers.
            memory.now = max(memory.now, clock.milliseconds)
            return body(&memory)
        }
    }

    /// Number of challenges issued since the start, and bytes of memory for spent ones.
    package var statistics: (issued: UInt64, replayBytes: Int) {
        (
            nextNumber.load(ordering: .relaxed),
            memory.withLock { $0.spent.count } * Int(ChallengeBook.segmentBits / 8)
        )
    }
}
