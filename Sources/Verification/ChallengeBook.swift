package import Core
package import Hashing
import Synchronization

/// Issues challenges, recognizes its own, and remembers which were spent.
///
/// Issuing keeps no record. A challenge is 48 bytes:
///
///     issued at (8, milliseconds of the service's clock) | number (8) | random (8) | tag (24)
///
/// The tag is HMAC-SHA256 of the 24 bytes before it under a key that lives
/// as long as this object, cut to 24 bytes. So none survives a restart.
///
/// The numbers count up, so that the memory of spent challenges takes one bit for each: 65,536 of them share a segment
/// of 8 KiB. When a new segment begins, those are dropped whose spent challenges have all expired. When the memory is
/// full it refuses to spend; it never forgets a challenge that has not expired.
package final class ChallengeBook: Sendable {
    /// Bytes of a challenge.
    package static let challengeBytes = 48
    private static let signedBytes = 24
    fileprivate static let segmentBits: UInt64 = 1 << 16

    /// What a challenge is worth right now.
    package enum Standing: Equatable, BitwiseCopyable, Sendable {
        case usable(Token)
        case forged
        case expired
        case replayed
    }

    /// A genuine challenge, for spending it.
    package struct Token: Equatable, BitwiseCopyable, Sendable {
        package let number: UInt64
        /// When it stops being valid, in milliseconds of the service's clock.
        package let expiry: UInt64
    }

    package enum Spending: Sendable {
        case spent
        case replayed
        /// It expired since it was judged: what was spent may be forgotten by now.
        case expired
        case memoryFull
    }

    fileprivate struct Segment {
        var bits = [UInt64](repeating: 0, count: Int(ChallengeBook.segmentBits / 64))
        var expiry: UInt64 = 0

        mutating func mark(word: Int, mask: UInt64, _ expiry: UInt64) -> Spending {
            assert(mask.nonzeroBitCount == 1, "one challenge is spent at a time")
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

    /// `replayBytesMax`: memory for spent challenges, in steps of 8 KiB and at least one.
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
        precondition(count >= 0, "no negative number of challenges is issued")
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
        precondition(bytes.count == end, "a challenge has not \(ChallengeBook.challengeBytes) bytes")
    }

    /// What data of a challenge's size is worth at the time `now`, without looking whether it was spent. `tag`: the
    /// HMAC of its first part.
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

    /// For `judge`ing batches; one for each thread.
    package func makeAuthenticator() -> BatchAuthenticator {
        BatchAuthenticator(authenticator, length: ChallengeBook.signedBytes)
    }

    /// Reports what each of `count` candidates, at most the authenticator's capacity, is worth at the time `now`,
    /// without looking whether it was spent. `candidate` returns the address of its bytes, as many as a challenge has.
    package func judge(
        _ count: Int, with authenticator: BatchAuthenticator, now: UInt64, candidate: (Int) -> UnsafeRawPointer,
        report: (Int, Standing) -> Void
    ) {
        let tags = authenticator.tags(of: count, message: candidate)
        for place in 0..<count { report(place, judge(candidate(place), tag: tags[place], now: now)) }
    }

    /// What `data` is worth as a challenge of this book. When copies of it are judged at the same time all may be usable;
    /// `spend` accepts one of them.
    package func standing(of data: UnsafeRawBufferPointer) -> Standing {
        guard data.count == ChallengeBook.challengeBytes, let start = data.baseAddress else { return .forged }
        let tag = authenticator.tag(of: UnsafeRawBufferPointer(rebasing: data[..<ChallengeBook.signedBytes]))
        let standing = judge(start, tag: tag, now: clock.milliseconds)
        guard case .usable(let token) = standing else { return standing }
        return isSpent(token) ? .replayed : standing
    }

    /// The time that challenges are judged by.
    package var now: UInt64 { clock.milliseconds }

    /// Whether the challenge was spent by now.
    package func isSpent(_ token: Token) -> Bool {
        withMemory { $0.isSpent(token) }
    }

    /// Spends the challenge: of all callers with the same one, exactly one gets `spent`.
    package func spend(_ token: Token) -> Spending {
        withMemory { $0.spend(token) }
    }

    /// The memory of spent challenges, under its lock for a batch.
    package struct Memory {
        fileprivate var spent: [UInt64: Segment] = [:]
        fileprivate var segmentsMax = 1
        /// The time of this batch, taken under the lock: a challenge that has not expired at this time has not been
        /// forgotten.
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
                // Once for each 65,536 challenges, so that the memory grows with the valid challenges and not to its
                // limit.
                for (place, segment) in spent where segment.expiry < now { spent[place] = nil }
                guard spent.count < segmentsMax else { return .memoryFull }
            }
            let bit = Int(token.number % ChallengeBook.segmentBits)
            let mask: UInt64 = 1 << UInt64(bit % 64)
            let spending = spent[place, default: Segment()].mark(word: bit / 64, mask: mask, token.expiry)
            precondition(spent.count <= segmentsMax, "the memory of spent challenges is over its limit")
            assert(isSpent(token), "a challenge was spent and is not remembered")
            return spending
        }
    }

    /// Calls `body` with the memory of spent challenges, under its lock.
    package func withMemory<R>(_ body: (inout Memory) -> R) -> R {
        memory.withLock { memory in
            // Never earlier than before: what was forgotten has expired for all later callers too.
            memory.now = max(memory.now, clock.milliseconds)
            return body(&memory)
        }
    }

    /// Challenges issued since the start, and bytes of memory for spent ones.
    package var statistics: (issued: UInt64, replayBytes: Int) {
        (
            nextNumber.load(ordering: .relaxed),
            memory.withLock { $0.spent.count } * Int(ChallengeBook.segmentBits / 8)
        )
    }
}
