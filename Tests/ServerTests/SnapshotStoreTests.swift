import Core
import Dispatch
import Foundation
import Hashing
import RootSets
import TestSupport
import Testing
import Wire

@testable import Server

/// Snapshots for other services, without a cluster.
@Suite("Snapshots that are made")
struct SnapshotStoreTests {
    /// A store whose snapshots are made when a test says so, and whose time goes on when a test says so.
    private final class Store: Sendable {
        let time = Shared<UInt64>(1_000_000)
        /// How often a snapshot was begun.
        let begun = Shared(0)
        /// What the next one becomes, once it is signaled.
        let result = Shared<Result<Int, ServiceError>>(.success(3))
        let go = DispatchSemaphore(value: 0)
        private let tick = Shared<Timers.Body?>(nil)
        private let scratch = ScratchDirectory()
        private let sets: RootSets
        private let snapshots: SnapshotStore
        private let key = MessageAuthenticator(key: [UInt8](repeating: 1, count: 32))

        init() throws {
            sets = try RootSets(RootSets.Configuration(directory: scratch.path + "/data", sizeLimitBytes: 1 << 24))
            let timers = Timers { _, _ in
            } repeated: { [tick] _, _, body in
                tick.with { $0 = body }
                return RepeatingTimer { _ in }
            }
            snapshots = SnapshotStore(
                sets, directory: scratch.path, keys: RotatingKeys(KeyPair(current: key)), message: [7],
                clock: MonotonicClock { [time] in time.value }, timers: timers, log: .none
            ) { [begun, go, result] file throws(ServiceError) in
                begun.with { $0 += 1 }
                go.wait()
                let count = try result.value.get()
                _ = [UInt8](repeating: 5, count: count).withUnsafeBytes { write(file, $0.baseAddress, count) }
                return UInt64(count)
            }
        }

        /// Asks for a piece. The answer comes later.
        func ask(_ identifier: UInt64 = 0) -> Shared<Result<SnapshotPiece, ServiceError>?> {
            let answer = Shared<Result<SnapshotPiece, ServiceError>?>(nil)
            let token = [UInt8(7)].withUnsafeBytes { key.tag(of: $0).bytes }
            snapshots.read(
                SnapshotRequest(token: token, identifier: identifier, offset: 0), of: .service
            ) { result in
                answer.with { $0 = result }
            }
            return answer
        }

        /// The time goes on, and what is due happens.
        func pass(_ milliseconds: UInt64) {
            time.with { $0 += milliseconds }
            tick.value?()
        }
    }

    @Test("Who waits for a snapshot that takes long is told to ask again, and gets the one that was made meanwhile")
    func slow() throws {
        let store = try Store()
        let first = store.ask()
        #expect(becomesTrue { store.begun.value == 1 })
        store.pass(Limits.snapshotWaitMilliseconds - 1)
        let second = store.ask()
        store.pass(1)
        #expect(becomesTrue { first.value?.failure?.code == .busy })
        #expect(second.value == nil)
        store.go.signal()
        #expect(becomesTrue { second.value != nil })
        let piece = try #require(try second.value?.get())
        #expect(piece.bytes == [5, 5, 5] && piece.size == 3 && store.begun.value == 1)
        let third = store.ask()
        #expect(becomesTrue { third.value != nil })
        #expect(try third.value?.get().identifier == piece.identifier && store.begun.value == 1)
    }

    @Test("A peer alone may wait with half of all places, and its places come back with the answers")
    func places() throws {
        let store = try Store()
        let share = Limits.snapshotReadersMax / 2
        for _ in 0..<2 {
            let waiting = (0..<share).map { _ in store.ask() }
            let refused = store.ask()
            #expect(refused.value?.failure?.code == .busy && refused.value?.failure?.retryAfter == nil)
            store.result.with { $0 = .failure(ServiceError(.storageFull, "no room")) }
            #expect(becomesTrue { store.begun.value > 0 })
            store.go.signal()
            #expect(becomesTrue { waiting.allSatisfy { $0.value?.failure?.code == .storageFull } })
            store.begun.with { $0 = 0 }
        }
    }

    @Test("Who waits for a snapshot that can't be made is told why, and the next one is made")
    func failing() throws {
        let store = try Store()
        store.result.with { $0 = .failure(ServiceError(.storageFull, "no room")) }
        let answers = [store.ask(), store.ask()]
        store.go.signal()
        #expect(becomesTrue { answers.allSatisfy { $0.value?.failure?.code == .storageFull } })
        #expect(store.begun.value == 1)
        store.result.with { $0 = .success(2) }
        let next = store.ask()
        store.go.signal()
        #expect(becomesTrue { next.value != nil })
        #expect(try next.value?.get().size == 2 && store.begun.value == 2)
    }

    @Test("A snapshot stays for a minute after it was read, and longer the longer it takes to restore it")
    func idle() throws {
        for (size, milliseconds) in [(3, 60_000), (5 << 20, 60_640)] as [(Int, UInt64)] {
            let store = try Store()
            store.result.with { $0 = .success(size) }
            let first = store.ask()
            store.go.signal()
            #expect(becomesTrue { first.value != nil })
            let piece = try #require(try first.value?.get())
            store.pass(milliseconds - 1)
            let late = store.ask(piece.identifier)
            #expect(becomesTrue { late.value != nil })
            #expect(try late.value?.get().size == UInt64(size), "\(size)")
            store.pass(milliseconds)
            let later = store.ask(piece.identifier)
            #expect(becomesTrue { later.value?.failure?.code == .busy }, "\(size)")
        }
    }
}

extension Result {
    fileprivate var failure: Failure? {
        guard case .failure(let failure) = self else { return nil }
        return failure
    }
}
