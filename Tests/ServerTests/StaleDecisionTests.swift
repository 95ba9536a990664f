import Collaboration
import Core
import Foundation
import RootSets
import RootgateClient
import TestSupport
import Testing
import Transport

@testable import Server

/// Changes the record that a decision depends on while the decision is made, for so many decisions.
private final class Meddler: Sendable {
    private struct State {
        var sets: RootSets?
        var value: [UInt8] = []
        var decisionsLeft = 0
    }

    private static let key = Array("oana".utf8)
    private let state = Lock(State())

    /// Meddles with the next decisions about the consent of "ana".
    func begin(_ sets: RootSets, decisions: Int) throws {
        let value = try sets.read { snapshot throws(ServiceError) in try snapshot.record(Meddler.key)?.value ?? [] }
        state.withLock { $0 = State(sets: sets, value: value, decisionsLeft: decisions) }
    }

    var decisionsLeft: Int { state.withLock { $0.decisionsLeft } }

    /// The wall clock, which every decision reads once, between its snapshot and its edit.
    var now: Date {
        let (sets, value) = state.withLock { state -> (RootSets?, [UInt8]) in
            guard state.decisionsLeft > 0 else { return (nil, []) }
            state.decisionsLeft -= 1
            return (state.sets, state.value)
        }
        if let sets {
            var edit = Edit()
            edit.records = [RecordEdit(Meddler.key, value: value)]
            _ = try? sets.apply(Mutation(.edit(edit)))
        }
        return Date()
    }
}

@Suite struct StaleDecisionTests {
    @Test("A request is decided so many times while its data change, and once more is stale-edit")
    func decisions() async throws {
        let scratch = ScratchDirectory()
        let meddler = Meddler()
        var configuration = Configuration(dataDirectory: scratch.path + "/data", workers: 2)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        let service = try Service(configuration, wallClock: { meddler.now })
        defer { _ = service.shutDown() }
        let client = try RootgateClient(service.endpoints[0], configuration: .init(requestTimeout: patience))
        defer { client.close() }
        let ana = try #require(Account("ana"))
        _ = try await client.send(SetConsent(of: ana, .everything, isAllowed: true))
        let sets = service.resources.rootSets

        try meddler.begin(sets, decisions: Limits.decisionsPerRequestMax - 1)
        let receipt = try await client.send(SetConsent(of: ana, .everything, isAllowed: false))
        #expect(receipt.changed == 1 && meddler.decisionsLeft == 0)

        try meddler.begin(sets, decisions: Limits.decisionsPerRequestMax)
        await #expect(throws: ServiceError(.staleEdit, "")) {
            _ = try await client.send(SetConsent(of: ana, .everything, isAllowed: true))
        }
        #expect(meddler.decisionsLeft == 0)
        #expect(try await client.send(ReadConsent(of: ana)).everything == false)
    }
}
