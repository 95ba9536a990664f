import Core
import Foundation
import TLS
import TestSupport
import Testing
import Transport

@testable import RootgateClient

/// A service that accepts connections and never says a word, so that a handshake with it lasts.
@Suite("Connecting") struct ConnectorTests {
    private let listener: CInt
    private let endpoint: Endpoint

    init() throws {
        let listener = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        (self.listener, endpoint) = (listener.descriptor, listener.endpoint)
    }

    private func connector() throws -> Connector {
        try Connector([Dialer(endpoint, tls: TLSOptions())], key: nil, connectTimeout: .seconds(20))
    }

    private func waiting(
        on connector: Connector, until deadline: ContinuousClock.Instant = .now + .seconds(3600)
    ) -> Task<ServiceError.Code?, Never> {
        Task {
            guard case .failure(let error) = await connector.link(until: deadline) else { return nil }
            return error.code
        }
    }

    @Test("Who waits for a connection is told when the client is closed, long before the attempt ends")
    func closing() async throws {
        let connector = try connector()
        let begin = ContinuousClock.now
        let tasks = (0..<3).map { _ in waiting(on: connector) }
        try await Task.sleep(for: .milliseconds(100))
        connector.close()
        for task in tasks {
            let code = await task.value
            #expect(code == .connectionLost, "\(code.map { "\($0)" } ?? "a link")")
        }
        #expect(await waiting(on: connector).value == .connectionLost)
        #expect(.now - begin < .seconds(15))
        close(listener)
    }

    @Test("Who waits for a connection waits until the deadline, and until the task is cancelled; others wait on")
    func deadline() async throws {
        let connector = try connector()
        let begin = ContinuousClock.now
        let patient = waiting(on: connector)
        let hasty = waiting(on: connector, until: .now + .milliseconds(50))
        let cancelled = waiting(on: connector)
        cancelled.cancel()
        #expect(await hasty.value == .deadlineExceeded)
        #expect(await cancelled.value == .cancelled)
        let early = waiting(on: connector)
        try await Task.sleep(for: .milliseconds(50))
        early.cancel()
        #expect(await early.value == .cancelled)
        #expect(.now - begin < .seconds(15))
        connector.close()
        #expect(await patient.value == .connectionLost)
        close(listener)
    }

    @Test("One time-out holds for the connection and the handshake")
    func oneTimeout() async throws {
        let connector = try Connector(
            [Dialer(endpoint, tls: TLSOptions())], key: nil, connectTimeout: .milliseconds(300))
        #expect(await waiting(on: connector).value != nil)
        connector.close()
        close(listener)
    }

    @Test("A loop that has ended takes no connection, and says so")
    func endedLoop() throws {
        let loop = try EventLoop.startedForClient(name: "ended")
        loop.stop()
        let descriptor = try Socket.connect(to: endpoint, milliseconds: 5000)
        let isTaken = Connection.start(PlainStream(descriptor), on: loop) { connection in
            Issue.record("a handler is made for a connection that is not taken")
            return Link(connection)
        }
        #expect(!isTaken)
        close(listener)
    }
}
