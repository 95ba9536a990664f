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
    private func fires(more: Duration = .zero, _ work: @escaping @Sendable (WriterWatch) -> Void) -> Bool {
        let watch = WriterWatch(limit: .milliseconds(200))
        let (stop, ended) = (Flag(), Flag())
        Thread {
            watch.bind()
            watch.begin()
            while !stop.isOn { work(watch) }
            ended.set()
        }.start()
        let hasFired = becomesTrue(within: 1.5) { watch.check(more: more) }
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
        #expect(!fires(more: .seconds(60)) { _ in })
    }

    @Test("When the writer loops, all mutations are answered as damaged, new ones too, and the queue can be closed")
    func queue() throws {
        let scratch = ScratchDirectory()
        let lines = Mutex<[String]>([])
        let health = StorageHealth { line in lines.withLock { $0.append(line) } }
        let environment = try StorageEnvironment(
            directory: scratch.path + "/data", bytesMax: 1 << 24, reserveBytes: 1 << 20, health: health)
        let (stop, lost) = (Flag(), Flag())
        let queue = CommitQueue(
            ReadTransactionPool(environment), RootSets.Configuration(directory: scratch.path + "/data"),
            watch: WriterWatch(limit: .milliseconds(300)), onLoss: { lost.set() }
        ) { () throws(ServiceError) in throw ServiceError(.storageFailed, "it is not opened again") }
        queue.start()
        let name = try #require(CollaborationIdentifier("deck"))
        let codes = Mutex<[ServiceError.Code?]>([])
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
        #expect(lost.isOn && health.hasFailed)
        #expect(lines.withLock { $0.count { $0.contains("CRITICAL") && $0.contains("without an end") } } == 1)
        // A writer that was not given up is waited for.
        if !lost.isOn { stop.set() }
        queue.close()
        stop.set()
    }
}
