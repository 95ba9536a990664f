import Core
import Foundation
import Identity
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Wire

@testable import Server

/// Attacks by crowds, and floods of each proof that is refused, beside a client from another address. The crowd's side
/// is in this process, and the service has its own.
@Suite(
    "Crowds and floods", .serialized, .timeLimit(.minutes(15)),
    .enabled(if: AttackScene.comparesTimes && ServiceProcess.isObservable, "set ROOTGATE_ATTACK_TIMES; needs /proc"))
struct CrowdTests {
    /// An address that is alone gets half of the places, so the crowd has four. Each process of this machine may have
    /// 20,000 descriptors, so the service has not many more places.
    @Test("Ten thousand idle connections cost others nothing")
    func idle() async throws {
        let scene = try await AttackScene(["--connections-max", "16000"])
        let plan = Attack.Plan(receiveBytes: nil, addresses: AttackPeer.addresses(4))
        try await scene.run("idle crowd", plan, connections: 10_000) { _ in
            try await scene.figure("connections") >= 10_000
        }
        #expect(try await scene.figure("connections-accepted") >= 10_000)
    }

    @Test("A thousand connections that send a byte at a time cost others no more than their processor time")
    func dripping() async throws {
        let scene = try await AttackScene()
        var plan = Attack.Plan(
            bytes: AttackMaterial.requests(.ping([]), count: 1), readBytes: 1000, returns: true)
        plan.sendBytes = 1
        try await scene.run("dripping", plan.repeated(), connections: 1000, turns: .ofLoop) { attack in
            attack.sentBytes.load(ordering: .relaxed) > 20_000
        }
    }

    @Test("Five hundred connections that send requests and read nothing keep no more than their share")
    func unread() async throws {
        let scene = try await AttackScene()
        try await AttackMaterial.fillChangeLog(over: scene.observer)
        let plan = Attack.Plan(bytes: AttackMaterial.requests(.readChanges(after: 0, limit: 1024), count: 16))
        try await scene.run("unread answers of a crowd", plan, connections: 500) { _ in
            try await scene.figure("request-memory-bytes") > AttackMaterial.heldUnread(500) / 4 * 3
        } request: {
            _ = try await scene.observer.changes(after: 0, limit: 1024)
        }
    }

    /// Every verdict that refuses.
    private static let refusals = Array(Verdict.malformed.rawValue...Verdict.challengeElsewhere.rawValue)

    @Test("A flood of proofs that are refused leaves turns to others", arguments: refusals)
    func refused(code: UInt8) async throws {
        let verdict = try #require(Verdict(rawValue: code))
        let flood = try RefusedFlood(verdict)
        let scene = try await AttackScene(flood.options)
        let (bytes, one) = try await flood.requests(scene.observer)
        let plan = Attack.Plan(bytes: bytes, readBytes: 1 << 16, receiveBytes: nil)
        let before = try await scene.figure("verdict-\(verdict.name)")
        try await scene.run("proofs that are \(verdict.name)", plan.repeated(), connections: 16, turns: .ofLoop) {
            $0.sentBytes.load(ordering: .relaxed) > 1 << 20
        } request: {
            _ = try await scene.observer.verify(one)
        }
        #expect(try await scene.figure("verdict-\(verdict.name)") - before > 10_000)
        #expect(try await scene.figure("verdict-unknown") == 0)
    }

    /// A newcomer always finds as many places free as each address has: 512 besides these.
    @Test("65,536 followers that one notice wakes at once cost others no more than their processor time")
    func wakingFollowers() async throws {
        let scene = try await AttackScene()
        let crowd = try await WakingCrowd(scene)
        let waking = Task { try await crowd.keepWaking() }
        try await scene.run("waking followers", crowd.plan, connections: crowd.connections, turns: .ofLoop) {
            try await crowd.isSuspended(of: $0)
        }
        waking.cancel()
        _ = try? await waking.value
        print("\(crowd.wakes.value) notices have each woken the followers")
        #expect(crowd.wakes.value >= 3)
        #expect(crowd.failures.value == 0, "a notice could not be posted")
    }
}
