import Core
import Foundation
import RootSets
import TestSupport

/// A service's view of a log. Its clock stands, until it jumps while a request looks at it, or a test moves it.
///
/// The writer of a storage looks at the clock, too, at any time. Its looks are not counted, and never make it jump.
/// Once a second a timer looks: a jump may come early by that.
final class SteeredLog: SharedLog {
    private struct State {
        var now: UInt64 = 1
        /// Looks at the clock by others than the writer.
        var looks = 0
        /// The look at which the clock jumps; `nil`: at none.
        var jump: Int?
        var isSilent = false
        /// Whether the log falls silent behind the next segment, without a word on whether it has that.
        var hidesAppending = false
        /// The thread that alone reads and appends.
        var writer: ObjectIdentifier?
    }

    let stalenessMilliseconds: UInt64 = 100
    private static let hashKey = (0..<16).map { UInt8($0) }
    private let segments: Shared<[[UInt8]]>
    private let state = Lock(State())

    /// A view of a log that was founded.
    init() {
        let founding = Segment.Founding(hashKey: SteeredLog.hashKey, logRetentionBytes: 1 << 20)
        segments = Shared([Segment(identifier: 1, after: .zero, .founding(founding)).bytes])
    }

    /// Another view of the same log, with a clock of its own.
    init(_ other: SteeredLog) { segments = other.segments }

    /// Whether the log answers nothing.
    var isSilent: Bool {
        get { state.withLock { $0.isSilent } }
        set { state.withLock { $0.isSilent = newValue } }
    }

    /// Whether the log falls silent behind the next segment that is appended, without a word on whether it has that.
    var hidesAppending: Bool {
        get { state.withLock { $0.hidesAppending } }
        set { state.withLock { $0.hidesAppending = newValue } }
    }

    func advance(_ milliseconds: UInt64) { state.withLock { $0.now += milliseconds } }

    /// What the service's storage takes from the system.
    var surroundings: StorageSurroundings {
        var surroundings = StorageSurroundings()
        surroundings.random = RandomSource { $0.copyBytes(from: SteeredLog.hashKey) }
        surroundings.sharedLog = self
        return surroundings
    }

    /// Looks at the clock since `begin`.
    var looks: Int { state.withLock { $0.looks } }

    /// Counts looks from now on. At one of them the clock jumps by more than the staleness, and the log falls silent:
    /// `jump`, from 1; `nil`: at none. Before that, the log answers.
    func begin(jumpingAt jump: Int? = nil) {
        state.withLock { ($0.looks, $0.jump, $0.isSilent) = (0, jump, false) }
    }

    var now: UInt64 {
        let thread = ObjectIdentifier(Thread.current)
        return state.withLock { state in
            guard thread != state.writer else { return state.now }
            state.looks += 1
            if state.looks == state.jump {
                state.now += stalenessMilliseconds + 1
                state.isSilent = true
            }
            return state.now
        }
    }

    func append(_ segment: [UInt8], as number: UInt64, after hash: Digest?) -> SharedAppending {
        state.withLock { state in
            guard !state.isSilent else { return .failed(reason: "silent", isUnknown: false) }
            return segments.with { segments in
                guard segments.count < number else { return .taken(Array(segments.dropFirst(Int(number) - 1))) }
                segments.append(segment)
                if state.hidesAppending {
                    (state.hidesAppending, state.isSilent) = (false, true)
                    return .failed(reason: "no answer", isUnknown: true)
                }
                return .appended(asOf: state.now)
            }
        }
    }

    func read(from number: UInt64, after hash: Digest?) -> SharedReading {
        let thread = ObjectIdentifier(Thread.current)
        return state.withLock { state in
            state.writer = thread
            guard !state.isSilent else { return .failed(reason: "silent") }
            return .segments(Array(segments.value.dropFirst(Int(number) - 1)), hasMore: false, asOf: state.now)
        }
    }
}
