import Core
import Foundation
import TestSupport

@testable import RootSets

/// A shared log in memory, which fails as a test or a seed says.
final class MemoryLog: SharedLog {
    private struct State {
        var segments: [[UInt8]] = []
        /// Segments before this number have been removed.
        var first: UInt64 = 1
        var random: SeededGenerator
        var failures: Double = 0
        var isSilent = false
        var delay = 0.0
        var now: UInt64 = 0
    }

    private let state: Lock<State>
    private let rings = Lock<[@Sendable () -> Void]>([])
    let stalenessMilliseconds: UInt64 = 5

    /// `failures`: how likely a request is to fail.
    init(failures: Double = 0, seed: UInt64 = runSeed) {
        state = Lock(State(random: SeededGenerator(seed: seed), failures: failures))
    }

    /// Founds the log. Returns what a storage that shares it takes from the system.
    func found(logRetentionBytes: UInt64 = 32 << 20) -> StorageSurroundings {
        let key = (0..<16).map { UInt8($0) }
        let founding = Segment.Founding(hashKey: key, logRetentionBytes: logRetentionBytes)
        let segment = Segment(identifier: 1, after: .zero, .founding(founding)).bytes
        state.withLock { $0.segments = [segment] }
        var surroundings = StorageSurroundings()
        surroundings.random = RandomSource { $0.copyBytes(from: key) }
        return surroundings
    }

    var segments: [[UInt8]] {
        get { state.withLock { $0.segments } }
        set { state.withLock { $0.segments = newValue } }
    }

    /// Whether no request is answered.
    var isSilent: Bool {
        get { state.withLock { $0.isSilent } }
        set { state.withLock { $0.isSilent = newValue } }
    }

    /// Seconds that each request takes.
    var delay: Double {
        get { state.withLock { $0.delay } }
        set { state.withLock { $0.delay = newValue } }
    }

    /// How likely a request is to fail.
    var failures: Double {
        get { state.withLock { $0.failures } }
        set { state.withLock { $0.failures = newValue } }
    }

    /// The clock of the log, one step a request.
    var now: UInt64 { state.withLock { $0.now } }

    func begin(_ follower: SharedFollower) { rings.withLock { $0.append(follower.ring) } }

    /// Tells all storages that there may be something new.
    func ring() {
        for ring in rings.withLock({ $0 }) { ring() }
    }

    func remove(before number: UInt64) {
        state.withLock { $0.first = number }
    }

    func append(_ segment: [UInt8], as number: UInt64, after hash: Digest?) -> SharedAppending {
        usleep(UInt32(delay * 1_000_000))
        return state.withLock { state in
            state.now += 1
            let asOf = state.now
            if state.isSilent { return .failed(reason: "silent", isUnknown: false) }
            let fails = Double.random(in: 0..<1, using: &state.random) < state.failures
            let hasEffect = Bool.random(using: &state.random)
            if fails, !hasEffect { return .failed(reason: "lost on the way", isUnknown: true) }
            let count = UInt64(state.segments.count)
            if number <= count {
                guard number >= state.first else { return .misplaced }
                return .taken(Array(state.segments[Int(number - 1)...].prefix(3)))
            }
            guard number == count + 1, state.segments.last.map({ Segment.hash($0) }) == hash else { return .misplaced }
            state.segments.append(segment)
            return fails ? .failed(reason: "lost on the way back", isUnknown: true) : .appended(asOf: asOf)
        }
    }

    func read(from number: UInt64, after hash: Digest?) -> SharedReading {
        state.withLock { state in
            state.now += 1
            let asOf = state.now
            if state.isSilent || Double.random(in: 0..<1, using: &state.random) < state.failures {
                return .failed(reason: "silent")
            }
            let count = UInt64(state.segments.count)
            guard number <= count else {
                let isEnd = number == count + 1 && state.segments.last.map { Segment.hash($0) } == hash
                return isEnd ? .segments([], hasMore: false, asOf: asOf) : .lost
            }
            guard number >= state.first else { return .removed(first: state.first) }
            let rest = state.segments[Int(number - 1)...]
            return .segments(Array(rest.prefix(5)), hasMore: rest.count > 5, asOf: asOf)
        }
    }
}
