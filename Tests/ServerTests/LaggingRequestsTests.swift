import Core
import Synchronization
import Testing

@testable import Server

@Suite("Requests that lack a change")
struct LaggingRequestsTests {
    private let owner = Holder.address(UInt32(1))

    @Test("A request is tried again when its change was applied, and not before")
    func progress() {
        let lagging = LaggingRequests(clock: .system)
        let tries = Atomic<Int>(0)
        let isKept = lagging.keep(of: owner, lacking: .change(5), .init()) { tries.add(1, ordering: .relaxed) }
        #expect(isKept)
        lagging.progress(to: 4)
        #expect(tries.load(ordering: .relaxed) == 0)
        lagging.progress(to: 5)
        lagging.progress(to: 6)
        #expect(tries.load(ordering: .relaxed) == 1)
    }

    @Test("Without a sequence a request is tried again after any change")
    func anyProgress() {
        let lagging = LaggingRequests(clock: .system)
        let tries = Atomic<Int>(0)
        let isKept = lagging.keep(of: owner, lacking: .someChange, .init()) { tries.add(1, ordering: .relaxed) }
        #expect(isKept)
        lagging.progress(to: 1)
        #expect(tries.load(ordering: .relaxed) == 1)
    }

    @Test("A change that came between the look and the waiting is tried at once; a storage that lost it, only once")
    func between() {
        let lagging = LaggingRequests(clock: .system)
        lagging.progress(to: 7)
        let patience = LaggingRequests.Patience()
        let tries = Atomic<Int>(0)
        let isKeptAgain = Atomic<Bool>(true)
        let isKept = lagging.keep(of: owner, lacking: .change(7), patience) {
            guard tries.add(1, ordering: .relaxed).newValue == 1 else { return }
            let isKept = lagging.keep(of: owner, lacking: .change(7), patience) { tries.add(1, ordering: .relaxed) }
            isKeptAgain.store(isKept, ordering: .relaxed)
        }
        #expect(isKept)
        #expect(tries.load(ordering: .relaxed) == 1 && !isKeptAgain.load(ordering: .relaxed))
    }

    @Test("One more than an owner may have waiting is not kept")
    func full() {
        let lagging = LaggingRequests(clock: .system)
        var kept = 0
        while kept <= Limits.laggingRequestsMax, lagging.keep(of: owner, lacking: .change(1), .init(), retry: {}) {
            kept += 1
        }
        #expect(kept > 0 && kept <= Limits.laggingRequestsMax)
        lagging.progress(to: 1)
        let isKept = lagging.keep(of: owner, lacking: .change(2), .init()) {}
        #expect(isKept)
    }
}
