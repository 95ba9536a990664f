import Collaboration
import Core
import Foundation
import Identity
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Transport
import Wire

@testable import Server

/// What a service does when others hold all of the memory that every request may use.
@Suite struct RequestMemoryTests {
    /// Holds the common part of a service's memory until it is released.
    private struct Hold {
        let account: MemoryAccount
        let charge: MemoryCharge

        init(_ service: TestService) {
            let memory = service.service.memory
            account = memory.account(for: .address(UInt32(1)))
            charge = account.take(memory.bytesMax)
        }

        func release() {
            account.giveBack(charge)
        }
    }

    @Test("Verifying, removing, stopping, pings and statistics use the reserve; everything else gets busy")
    func urgentRequests() async throws {
        let service = try TestService()
        let client = try service.client()
        let small = try await SmallCollaboration(client)
        let metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        let prepare = PrepareCollaboration(owner: try #require(Account("olga")), metadata: metadata)
        let collaboration = try await client.send(prepare).collaborationIdentifier
        let person = PersonIdentity(rootHash: small.person.rootHash)
        _ = try await client.send(AddParticipants([NewParticipant(person)], to: collaboration))
        let hold = Hold(service)

        let proof = try await small.proof()
        let request = AccessRequest(collaboration: small.collaboration, proof: proof)
        #expect(try await client.verify([request]).first?.verdict == .granted)
        try await client.ping()
        #expect(try await !client.statistics().isEmpty)
        _ = try await client.hello()
        _ = try await client.send(RemoveParticipants([person], from: collaboration))
        _ = try await client.send(StopSharing(collaboration))
        #expect(try await client.removeRoots([small.person.rootHash], from: small.collaboration).changed == 1)

        func isBusy(_ request: () async throws -> Void) async -> Bool {
            do {
                try await request()
                return false
            } catch {
                return (error as? ServiceError)?.code == .busy
            }
        }
        #expect(await isBusy { _ = try await client.addRoots([.zero], to: small.collaboration) })
        #expect(await isBusy { _ = try await client.changes(after: 0, limit: 1) })
        #expect(await isBusy { _ = try await client.roots(of: small.collaboration) })
        #expect(await isBusy { _ = try await client.send(prepare) })
        _ = try await client.dropCollaboration(small.collaboration)
        hold.release()
        _ = try await client.changes(after: 0, limit: 1)
        #expect(becomesTrue { service.service.memory.heldBytes == 0 })
    }

    @Test("A frame without memory gets busy before it has arrived; its rest is skipped, and a long removal is read")
    func unfinishedFrames() async throws {
        let service = try TestService()
        let client = try service.client()
        let small = try await SmallCollaboration(client)
        var random = SeededGenerator(seed: runSeed)
        let roots = [small.person.rootHash] + (1..<Limits.rootsPerRequestMax).map { _ in random.digest() }
        let hold = Hold(service)
        let peer = try RawPeer(service.endpoint)
        func frame(_ change: Change, id: UInt64) -> [UInt8] {
            let request = Request.mutate(Mutation(change))
            var bytes: [UInt8] = []
            FrameWriter.append(.request, request.operation.rawValue, requestID: id, to: &bytes) {
                request.append(to: &$0)
            }
            return bytes
        }
        let addition = frame(.addRoots(small.collaboration, roots), id: 5)
        peer.send(addition.prefix(1000))
        let (header, error) = try #require(try peer.readError())
        #expect(header.requestID == 5 && header.operation == Operation.addRoots.rawValue && error.code == .busy)
        let removal = frame(.removeRoots(small.collaboration, roots), id: 6)
        Thread {
            peer.send(addition.dropFirst(1000))
            for start in stride(from: 0, to: removal.count, by: 50_000) { peer.send(removal[start...].prefix(50_000)) }
        }.start()
        let receipt = try #require(peer.readFrame())
        #expect(receipt.header.requestID == 6 && receipt.header.kind == .answer)
        peer.send(.ping([9]), id: 7)
        #expect(peer.readFrame()?.body == [9])
        hold.release()
        #expect(becomesTrue { service.service.memory.heldBytes == 0 })
    }

    @Test("A peer that sends without reading while there is no memory for it is closed")
    func noMemoryForBusy() async throws {
        let service = try TestService()
        let memory = service.service.memory
        let account = memory.account(for: .address(UInt32(1)))
        let all = account.take(memory.bytesMax)
        var urgent: [MemoryCharge] = []
        while let charge = account.reserve(1 << 16, isUrgent: true) { urgent.append(charge) }
        let peer = try AttackPeer(to: service.endpoint, receiveBytes: 4096)
        var bytes: [UInt8] = []
        for id in 0..<4000 {
            FrameWriter.append(.request, Operation.readChanges.rawValue, requestID: UInt64(id), to: &bytes) {
                Request.readChanges(after: 0, limit: 1).append(to: &$0)
            }
        }
        // Other peers' urgent requests find half of what is left of the reserve.
        var sent = 0
        let isClosed = becomesTrue {
            guard let count = peer.send(bytes[sent...]) else { return true }
            sent = (sent + count) % bytes.count
            return false
        }
        #expect(isClosed)
        try await service.client().ping()
        account.giveBack(all)
        for charge in urgent { account.giveBack(charge) }
    }
}
