import Collaboration
import Core
import Foundation
import Identity
import Platform
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Wire

@testable import Server

/// Each attack with few and with many connections, from another address than that of a client that verifies and removes
/// meanwhile. Every request of the client is answered, and the memory of requests stays in its bound.
@Suite("Attacks from another address", .serialized) struct AttackTests {
    /// The client's requests under attack must not take longer than this, in milliseconds. It is generous, because
    /// other tests and the attackers themselves share the processors.
    private static let boundMilliseconds = 2000.0

    /// Runs the attack beside an honest client, and checks what that client got.
    private func run(
        _ name: String, _ plan: Attack.Plan, connections: Int, on service: TestService, rounds: Int = 40,
        until isUnderWay: (Attack) -> Bool = { _ in true }
    ) async throws {
        System.raiseDescriptorLimit()
        let memory = service.service.memory
        let client = try await HonestClient(service)
        let before = try await client.work(rounds: rounds)
        #expect(before.failures == [])
        let residentBefore = System.residentBytes
        let attack = try Attack(plan, connections: connections, on: service.endpoint)
        #expect(becomesTrue { isUnderWay(attack) }, "the attack does not get under way")
        let most = Shared(0)
        let isOver = Shared(false)
        Thread {
            while !isOver.value {
                most.with { $0 = max($0, memory.heldBytes) }
                usleep(1000)
            }
        }.start()
        let during = try await client.work(rounds: rounds)
        isOver.with { $0 = true }
        let resident = System.residentBytes
        #expect(during.failures == [])
        #expect(most.value <= memory.bytesMax, "more memory is held than there is")
        #expect(during.p99 < max(AttackTests.boundMilliseconds, 20 * before.p99))
        attack.stop()
        print(
            """
            attack: \(name), \(connections) connections: p99 \(before.p99) ms before, \(during.p99) ms meanwhile; \
            at most \(most.value >> 10) of \(memory.bytesMax >> 10) KiB held, resident \(residentBefore >> 20) MiB \
            before, \(resident >> 20) MiB meanwhile; \(attack.closed.load(ordering: .relaxed)) connections were closed
            """)
        #expect(becomesTrue { memory.heldBytes == 0 }, "memory is held after the end")
    }

    /// A change log whose pages have more than half a MiB.
    private func fillChangeLog(of service: TestService) async throws {
        let client = try service.client()
        let small = try await SmallCollaboration(client, named: "filler")
        var random = SeededGenerator(seed: runSeed)
        let roots = (0..<Limits.rootsPerRequestMax).map { _ in random.digest() }
        try await client.addRoots(roots, to: small.collaboration)
    }

    private func requests(_ request: Request, count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        for number in 0..<count {
            FrameWriter.append(.request, request.operation.rawValue, requestID: UInt64(number), to: &bytes) {
                request.append(to: &$0)
            }
        }
        return bytes
    }

    @Test("Answers that nobody reads are kept within the attacker's share", arguments: [2, 16, 1000])
    func unreadAnswers(connections: Int) async throws {
        let service = try TestService { $0.requestBytesMax = 32 << 20 }
        try await fillChangeLog(of: service)
        let plan = Attack.Plan(
            bytes: requests(.readChanges(after: 0, limit: 1024), count: connections == 1000 ? 2 : 128))
        let memory = service.service.memory
        try await run("unread answers", plan, connections: connections, on: service) { _ in
            // The attacker alone may hold three eighths of all, and each connection a quarter of that. The system's
            // buffers take a part of two connections' answers.
            memory.heldBytes > memory.bytesMax / (connections == 2 ? 10 : 5)
        }
    }

    @Test("Peers that read slowly keep no more than their share", arguments: [2, 16])
    func slowReaders(connections: Int) async throws {
        let service = try TestService { $0.requestBytesMax = 32 << 20 }
        try await fillChangeLog(of: service)
        let plan = Attack.Plan(
            bytes: requests(.readChanges(after: 0, limit: 1024), count: 128), repeats: true, readBytes: 1000)
        let memory = service.service.memory
        try await run("slow readers", plan, connections: connections, on: service) { _ in
            memory.heldBytes > 2 << 20
        }
    }

    @Test(
        "Unfinished frames take what has arrived of them, and stop nobody from being received",
        arguments: [2, 16, 1000])
    func unfinishedFrames(connections: Int) async throws {
        let service = try TestService { $0.requestBytesMax = 16 << 20 }
        var bytes: [UInt8] = []
        FrameWriter.append(.request, Operation.verify.rawValue, requestID: 1, to: &bytes) {
            $0 += [UInt8](repeating: 0, count: Limits.frameBodyBytesMax)
        }
        let sent = connections == 1000 ? 16_401 : Limits.frameBodyBytesMax - 1
        try await run(
            "unfinished frames", Attack.Plan(bytes: Array(bytes.prefix(sent))), connections: connections, on: service
        ) { attack in
            attack.sentBytes.load(ordering: .relaxed) >= connections * sent
        }
    }

    @Test("Idle connections make room for newcomers", arguments: [16, 1000])
    func idleConnections(connections: Int) async throws {
        let service = try TestService { $0.connectionsMax = connections }
        try await run(
            "idle connections", Attack.Plan(returns: true), connections: connections, on: service, rounds: 20)
    }

    @Test("Followers leave places for others' followers", arguments: [2, 16])
    func followers(connections: Int) async throws {
        let service = try TestService { $0.followsMax = 1024 }
        let client = try service.client()
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        metadata.title = "Deck"
        let collaboration = try await client.send(
            PrepareCollaboration(owner: try #require(Account("olga")), metadata: metadata)
        ).collaborationIdentifier
        let query = try JSON.encode(ReadNotices(.collaboration(collaboration), after: 0, waitMilliseconds: 60_000))
        let call = CollaborationCall(identifier: .random(), name: ReadNotices.name, json: query)
        let queries = Attack.Plan(bytes: requests(.collaborate(call), count: 1000), readBytes: 100_000)
        try await run("followers", queries, connections: connections, on: service) { _ in
            service.service.suspendedQueries >= 512
        }
        // Another follower is suspended until its time is over, while the attackers' queries are there.
        let attack = try Attack(queries, connections: connections, on: service.endpoint)
        #expect(becomesTrue { service.service.suspendedQueries >= 512 })
        for _ in 0..<10 {
            _ = try await client.send(ReadNotices(.collaboration(collaboration), after: 0, waitMilliseconds: 20))
        }
        #expect(service.service.suspendedQueries >= 512)
        attack.stop()
        #expect(becomesTrue { service.service.suspendedQueries == 0 }, "queries of closed connections stay")
    }

    @Test("Proofs in masses leave turns and places in the queue for others", arguments: [2, 16, 1000])
    func masses(connections: Int) async throws {
        let service = try TestService { $0.waitingProofsMax = 8192 }
        let small = try await SmallCollaboration(try service.client())
        let proof = try await small.proof()
        var body: [UInt8] = []
        let entries = (0..<16).map { _ in (collaboration: 0, proof: proof) }
        try ProofBatch.append(entries, of: [small.collaboration], isSigned: false, wantsRoots: false, to: &body)
        var bytes: [UInt8] = []
        for number in 0..<(connections == 1000 ? 8 : 128) {
            FrameWriter.append(.request, Operation.verifyInclusion.rawValue, requestID: UInt64(number), to: &bytes) {
                $0 += body
            }
        }
        let plan = Attack.Plan(bytes: bytes, repeats: true, readBytes: 1 << 16, receiveBytes: nil)
        try await run("proofs in masses", plan, connections: connections, on: service, rounds: 8) { attack in
            attack.sentBytes.load(ordering: .relaxed) > 1 << 20
        }
    }

    @Test("Mutations in masses leave room in the writer's queue for removals")
    func mutations() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        var random = SeededGenerator(seed: runSeed)
        let roots = (0..<2000).map { _ in random.digest() }
        var bytes: [UInt8] = []
        for number in 0..<128 {
            let mutation = Mutation(.addRoots(small.collaboration, Array(roots.shuffled(using: &random).prefix(1000))))
            let request = Request.mutate(mutation)
            FrameWriter.append(.request, request.operation.rawValue, requestID: UInt64(number), to: &bytes) {
                request.append(to: &$0)
            }
        }
        let plan = Attack.Plan(bytes: bytes, readBytes: 1 << 16, receiveBytes: nil)
        try await run("mutations in masses", plan, connections: 16, on: service, rounds: 20)
    }

    @Test("A shutdown does not wait for peers that read nothing")
    func shutdown() async throws {
        let service = try TestService {
            $0.requestBytesMax = 32 << 20
            $0.drainSeconds = 30
        }
        try await fillChangeLog(of: service)
        let plan = Attack.Plan(bytes: requests(.readChanges(after: 0, limit: 1024), count: 64))
        let attack = try Attack(plan, connections: 4, on: service.endpoint)
        #expect(becomesTrue { service.service.memory.heldBytes > 4 << 20 })
        let ending = Shared<Service.Ending?>(nil)
        let time = Shared<Duration>(.zero)
        onThreads(1) { _ in
            let start = ContinuousClock.now
            let result = service.service.shutDown()
            ending.with { $0 = result }
            time.with { $0 = ContinuousClock.now - start }
        }
        attack.stop()
        #expect(ending.value == .drained)
        #expect(time.value < .seconds(15))
    }
}
