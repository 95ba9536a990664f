import Core
import Hashing
import Synchronization

/// The challenges of a request that the pool makes.
///
/// Sendable without the compiler's proof: `next` is used only under the pool's lock. Each worker writes only the
/// challenges of the range that it took. Nobody reads them before the last range is done.
package final class ChallengeRequest: @unchecked Sendable {
    package let count: Int
    /// The challenges one after the other; valid as long as this request.
    package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(memory.bytes) }

    /// The first challenge that no worker has taken yet.
    private var next = 0
    private let memory: ScratchBuffer<UInt8>
    private let unfinished: Atomic<Int>
    private let beginning: @Sendable () -> Void
    private let completion: @Sendable (ChallengeRequest) -> Void

    /// `count`: at least one. `beginning` is called when a worker has taken some of them, `completion` once, on the
    /// worker that finished last.
    package init(
        count: Int, beginning: @escaping @Sendable () -> Void = {},
        completion: @escaping @Sendable (ChallengeRequest) -> Void
    ) {
        precondition(count > 0, "a request has no challenges")
        self.count = count
        self.beginning = beginning
        self.completion = completion
        unfinished = Atomic(count)
        memory = ScratchBuffer(uninitializedCount: count * ChallengeBook.challengeBytes)
    }

    /// The items of waiting work that `count` challenges are.
    static func items(_ count: Int) -> Int {
        (count + Limits.challengesPerItem - 1) / Limits.challengesPerItem
    }

    /// Whether a worker has taken the last challenge.
    var isTaken: Bool { next == count }

    /// Takes the challenges of one turn, which are the last ones or a whole number of items.
    func take() -> Range<Int> {
        let range = next..<min(next + Limits.challengesPerTurn, count)
        precondition(!range.isEmpty, "a request waits although all of its challenges were taken")
        next = range.upperBound
        return range
    }

    /// Makes the challenges of a range that was taken. The call that makes the last ones calls `completion`.
    func make(_ range: Range<Int>, of book: ChallengeBook, with maker: TagMaker) {
        beginning()
        book.issue(
            range.count,
            to: UnsafeMutableRawPointer(memory.baseAddress) + range.lowerBound * ChallengeBook.challengeBytes,
            with: maker)
        let left = unfinished.subtract(range.count, ordering: .acquiringAndReleasing).newValue
        precondition(left >= 0, "a challenge was made twice")
        if left == 0 { completion(self) }
    }
}
