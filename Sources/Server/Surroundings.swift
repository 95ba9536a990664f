package import Core
import Platform
package import RootSets
package import Transport

/// What a service takes from the system besides its clocks and random bytes. A simulation replaces it, so that one
/// thread runs the whole service.
package struct Surroundings: Sendable {
    package var timers = Timers.system
    package var storage = StorageSurroundings()
    /// Makes one of the event loops.
    package var makeLoop: EventLoop.Maker = { memory, timeouts, clock throws(SystemFailure) in
        try EventLoop(memory: memory, timeouts: timeouts, clock: clock)
    }

    package init() {}

    /// The system.
    package static let system = Surroundings()
}
