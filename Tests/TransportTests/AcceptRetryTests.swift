import Core
import Foundation
import Platform
import TestSupport
import Testing
import Transport

/// A poller in whose clock's time whatever is watched is ready. The time passes while one of its descriptors, a
/// listener, is not watched.
private final class ReadyPoller: Poller {
    private let milliseconds: Shared<UInt64>
    private let descriptor: CInt
    private var watched: Set<CInt> = []
    /// How often the listener was watched anew.
    private(set) var looks = 0

    init(_ descriptor: CInt, milliseconds: Shared<UInt64>) {
        (self.descriptor, self.milliseconds) = (descriptor, milliseconds)
    }

    func watch(_ descriptor: CInt, for interest: Interest, isNew: Bool) {
        if watched.insert(descriptor).inserted, descriptor == self.descriptor { looks += 1 }
    }

    func forget(_ descriptor: CInt) {
        watched.remove(descriptor)
    }

    func wait(milliseconds: CInt, into ready: inout [Readiness]) {
        ready = watched.map { Readiness(descriptor: $0, interest: .reading) }
        if !watched.contains(descriptor) { self.milliseconds.with { $0 += UInt64(max(0, milliseconds)) } }
    }
}

@Suite struct AcceptRetryTests {
    @Test("A listener that finds no free descriptor looks again after 20 ms, and says so once a second")
    func paused() throws {
        let milliseconds = Shared<UInt64>(5000)
        let clock = MonotonicClock { milliseconds.value }
        let listener = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        let poller = ReadyPoller(listener.descriptor, milliseconds: milliseconds)
        let loop = try EventLoop(
            memory: MemoryBudget(bytesMax: 1 << 26), timeouts: EventLoop.Timeouts(idle: 1_000_000, stall: 1_000_000),
            clock: clock, poller: poller, isDriven: true)
        loop.start(name: "driven")
        let (accepted, refusals) = (Shared(0), Shared(0))
        // More descriptors are to stay free than there can be.
        loop.listen(on: listener.descriptor, keepingDescriptors: .max / 2) { _ in
            accepted.increment()
        } refuse: { _ in
            refusals.increment()
        }
        // The loop knows of the listener after a second.
        while milliseconds.value < 8000 { loop.turn() }
        #expect(accepted.value == 0)
        #expect((99...101).contains(poller.looks), "\(poller.looks)")
        #expect(refusals.value == 2, "\(refusals.value)")
        loop.stop()
    }
}
