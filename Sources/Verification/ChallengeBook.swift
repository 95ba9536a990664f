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
        /// It is genuine, and another object issued it: before a restart of the service.
        case issuedElsewhere
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

    /// What authenticates challenges.
    private let keys: RotatingKeys
    /// Differs between all objects with the same keys.
    private let epoch: UInt64
    private let clock: MonotonicClock
    private let nextNumber = Atomic<UInt64>(0)
    private let memory = Mutex(Memory())
    /// How long a challenge is valid.
    package let validMilliseconds: UInt64

    /// `random` gives the epoch. `replayBytesMax`: memory for spent challenges. It is allocated in steps of 8 KiB, and
    /// at least one.
    package init(
        keys: RotatingKeys, validMilliseconds: UInt64 = 120_000, replayBytesMax: Int = 64 << 20,
        clock: MonotonicClock = .system, random: RandomSource = .system
    ) {
        self.keys = keys
        epoch = random.bytes(8).withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
        self.clock = clock
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
        let authenticator = keys.current
        bytes.reserveCapacity(bytes.count + count * ChallengeBook.challengeBytes)
        for index in 0..<count {
            let start = bytes.count
            withUnsafeBytes(of: now.littleEndian) { bytes.append(contentsOf: $0) }
            withUnsafeBytes(of: (first + UInt64(index)).littleEndian) { bytes.append(contentsOf: $0) }
            withUnsafeBytes(of: epoch.littleEndian) { bytes.append(contentsOf: $0) }
            let tag = bytes.withUnsafeBytes { authenticator.tag(of: UnsafeRawBufferPointer(rebasing: $0[start...])) }
            tag.withUnsafeBytes {
                bytes.append(contentsOf: $0.prefix(ChallengeBook.challengeBytes - ChallengeBook.signedBytes))
            }
        }
        precondition(bytes.count == end, "a challenge does not have \(ChallengeBook.challengeBytes) bytes")
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
