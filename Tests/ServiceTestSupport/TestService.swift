package import Core
package import Foundation
package import RootgateClient
package import Server
package import TestSupport

/// A wall clock that a test moves.
package final class TestCalendar: Sendable {
    private let milliseconds: Lock<Int>

    package init(milliseconds: Int = 1_800_000_000_000) {
        self.milliseconds = Lock(milliseconds)
    }

    package var now: Date { Date(timeIntervalSince1970: Double(milliseconds.withLock { $0 }) / 1000) }

    package func advance(seconds: Int) {
        milliseconds.withLock { $0 += seconds * 1000 }
    }
}

/// A service on a free loopback port with storage of its own, shut down with this object.
package final class TestService: Sendable {
    /// What universal links begin with, unless a test says otherwise.
    package static let linkBase = "https://example.com/collab"

    package let directory: ScratchDirectory
    /// Where the service listens, also after it was started again.
    package let endpoint: Endpoint
    private let configuration: Configuration
    private let clock: MonotonicClock
    private let wallClock: @Sendable () -> Date
    private let running: Lock<Service?>

    /// `calendar`: the service's wall clock instead of the system's. `adjust` changes the configuration, which has two
    /// workers, a link base, and five seconds for a shutdown. `waiting`: gets what the start says that it waits for.
    package init(
        directory: ScratchDirectory = ScratchDirectory(), calendar: TestCalendar? = nil,
        clock: MonotonicClock = .system, surroundings: Surroundings = .system,
        waiting: Shared<[String]>? = nil, _ adjust: (inout Configuration) -> Void = { _ in }
    ) throws(StartupFailure) {
        self.directory = directory
        self.clock = clock
        let wallClock: @Sendable () -> Date = { calendar?.now ?? Date() }
        self.wallClock = wallClock
        var configuration = Configuration(dataDirectory: directory.path + "/data", workers: 2)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        configuration.times.drain = 5
        configuration.linkBase = TestService.linkBase
        adjust(&configuration)
        let service = try Service(
            configuration, clock: clock, wallClock: wallClock, surroundings: surroundings,
            onWait: StartExtension { _, status in waiting?.with { $0.append(status) } })
        endpoint = service.endpoints[0]
        configuration.endpoints = [endpoint]
        self.configuration = configuration
        running = Lock(service)
    }

    deinit {
        stop()
    }

    /// The service that runs now.
    package var service: Service {
        guard let service = running.withLock({ $0 }) else { preconditionFailure("the service was stopped") }
        return service
    }

    package func client(timeout: Duration = patience) throws -> RootgateClient {
        try RootgateClient(endpoint, configuration: .init(requestTimeout: timeout))
    }

    /// Shuts the service down, as SIGTERM does; harmless when it was stopped before.
    package func stop() {
        let stopped = running.withLock { service in
            defer { service = nil }
            return service
        }
        _ = stopped?.shutDown()
    }

    /// Starts a service again on the same storage and port. The storage is free when the last of the old service's
    /// threads has let go of it, and another test's connection may have taken the port for a while: both are waited
    /// for up to ten seconds.
    package func start() throws {
        let deadline = ContinuousClock.now + .seconds(10)
        while true {
            do throws(StartupFailure) {
                let service = try Service(configuration, clock: clock, wallClock: wallClock)
                return running.withLock { $0 = service }
            } catch {
                guard error.isInUse, ContinuousClock.now < deadline else { throw error }
                usleep(2000)
            }
        }
    }

    /// Ends the service and starts it again.
    package func restart() throws {
        stop()
        try start()
    }
}
