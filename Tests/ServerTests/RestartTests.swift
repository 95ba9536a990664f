import Core
import Foundation
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Transport
import Wire

@testable import Server

@Suite("Restarts under load")
struct RestartTests {
    /// How often the service is restarted. The handbook tells of runs with more.
    private static let restarts = ProcessInfo.processInfo.environment["ROOTGATE_TEST_RESTARTS"].flatMap(Int.init) ?? 5

    /// What clients did.
    private struct Deeds {
        var granted = 0
        /// Proofs whose challenge was from before a restart.
        var expired = 0
        var changes = 0
        var failures: [String] = []
    }

    @Test("Clients get no error while the service is restarted again and again", .timeLimit(.minutes(10)))
    func noErrors() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        let (deeds, isOver) = (Shared(Deeds()), Shared(false))
        let tasks = try (0..<4).map { number in
            let client = try service.client()
            return Task {
                while !isOver.value {
                    do {
                        try await RestartTests.work(client, small, number, deeds)
                    } catch {
                        deeds.with { $0.failures.append("\(error)") }
                    }
                }
                client.close()
            }
        }
        for _ in 0..<Self.restarts {
            let before = deeds.value.granted + deeds.value.changes
            #expect(becomesTrue { deeds.value.granted + deeds.value.changes > before + 20 })
            try service.restart()
        }
        let before = deeds.value.granted
        #expect(becomesTrue { deeds.value.granted > before + 20 })
        isOver.with { $0 = true }
        for task in tasks { await task.value }
        let result = deeds.value
        print(
            "\(Self.restarts) restarts: \(result.granted) proofs granted, \(result.expired) with an old challenge, "
                + "\(result.changes) changes, \(result.failures.count) failures")
        #expect(result.failures.isEmpty, "\(result.failures.prefix(5))")
    }

    /// What a backend does: it lets a device sign a challenge, and changes a set of root hashes.
    private static func work(
        _ client: RootgateClient, _ small: SmallCollaboration, _ number: Int, _ deeds: Shared<Deeds>
    ) async throws {
        let challenge = try await client.challenge()
        let proof = try small.person.proof(ofDevice: number % 3, signing: challenge)
        switch try await client.verify(proof, in: small.collaboration) {
        case .granted: deeds.with { $0.granted += 1 }
        case .challengeElsewhere: deeds.with { $0.expired += 1 }
        case let verdict: deeds.with { $0.failures.append("\(verdict)") }
        }
        guard let root = Digest((0..<32).map { _ in UInt8.random(in: 0...255) }) else { return }
        let added = try await client.addRoots([root], to: small.collaboration)
        let removed = try await client.removeRoots([root], from: small.collaboration)
        // Each of them is done once, however often it was sent.
        if added.changed != 1 || removed.changed != 1 {
            deeds.with { $0.failures.append("changed \(added.changed) and \(removed.changed)") }
        }
        deeds.with { $0.changes += 2 }
    }

    @Test("The last frame of a service that shuts down is shutting-down, about no request")
    func farewell() throws {
        let service = try TestService()
        let descriptor = try Socket.connect(to: service.endpoint, milliseconds: 5000)
        let socket = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        // From here on reading waits.
        #expect(fcntl(descriptor, F_SETFL, 0) == 0)
        var ping: [UInt8] = []
        FrameWriter.append(.request, Operation.ping.rawValue, requestID: 9, to: &ping) { _ in }
        try socket.write(contentsOf: Data(ping))
        let first = try frames(in: Array(try socket.read(upToCount: Limits.frameHeaderBytes) ?? Data()))
        #expect(first.map(\.header.kind) == [.answer] && first.first?.header.requestID == 9)
        let stopping = Thread { service.stop() }
        stopping.start()
        let frames = try frames(in: Array(try socket.readToEnd() ?? Data()))
        #expect(frames.count == 1)
        #expect(frames.last?.header.kind == .error && frames.last?.header.operation == 0)
        #expect(frames.last?.header.requestID == 0 && frames.last?.error?.code == .shuttingDown)
    }

    private func frames(in bytes: [UInt8]) throws -> [(header: FrameHeader, error: ServiceError?)] {
        try bytes.withUnsafeBytes { bytes in
            var reader = FrameReader(bytes, expecting: [.answer, .error])
            var found: [(header: FrameHeader, error: ServiceError?)] = []
            while let frame = reader.next() {
                let error = frame.header.kind == .error ? try FrameWriter.decodeError(frame.body) : nil
                found.append((frame.header, error))
            }
            return found
        }
    }

    @Test("A client with several addresses uses the one that answers, also when that changes")
    func severalAddresses() async throws {
        let first = try TestService()
        let second = try TestService { $0.endpoints = [Endpoint(host: "127.0.0.1", port: 0)] }
        let nowhere = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        close(nowhere.descriptor)
        let client = try RootgateClient(
            [nowhere.endpoint, first.endpoint, second.endpoint], configuration: .init(requestTimeout: patience))
        defer { client.close() }
        // The two services are told apart by what they store.
        let (one, two) = (try first.client(), try second.client())
        try await one.createCollaboration(try #require(CollaborationIdentifier("one")))
        try await two.createCollaboration(try #require(CollaborationIdentifier("two")))
        func present() async throws -> [String] { try await client.collaborations().items.map { "\($0.identifier)" } }
        #expect(try await present() == ["one"])
        #expect(try await present() == ["one"])
        first.stop()
        #expect(try await present() == ["two"])
        try first.start()
        #expect(try await present() == ["two"])
        second.stop()
        #expect(try await present() == ["one"])
    }
}
