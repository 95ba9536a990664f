import Core
import Dispatch
import Foundation
@testable import RootSets
import TestSupport
import Testing

@Suite("Invariants of the storage that are asserted")
struct StorageInvariantsTests {
    @Test("A bucket directory of unsorted buckets, or of two with one bound, ends the process")
    func unsortedDirectory() async {
        await #expect(processExitsWith: .failure) {
            _ = BucketDirectory([(7, noBytes), (6, noBytes)], version: .initial)
        }
        await #expect(processExitsWith: .failure) {
            _ = BucketDirectory([(7, noBytes), (7, noBytes)], version: .initial)
        }
        await #expect(processExitsWith: .success) {
            #expect(BucketDirectory([(6, noBytes), (7, noBytes)], version: .initial) != nil)
        }
    }

    @Test("A record with unsorted roots, or with another number of roots than it says, ends the process")
    func unsortedRecord() async {
        await #expect(processExitsWith: .failure) {
            let name = try #require(CollaborationIdentifier("deck"))
            _ = PackedRecord.encode(name, .challenge, rootCount: 2, roots: [ones, .zero])
        }
        await #expect(processExitsWith: .failure) {
            let name = try #require(CollaborationIdentifier("deck"))
            _ = PackedRecord.encode(name, .challenge, rootCount: 1, roots: [.zero, ones])
        }
        await #expect(processExitsWith: .success) {
            let name = try #require(CollaborationIdentifier("deck"))
            _ = PackedRecord.encode(name, .challenge, rootCount: 2, roots: [.zero, ones])
        }
    }

    @Test("A write transaction that is used by another thread, or after its commit, ends the process")
    func writeTransaction() async {
        await #expect(processExitsWith: .failure) {
            let scratch = ScratchDirectory()
            let environment = try StorageEnvironment(
                directory: scratch.path + "/data", bytesMax: 1 << 24, reserveBytes: 0)
            nonisolated(unsafe) let transaction = try WriteTransaction(in: environment)
            onThreads(1) { _ in _ = try? transaction.put(environment.meta, [1], [2], version: 0) }
        }
        await #expect(processExitsWith: .failure) {
            let scratch = ScratchDirectory()
            let environment = try StorageEnvironment(
                directory: scratch.path + "/data", bytesMax: 1 << 24, reserveBytes: 0)
            let transaction = try WriteTransaction(in: environment)
            try transaction.put(environment.meta, [1], [2], version: 0)
            try transaction.commit()
            _ = try? transaction.put(environment.meta, [1], [3], version: 0)
        }
    }

    @Test("A read transaction that two readers use ends the process")
    func readTransaction() async {
        await #expect(processExitsWith: .failure) {
            let scratch = ScratchDirectory()
            let environment = try StorageEnvironment(
                directory: scratch.path + "/data", bytesMax: 1 << 24, reserveBytes: 0)
            let transaction = try ReadTransaction(environment)
            try transaction.renew()
            // An error of LMDB's would end the process too: it is not what is tested.
            try? transaction.renew()
        }
    }

    @Test("A queue that is started twice, or closed before it was started, ends the process")
    func queue() async {
        await #expect(processExitsWith: .failure) {
            let scratch = ScratchDirectory()
            let queue = try newQueue(in: scratch)
            queue.start()
            queue.start()
        }
        await #expect(processExitsWith: .failure) {
            let scratch = ScratchDirectory()
            try newQueue(in: scratch).close()
        }
    }

    @Test("Root sets whose last reference is released by a completion end by themselves")
    func lastReference() throws {
        let scratch = ScratchDirectory()
        let directory = scratch.path + "/data"
        let name = try #require(CollaborationIdentifier("decks"))
        let (mayRelease, isReleased) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let last = Lock<RootSets?>(nil)
        do {
            let sets = try RootSets(RootSets.Configuration(directory: directory))
            last.withLock { $0 = sets }
            sets.submit(Mutation(.createCollaboration(name, .challenge))) { _ in
                mayRelease.wait()
                last.withLock { $0 = nil }
                isReleased.signal()
            }
        }
        mayRelease.signal()
        isReleased.wait()
        // The lock on the directory is free when the writer's thread has ended.
        let sets = try RootSets(RootSets.Configuration(directory: directory))
        #expect(try sets.read { snapshot throws(ServiceError) in try snapshot.summary(of: name) } != nil)
        sets.close()
    }

    @Test("Root sets whose last reference is in a completion that was called end by themselves")
    func heldByCompletion() async {
        await #expect(processExitsWith: .success) {
            let scratch = ScratchDirectory()
            let directory = scratch.path + "/data"
            let name = try #require(CollaborationIdentifier("decks"))
            for _ in 0..<20 {
                let isCalled = DispatchSemaphore(value: 0)
                do {
                    let sets = try RootSets(RootSets.Configuration(directory: directory))
                    sets.submit(Mutation(.createCollaboration(name, .challenge))) { [sets] _ in
                        withExtendedLifetime(sets) { _ = isCalled.signal() }
                    }
                }
                isCalled.wait()
            }
        }
    }

    @Test("Counts that are taken below zero are damage, not a crash")
    func counts() throws {
        var totals = Totals()
        #expect(throws: StorageFailure.self) { try totals.removeRoots(1) }
        #expect(throws: StorageFailure.self) { try totals.removeCollaboration() }
        (totals.roots, totals.collaborations) = (3, 1)
        try totals.removeRoots(2)
        try totals.removeCollaboration()
        #expect(totals.roots == 1 && totals.collaborations == 0)
    }

    @Test("A storage that can't be opened leaves no descriptor open and no lock held")
    func failedOpening() async {
        await #expect(processExitsWith: .success) {
            let scratch = ScratchDirectory()
            let directory = scratch.path + "/data"
            let configuration = RootSets.Configuration(directory: directory, reserveBytes: 1 << 20)
            let first = lowestFreeDescriptor()
            try RootSets(configuration).close()
            // The writer's thread lets go of the storage a moment after it said that it has ended. A lower descriptor
            // is free when something else was closed meanwhile; ten openings that leave one open are found anyway.
            func becomesFree() -> Bool { becomesTrue { lowestFreeDescriptor() <= first } }
            #expect(becomesFree())
            let whole = try Data(contentsOf: URL(fileURLWithPath: directory + "/data.mdb"))
            let damages = [Data(), whole.prefix(whole.count / 2), Data(repeating: 0xa5, count: whole.count)]
            for damaged in damages {
                try damaged.write(to: URL(fileURLWithPath: directory + "/data.mdb"))
                for _ in 0..<10 {
                    // A lock that is still held would show as `storageInUse`.
                    #expect(throws: ServiceError.self) { try RootSets(configuration) }
                    let code = #expect(throws: ServiceError.self) { try RootSets(configuration) }?.code
                    #expect(code == .storageDamaged)
                }
            }
            #expect(becomesFree())
            try whole.write(to: URL(fileURLWithPath: directory + "/data.mdb"))
            try RootSets(configuration).close()
        }
    }
}

private let ones = Digest([UInt8](repeating: 0xff, count: 32)) ?? .zero
private var noBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

private func newQueue(in scratch: ScratchDirectory) throws -> CommitQueue {
    let environment = try StorageEnvironment(
        directory: scratch.path + "/data", bytesMax: 1 << 24, reserveBytes: 0)
    return CommitQueue(environment, RootSets.Configuration(directory: scratch.path + "/data"))
}

/// The descriptor that the next file gets: the lowest that is free.
private func lowestFreeDescriptor() -> CInt {
    let descriptor = open("/dev/null", O_RDONLY)
    close(descriptor)
    return descriptor
}
