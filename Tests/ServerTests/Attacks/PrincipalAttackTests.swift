import Core
import Foundation
import Principals
import RootgateClient
import ServiceTestSupport
import Synchronization
import TestSupport
import Testing
import Transport
import Wire

@testable import Server

/// Attacks with keys, and by a principal that has one.
@Suite("Attacks with keys", .serialized) struct PrincipalAttackTests {
    private let every: [CollaborationPrefix] = [.every]

    /// Requests a second of a principal that verifies and removes as fast as it is answered, with eight requests in
    /// flight, and how many failed.
    private func work(_ client: RootgateClient, _ small: SmallCollaboration) async throws -> (rate: Double, failed: Int)
    {
        let proof = try await small.proof()
        let requests = [AccessRequest](
            repeating: AccessRequest(collaboration: small.collaboration, proof: proof), count: 64)
        let (collaboration, root) = (small.collaboration, small.person.rootHash)
        let (start, count) = (ContinuousClock.now, 40)
        let failed = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    var failed = 0
                    for number in 0..<count {
                        do {
                            if number % 10 == 0 {
                                _ = try await client.removeRoots([root], from: collaboration)
                                _ = try await client.addRoots([root], to: collaboration)
                            } else {
                                _ = try await client.verify(requests)
                            }
                        } catch {
                            failed += 1
                        }
                    }
                    return failed
                }
            }
            return await group.reduce(0, +)
        }
        return (Double(8 * count) / ((ContinuousClock.now - start) / .seconds(1)), failed)
    }

    /// Alternates rounds without and with what `attack` does. Returns the median of the ratios of the rates.
    private func ratio(
        _ name: String, _ client: RootgateClient, _ small: SmallCollaboration,
        _ attack: () throws -> @Sendable () -> Void
    ) async throws -> Double {
        var ratios: [Double] = []
        for _ in 0..<5 {
            let alone = try await work(client, small)
            let stop = try attack()
            let beside = try await work(client, small)
            stop()
            #expect(alone.failed == 0 && beside.failed == 0)
            ratios.append(beside.rate / alone.rate)
        }
        print("\(name): the other principal's rate is \(ratios.sorted()[2]) of its rate alone, of \(ratios.sorted())")
        return ratios.sorted()[2]
    }

    @Test("Guessing keys at full rate from one address costs another principal no request, and hardly any time")
    func guessing() async throws {
        let guarded = try await GuardedService()
        let roles = [PrincipalRole.verify, .enrol, .observe].map { LimitedRole($0, prefixes: every) }
        let client = try guarded.client(try await guarded.principal("p", roles))
        let small = try await SmallCollaboration(client)
        let endpoint = guarded.service.endpoint
        let guesses = Shared(0)
        let ratio = try await self.ratio("guessing keys", client, small) {
            let isOver = Shared(false)
            let ended = DispatchSemaphore(value: 0)
            Thread {
                while !isOver.value {
                    guard let peer = try? AttackPeer(to: endpoint) else { continue }
                    var bytes: [UInt8] = []
                    FrameWriter.append(.request, Operation.hello.rawValue, requestID: 1, to: &bytes) {
                        Request.hello(minimum: 1, maximum: 1, key: Array(APIKey.random().text.utf8)).append(to: &$0)
                    }
                    peer.send(bytes[...])
                    // Until the service closes the connection.
                    while peer.read(1000) != nil, !isOver.value { usleep(200) }
                    guesses.increment()
                }
                ended.signal()
            }.start()
            return {
                isOver.with { $0 = true }
                ended.wait()
            }
        }
        #expect(guesses.value > 100)
        // The guesser takes a processor for itself.
        #expect(ratio > 0.4)
        let figures = try await client.statistics()
        let slowed = figures.first { $0.name == "keys-slowed" }?.value ?? 0
        #expect(Int(slowed) > guesses.value / 2, "\(slowed) of \(guesses.value) guesses were slowed")
    }

    @Test("A principal that floods above its limits costs another one no request, and hardly any time")
    func flooding() async throws {
        let guarded = try await GuardedService()
        let roles = [PrincipalRole.verify, .enrol, .observe].map { LimitedRole($0, prefixes: every) }
        let client = try guarded.client(try await guarded.principal("p", roles))
        let small = try await SmallCollaboration(client)
        let key = try await guarded.principal(
            "flood", roles, limits: PrincipalLimits(proofsPerSecond: 100, mutationsPerSecond: 10))
        let proof = try await small.proof()
        var body: [UInt8] = []
        try ProofBatch.append(
            (0..<64).map { _ in (collaboration: 0, proof: proof) }, of: [small.collaboration], isSigned: false,
            wantsRoots: false, to: &body)
        var bytes: [UInt8] = []
        for number in 0..<100 {
            FrameWriter.append(.request, Operation.verifyInclusion.rawValue, requestID: UInt64(number), to: &bytes) {
                $0 += body
            }
            let mutation = Request.mutate(Mutation(.addRoots(small.collaboration, [small.person.rootHash])))
            FrameWriter.append(.request, mutation.operation.rawValue, requestID: UInt64(number), to: &bytes) {
                mutation.append(to: &$0)
            }
        }
        let endpoint = guarded.service.endpoint
        let flood = {
            let peers = try (0..<4).map { _ in try AttackPeer(to: endpoint) }
            for peer in peers {
                var hello: [UInt8] = []
                FrameWriter.append(.request, Operation.hello.rawValue, requestID: 1, to: &hello) {
                    Request.hello(minimum: 1, maximum: 1, key: Array(key.text.utf8)).append(to: &$0)
                }
                peer.send(hello[...])
            }
            let isOver = Shared(false)
            let ended = DispatchSemaphore(value: 0)
            Thread { [bytes] in
                var sent = [Int](repeating: 0, count: peers.count)
                while !isOver.value {
                    for (number, peer) in peers.enumerated() {
                        sent[number] += peer.send(bytes[sent[number]...]) ?? 0
                        if sent[number] == bytes.count { sent[number] = 0 }
                        peer.read(1 << 18)
                    }
                    usleep(1000)
                }
                ended.signal()
            }.start()
            return { @Sendable in
                isOver.with { $0 = true }
                ended.wait()
            }
        }
        // Programs beside this one make a ratio smaller, and none makes it larger. Without limits each is 0.19.
        var ratio = 0.0
        for _ in 0..<3 where ratio <= 0.4 {
            ratio = try await self.ratio("flooding above limits", client, small, flood)
        }
        #expect(ratio > 0.4)
        let figures = try await client.statistics()
        for name in ["limited-proofs", "limited-mutations"] {
            let count = figures.first { $0.name == name }?.value
            #expect(count ?? 0 > 100, "\(name)")
        }
    }
}
