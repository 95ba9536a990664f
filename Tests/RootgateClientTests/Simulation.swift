import Core
import Foundation
import Identity
import RootgateClient
import Server
import Synchronization
import TestSupport
import Transport

/// A wall clock that a test moves.
final class TestCalendar: Sendable {
    private let milliseconds: Mutex<Int>

    init(milliseconds: Int = 1_800_000_000_000) {
        self.milliseconds = Mutex(milliseconds)
    }

    var now: Date { Date(timeIntervalSince1970: Double(milliseconds.withLock { $0 }) / 1000) }

    func advance(seconds: Int) {
        milliseconds.withLock { $0 += seconds * 1000 }
    }
}

/// A service with the collaboration layer's settings, on a free loopback port, with storage of its own.
final class LiveService: Sendable {
    static let linkBase = "https://example.com/collab"

    let directory: ScratchDirectory
    let calendar: TestCalendar
    private let running: Mutex<Service?>
    let endpoint: Endpoint
    private let configuration: Configuration
    private let clock: MonotonicClock

    /// `clock`: the service's.
    init(
        calendar: TestCalendar = TestCalendar(), clock: MonotonicClock = .system,
        _ adjust: (inout Configuration) -> Void = { _ in }
    ) throws {
        directory = ScratchDirectory()
        self.calendar = calendar
        self.clock = clock
        var configuration = Configuration(dataDirectory: directory.path + "/data", workers: 2)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        configuration.drainSeconds = 5
        configuration.linkBase = LiveService.linkBase
        adjust(&configuration)
        let service = try Service(configuration, clock: clock, wallClock: { calendar.now })
        endpoint = service.endpoints[0]
        configuration.endpoints = [endpoint]
        self.configuration = configuration
        running = Mutex(service)
    }

    deinit {
        _ = running.withLock { $0 }?.shutDown()
    }

    func client() throws -> RootgateClient {
        try RootgateClient(endpoint, configuration: .init(requestTimeout: patience))
    }

    /// Ends the service and starts it again on the same storage and port.
    func restart() throws {
        running.withLock { service in
            _ = service?.shutDown()
            service = nil
        }
        // The storage is free when the last of the old service's threads has let go of it.
        let deadline = ContinuousClock.now + .seconds(10)
        while true {
            do throws(ServiceError) {
                let service = try Service(
                    configuration, clock: clock, wallClock: { [calendar] in calendar.now })
                return running.withLock { $0 = service }
            } catch {
                guard error.code == .storageInUse, ContinuousClock.now < deadline else { throw error }
                usleep(2000)
            }
        }
    }
}

/// A person with devices, who has an identity of their own in each collaboration.
final class SimulatedPerson: Sendable {
    let account: Account
    let name: String
    private let person: Person
    private let identities = Mutex<[CollaborationIdentifier: SimulatedIdentity]>([:])

    init(_ name: String, devices: Int = 1) {
        self.name = name
        // The names that tests give are names of accounts.
        account = Account(name)!
        person = Person(deviceCount: devices)
    }

    var deviceCount: Int { person.devices.count }

    fileprivate func secrets(in collaboration: CollaborationIdentifier) throws(ServiceError) -> SimulatedIdentity {
        if let known = identities.withLock({ $0[collaboration] }) { return known }
        let fresh = try person.identity(in: collaboration)
        return identities.withLock { identities in
            if let known = identities[collaboration] { return known }
            identities[collaboration] = fresh
            return fresh
        }
    }

    func identity(in collaboration: CollaborationIdentifier) throws(ServiceError) -> PersonIdentity {
        PersonIdentity(rootHash: try secrets(in: collaboration).rootHash)
    }

    func device(_ index: Int = 0) -> SimulatedDevice { SimulatedDevice(person: self, index: index) }

    /// What the person's device gets when it knocks at the gate.
    func open(
        _ collaboration: CollaborationIdentifier, device index: Int = 0, _ client: RootgateClient
    ) async throws -> OpenDecision {
        let challenge = try await client.challenges(1).challenges[0]
        let proof = try await device(index).signedIdentityProof(in: collaboration, signing: challenge)
        return try await client.open(proof, in: collaboration)
    }
}

/// One device of a simulated person.
struct SimulatedDevice: IdentityDevice {
    let person: SimulatedPerson
    let index: Int

    func signedIdentityProof(
        in collaboration: CollaborationIdentifier, signing data: [UInt8]
    ) async throws(ServiceError) -> SignedIdentityProof {
        try person.secrets(in: collaboration).proof(ofDevice: index, signing: data)
    }
}
