import Core
import Foundation
import Identity
import Principals
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("The order of mutations")
struct MutationOrderTests {
    /// Keeps the writer of a service from its work until it is released.
    private final class Hold {
        private let semaphore = DispatchSemaphore(value: 0)

        init(_ service: TestService) throws {
            let isHeld = Shared(false)
            let nobody = try #require(CollaborationIdentifier("held"))
            service.service.resources.rootSets.submit(Mutation(.dropCollaboration(nobody))) { [semaphore] _ in
                isHeld.with { $0 = true }
                semaphore.wait()
            }
            #expect(becomesTrue { isHeld.value })
        }

        func release() {
            semaphore.signal()
        }
    }

    private func mutation(_ change: Change) -> Request { .mutate(Mutation(change)) }

    private func receipt(_ peer: RawPeer) throws -> MutationReceipt {
        let (header, body) = try #require(peer.readFrame())
        try #require(header.kind == .answer)
        return try body.withRawBytes { bytes throws(ServiceError) in try Answer.receipt(bytes) }
    }

    @Test("A removal that is sent behind an addition of the same root hash removes it, however many others wait")
    func pipelined() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        let peer = try RawPeer(service.endpoint)
        let count = 50
        for number in 0..<count {
            peer.send(mutation(.addRoots(small.collaboration, [.zero])), id: UInt64(2 * number))
            peer.send(mutation(.removeRoots(small.collaboration, [.zero])), id: UInt64(2 * number + 1))
        }
        for _ in 0..<2 * count { #expect(try receipt(peer).changed == 1) }
    }

    @Test("Mutations of a connection keep their order when it presents another key between them")
    func otherPrincipal() async throws {
        let guarded = try await GuardedService()
        let enrol = [LimitedRole(.enrol, prefixes: [.every]), LimitedRole(.observe, prefixes: [.every])]
        let (first, second) = (
            try await guarded.principal("first", enrol), try await guarded.principal("second", enrol)
        )
        let client = try guarded.client(first)
        let small = try await SmallCollaboration(client)
        let peer = try guarded.peer(first)
        let hold = try Hold(guarded.service)
        let other = try guarded.peer(first)
        for number in 0..<20 {
            other.send(mutation(.addRoots(small.collaboration, [Digest.zero])), id: UInt64(number))
        }
        peer.send(mutation(.addRoots(small.collaboration, [small.person.rootHash])), id: 1)
        peer.send(mutation(.removeRoots(small.collaboration, [small.person.rootHash])), id: 2)
        peer.send(mutation(.addRoots(small.collaboration, [small.person.rootHash])), id: 3)
        peer.send(.hello(minimum: 1, maximum: 1, key: Array(second.text.utf8)), id: 4)
        peer.send(mutation(.removeRoots(small.collaboration, [small.person.rootHash])), id: 5)
        #expect(peer.readFrame()?.header.requestID == 4)
        // The last one is queued when a request behind it is answered.
        peer.send(.ping([]), id: 6)
        #expect(peer.readFrame()?.header.requestID == 6)
        hold.release()
        for changed in [0, 1, 1, 1] { #expect(try receipt(peer).changed == changed) }
        // The additions of the other connection may wait longer.
        for number in 0..<20 { #expect(try receipt(other).changed == (number == 0 ? 1 : 0)) }
        #expect(try await client.state(of: small.collaboration).rootCount == 1)
    }
}
