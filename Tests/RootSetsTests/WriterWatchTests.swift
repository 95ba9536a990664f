import Core
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import RootSets

@Suite("The watch over the writer", .serialized)
struct WriterWatchTests {
    private final class Flag: Sendable {
        let isSet = Atomic<Bool>(false)
        func set() { isSet.store(true, ordering: .relaxed) }
        var isOn: Bool { isSet.load(ordering: .relaxed) }
    }

    /// Whether a thread that does `work` again and again is taken for one that loops, within a second or so.
    private func fires(fileBytes: Int = 0, _ work: @escaping @Sendable (WriterWatch) -> Void) -> Bool {
        let watch = WriterWatch(limit: .milliseconds(200))
        let (stop, ended) = (Flag(), Flag())
        Thread {
            watch.bind()
            watch.begin()
            while !stop.isOn { work(watch) }
            ended.set()
        }.start()
        let hasFired = becomesTrue(within: 1.5) { watch.check(fileBytes: fileBytes) }
        stop.set()
        _ = becomesTrue { ended.isOn }
        return hasFired
    }

    @Test("A thread that computes without an end is noticed; one that waits, or proceeds, is not")
    func loops() {
        #expect(fires { _ in })
        #expect(!fires { _ in usleep(10_000) })
        #expect(!fires { $0.proceed() })
        #expect(!fires { $0.end() })
        #expect(!fires(fileBytes: 60 * Limits.writerBytesPerSecond) { _ in })
    }

    @Test("A clock of processor time that jumps is not taken for a loop, and a loop behind the jump is noticed")
    func jumps() {
        let (processor, moment) = (Shared(Duration.zero), Shared<UInt64>(0))
        let watch = WriterWatch(now: { moment.value })
        watch.bind { processor.value }
        watch.begin()
        /// Looks a second later, when so much processor time is said to have been used.
        func look(_ used: Duration) -> Bool {
            moment.with { $0 += 1_000_000_000 }
            processor.with { $0 += used }
            return watch.check()
        }
        // Of each jump one second counts, and time that goes backwards is none.
        for used in [0, 60, 0, -60, 0, 60, -60, 3600] { #expect(!look(.seconds(used))) }
        // Three seconds are counted, and five are the limit.
        #expect(!look(.seconds(1)))
        #expect(look(.seconds(1)))
    }

    @Test("The writer has 5 s, and a second more for each 256 MiB of the data file")
    func allowance() {
        let watch = WriterWatch()
        #expect(watch.limit(fileBytes: 0) == .seconds(5))
        #expect(watch.limit(fileBytes: 256 << 20) == .seconds(6))
        #expect(watch.limit(fileBytes: (256 << 20) - 1) == .seconds(5))
        #expect(watch.limit(fileBytes: 16 << 30) == .seconds(69))
    }

    @Test("The queue hands the size of the data file to the watch: the line with CRITICAL has the larger limit")
    func largeFile() throws {
        let scratch = ScratchDirectory()
        let path = scratch.path + "/data"
        let lines = Lock<[String]>([])
        let health = StorageHealth(log: Log { line in lines.withLock { $0.append("\(line)") } })
        let environment = try StorageEnvironment(
            directory: path, bytesMax: 1 << 30, reserveBytes: 1 << 20, health: health)
        // Holes, behind everything that is in use.
        try #require(truncate(path + "/data.mdb", 257 << 20) == 0)
        let (stop, lost) = (Flag(), Flag())
        let queue = CommitQueue(
            ReadTransactionPool(environment), RootSets.Configuration(directory: path),
            watch: WriterWatch(limit: .milliseconds(300)), onLoss: { lost.set() }
        ) { () throws(ServiceError) in throw ServiceError(.storageFailed, "it is not opened again") }
        queue.start()
        let name = try #require(CollaborationIdentifier("deck"))
        queue.submit(Mutation(.createCollaboration(name, .challenge)), of: .service, isUrgent: false) { _ in
            while !stop.isOn {}
        }
        #expect(becomesTrue(within: 20) { lost.isOn })
        let told = lines.withLock { $0 }
        #expect(told.count { $0.contains("for 1 s or more without an end") } == 1, "\(told)")
        if !lost.isOn { stop.set() }
        queue.close()
        stop.set()
    }

    @Test("When the writer loops, all mutations are answered as damaged, new ones too, and the queue can be closed")
    func queue() throws {
        let scratch = ScratchDirectory()
        let lines = Lock<[String]>([])
        let health = StorageHealth(log: Log { line in lines.withLock { $0.append("\(line)") } })
        let environment = try StorageEnvironment(
            directory: scratch.path + "/data", bytesMax: 1 << 24, reserveBytes: 1 << 20, health: health)
        let (stop, lost) = (Flag(), Flag())
        let queue = CommitQueue(
            ReadTransactionPool(environment), RootSets.Configuration(directory: scratch.path + "/data"),
            watch: WriterWatch(limit: .milliseconds(300)), onLoss: { lost.set() }
        ) { () throws(ServiceError) in throw ServiceError(.storageFailed, "it is not opened again") }
        queue.start()
        let name = try #require(CollaborationIdentifier("deck"))
        let codes = Lock<[ServiceError.Code?]>([])
        func submit() {
            queue.submit(Mutation(.createCollaboration(name, .challenge)), of: .service, isUrgent: false) { result in
                var code: ServiceError.Code?
                if case .failure(let error) = result { code = error.code }
                codes.withLock { $0.append(code) }
            }
        }
        // The writer calls this, so it is the writer that loops.
        queue.submit(Mutation(.createCollaboration(name, .challenge)), of: .service, isUrgent: false) { _ in
            while !stop.isOn {}
        }
        usleep(50_000)
        for _ in 0..<5 { submit() }
        #expect(becomesTrue(within: 20) { codes.withLock { $0.count } == 5 })
        submit()
        #expect(codes.withLock { $0 } == Array(repeating: .storageDamaged, count: 6))
        // It is told of the loss behind the answers.
        #expect(becomesTrue { lost.isOn } && health.hasFailed)
        #expect(lines.withLock { $0.count { $0.contains("CRITICAL") && $0.contains("without an end") } } == 1)
        // A writer that was not given up is waited for.
        if !lost.isOn { stop.set() }
        queue.close()
        stop.set()
    }
}
