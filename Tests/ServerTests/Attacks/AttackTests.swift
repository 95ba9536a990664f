import Collaboration
import Core
import Foundation
import Identity
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Wire

@testable import Server

/// Each attack with few and with many connections, from another address than that of a client that verifies and removes
/// meanwhile.
@Suite(
    "Attacks from another address", .serialized, .enabled(if: ServiceProcess.isObservable, "needs /proc"),
    .disabled(if: ServiceProcess.isSanitized, "the sanitizer's memory is above the caps"))
struct AttackTests {
    @Test("Answers that nobody reads are kept within the attacker's share", arguments: [2, 16, 1000])
    func unreadAnswers(connections: Int) async throws {
        let scene = try await AttackScene()
        try await AttackMaterial.fillChangeLog(over: scene.observer)
        let plan = Attack.Plan(
            bytes: AttackMaterial.requests(.readChanges(after: 0, limit: 1024), count: connections == 1000 ? 8 : 128))
        try await scene.run("unread answers", plan, connections: connections) { _ in
            try await scene.figure("request-memory-bytes") > AttackMaterial.heldUnread(connections) / 4 * 3
        } request: {
            _ = try await scene.observer.changes(after: 0, limit: 1024)
        }
    }

    @Test("Peers that read slowly keep no more than their share", arguments: [2, 16, 1000])
    func slowReaders(connections: Int) async throws {
        let scene = try await AttackScene(rounds: connections == 1000 ? 8 : 20)
        try await AttackMaterial.fillChangeLog(over: scene.observer)
        let count = connections == 1000 ? 2 : 128
        let plan = Attack.Plan(
            bytes: AttackMaterial.requests(.readChanges(after: 0, limit: 1024), count: count), readBytes: 1000)
        try await scene.run(
            "slow readers", plan.repeated(), connections: connections
        ) { _ in
            try await scene.figure("request-memory-bytes") > AttackMaterial.heldUnread(connections) / 4 * 3
        } request: {
            _ = try await scene.observer.changes(after: 0, limit: 1024)
        }
    }

    @Test(
        "Unfinished frames take what has arrived of them, and stop nobody from being received",
        arguments: [2, 16, 1000])
    func unfinishedFrames(connections: Int) async throws {
        let scene = try await AttackScene()
        var bytes: [UInt8] = []
        FrameWriter.append(.request, Operation.verify.rawValue, requestID: 1, to: &bytes) {
            $0 += [UInt8](repeating: 0, count: Limits.frameBodyBytesMax)
        }
        // A thousand send more than an address may hold.
        let sent = connections == 1000 ? 200_000 : Limits.frameBodyBytesMax - 1
        let plan = Attack.Plan(bytes: Array(bytes.prefix(sent)))
        try await scene.run("unfinished frames", plan, connections: connections) { attack in
            // An address may hold three eighths of the memory, and a part of the reserve: this request is urgent.
            guard attack.sentBytes.load(ordering: .relaxed) >= connections * sent else { return false }
            return try await scene.figure("request-memory-bytes") > min(connections * sent, 96 << 20) / 4 * 3
        }
    }

    @Test("Idle connections make room for newcomers", arguments: [2, 16, 1000])
    func idleConnections(connections: Int) async throws {
        // Only here the options are not the defaults, so that as many connections can take all places.
        let scene = try await AttackScene(["--connections-max", "\(max(8, connections))"])
        let plan = Attack.Plan(returns: true)
        try await scene.run("idle connections", plan, connections: connections)
    }

    @Test("Suspended queries cost others nothing", arguments: [2, 16, 1000])
    func followers(connections: Int) async throws {
        let scene = try await AttackScene()
        let collaboration = try await AttackMaterial.prepare(over: scene.observer)
        let call = try AttackMaterial.query(collaboration)
        let count = connections == 1000 ? 30 : 1000
        let plan = Attack.Plan(bytes: AttackMaterial.requests(.collaborate(call), count: count), readBytes: 100_000)
        try await scene.run("followers", plan, connections: connections) { _ in
            try await scene.figure("requests-following") >= min(connections * count, Limits.followsMax / 2) / 10 * 9
        }
    }

    @Test("Followers leave places for others' followers, and go with their connections")
    func followerPlaces() async throws {
        let service = try TestService { $0.followsMax = 1024 }
        let client = try service.client()
        let collaboration = try await AttackMaterial.prepare(over: client)
        let call = try AttackMaterial.query(collaboration)
        let plan = Attack.Plan(bytes: AttackMaterial.requests(.collaborate(call), count: 1000), readBytes: 100_000)
        let attack = try Attack(plan, connections: 16, on: service.endpoint)
        #expect(becomesTrue { service.service.suspendedQueries >= 512 })
        // Another follower is suspended until its time is over, while the attackers' queries are there.
        for _ in 0..<10 {
            _ = try await client.send(ReadNotices(.collaboration(collaboration), after: 0, waitMilliseconds: 20))
        }
        #expect(service.service.suspendedQueries >= 512)
        attack.stop()
        #expect(becomesTrue { service.service.suspendedQueries == 0 }, "queries of closed connections stay")
    }

    @Test("Proofs in masses leave turns and places in the queue for others", arguments: [2, 16, 1000])
    func proofs(connections: Int) async throws {
        let scene = try await AttackScene(rounds: connections == 1000 ? 8 : 20)
        let small = try await SmallCollaboration(scene.observer)
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
        let plan = Attack.Plan(bytes: bytes, readBytes: 1 << 16, receiveBytes: nil)
        try await scene.run(
            "proofs in masses", plan.repeated(), connections: connections, turns: .ofLoop
        ) { attack in
            attack.sentBytes.load(ordering: .relaxed) > 1 << 20
        }
    }

    @Test("Challenges in masses leave turns and places in the queue for others", arguments: [2, 16, 1000])
    func challenges(connections: Int) async throws {
        let scene = try await AttackScene(rounds: connections == 1000 ? 8 : 20)
        let bytes = AttackMaterial.requests(.issueChallenges(count: Limits.challengesPerRequestMax), count: 16)
        let plan = Attack.Plan(bytes: bytes, readBytes: 1 << 16, receiveBytes: nil)
        try await scene.run(
            "challenges in masses", plan.repeated(), connections: connections,
            turns: connections < 1000 ? .none : .ofLoop
        ) { attack in
            attack.sentBytes.load(ordering: .relaxed) > connections * bytes.count
        } request: {
            _ = try await scene.observer.challenges(Limits.challengesPerRequestMax)
        }
    }

    @Test("Mutations in masses leave the writer's queue to removals", arguments: [2, 16, 1000])
    func mutations(connections: Int) async throws {
        let scene = try await AttackScene(rounds: connections == 1000 ? 8 : 20)
        let small = try await SmallCollaboration(scene.observer, named: "masses")
        let collaboration = small.collaboration
        var random = SeededGenerator(seed: runSeed)
        let roots = (0..<1000).map { _ in random.digest() }
        var plan = Attack.Plan(readBytes: 1 << 16, receiveBytes: nil)
        // Each mutation changes the set: what was added is removed by the next one.
        plan.more = { _ in
            var bytes: [UInt8] = []
            for number in 0..<2 {
                let change: Change =
                    number == 0 ? .addRoots(collaboration, roots) : .removeRoots(collaboration, roots)
                let request = Request.mutate(Mutation(change))
                FrameWriter.append(.request, request.operation.rawValue, requestID: UInt64(number), to: &bytes) {
                    request.append(to: &$0)
                }
            }
            return bytes
        }
        try await scene.run(
            "mutations in masses", plan, connections: connections, turns: .ofLoopAndWriter
        ) { attack in
            attack.sentBytes.load(ordering: .relaxed) > 1 << 20
        } request: {
            _ = try await scene.observer.addRoots(roots, to: collaboration)
            _ = try await scene.observer.removeRoots(roots, from: collaboration)
        }
    }

    @Test("A shutdown does not wait for peers that read nothing, or little", arguments: [0, 1000])
    func shutdown(readBytes: Int) async throws {
        let service = try TestService {
            $0.requestBytesMax = 32 << 20
            $0.times.drain = 30
        }
        try await AttackMaterial.fillChangeLog(over: service.client())
        let plan = Attack.Plan(
            bytes: AttackMaterial.requests(.readChanges(after: 0, limit: 1024), count: 64), readBytes: readBytes)
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
