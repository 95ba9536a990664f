import Foundation
import Platform

/// Readiness of simulated connections, and of the loop's real pipe for wake-ups. It never waits: it notes for how long
/// the loop would have slept.
final class SimulatedPoller: Poller {
    private unowned let world: SimulatedWorld
    private var watched: [(descriptor: CInt, interest: Interest)] = []
    private var pipe: CInt = -1
    private var dice: Dice
    /// Until when the loop sleeps if nothing becomes ready; `nil`: it does not sleep.
    private(set) var asleepUntil: UInt64?

    init(_ world: SimulatedWorld, number: UInt64) {
        self.world = world
        dice = Dice(world.seed, part: 100 + number)
    }

    func watch(_ descriptor: CInt, for interest: Interest, isNew: Bool) {
        guard descriptor >= SimulatedLink.firstDescriptor else {
            pipe = descriptor
            return
        }
        if let index = watched.firstIndex(where: { $0.descriptor == descriptor }) {
            watched[index].interest = interest
        } else {
            watched.append((descriptor, interest))
        }
    }

    func forget(_ descriptor: CInt) {
        watched.removeAll { $0.descriptor == descriptor }
    }

    func wait(milliseconds: CInt, into ready: inout [Readiness]) {
        ready = watched.compactMap { entry in
            let interest = readiness(entry.descriptor, entry.interest)
            return interest.isEmpty ? nil : Readiness(descriptor: entry.descriptor, interest: interest)
        }
        if isPipeReadable { ready.append(Readiness(descriptor: pipe, interest: .reading)) }
        // The system reports in any order, and what does not fit the next time.
        if ready.count > 1 {
            ready.shuffle(using: &dice)
            if dice.isOne(in: 4) { ready.removeLast(dice.below(ready.count)) }
        }
        asleepUntil = ready.isEmpty && milliseconds > 0 ? world.now + UInt64(milliseconds) : nil
    }

    /// Whether the loop's next turn would find something.
    var isReady: Bool {
        watched.contains { !readiness($0.descriptor, $0.interest).isEmpty } || isPipeReadable
    }

    private func readiness(_ descriptor: CInt, _ interest: Interest) -> Interest {
        guard let link = world.links[descriptor] else { return [] }
        let ready = link.readiness
        var found = ready.intersection(interest)
        if ready.contains(.ended) { found.formUnion([.ended, .reading]) }
        return found
    }

    private var isPipeReadable: Bool {
        var entry = pollfd(fd: pipe, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) > 0
    }
}
