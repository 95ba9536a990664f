import Collaboration
import Core
import Foundation
import Identity
import RootgateClient
import TestSupport
import Testing
import Wire

@testable import Server

/// As many followers of one collaboration as the service lets there be, which a notice wakes all at once, again and
/// again.
final class WakingCrowd: Sendable {
    private static let addresses = 128
    private static let connectionsPerAddress = 4
    private static let queriesPerConnection = 128

    private let scene: AttackScene
    private let collaboration: CollaborationIdentifier
    private let grant: AccessGrant
    /// The queries that a connection sends, and the number of the notice behind which they ask.
    private let queries: Shared<(bytes: [UInt8], epoch: Int)>
    /// The epochs of the queries that connections have sent, and the attack that they belong to.
    private let sent: Shared<(epochs: [Int], attack: Attack?)>
    /// Notices that have woken the crowd, and those that could not be posted.
    let wakes = Shared(0)
    let failures = Shared(0)

    var connections: Int { WakingCrowd.addresses * WakingCrowd.connectionsPerAddress }
    private var followers: Int { connections * WakingCrowd.queriesPerConnection }

    init(_ scene: AttackScene) async throws {
        self.scene = scene
        let client = scene.observer
        let collaboration = try await AttackMaterial.prepare(over: client)
        self.collaboration = collaboration
        let identity = try Person(deviceCount: 1).identity(in: collaboration)
        var participant = NewParticipant(PersonIdentity(rootHash: identity.rootHash), displayName: "Ana")
        participant.permission = .readWrite
        _ = try await client.send(AddParticipants([participant], to: collaboration))
        let challenge = try await client.challenge()
        let decision = try await client.open(try identity.proof(ofDevice: 0, signing: challenge), in: collaboration)
        grant = try #require(decision.grant)
        let count = WakingCrowd.addresses * WakingCrowd.connectionsPerAddress
        sent = Shared(([Int](repeating: -1, count: count), nil))
        queries = Shared(([], 0))
        try ask(behind: try await post())
    }

    private func post() async throws -> UInt64 {
        let notice = HighlightEvent.change(trigger: .edit)
        let receipt = try await scene.observer.send(PostNotices([notice], on: collaboration, by: grant))
        return try #require(receipt.sequence)
    }

    private func ask(behind sequence: UInt64) throws {
        let call = try AttackMaterial.query(collaboration, after: sequence)
        let bytes = AttackMaterial.requests(.collaborate(call), count: WakingCrowd.queriesPerConnection)
        queries.with { $0 = (bytes, $0.epoch + 1) }
    }

    /// Each connection asks once behind each notice.
    var plan: Attack.Plan {
        var plan = Attack.Plan(readBytes: 1 << 17, receiveBytes: nil)
        plan.addresses = AttackPeer.addresses(WakingCrowd.addresses)
        plan.more = { [queries, sent] number in
            let (bytes, epoch) = queries.value
            let isNew = sent.with { sent in
                defer { sent.epochs[number] = epoch }
                return sent.epochs[number] != epoch
            }
            return isNew ? bytes : []
        }
        return plan
    }

    /// Whether the followers of an attack are suspended. The connections of a new attack have sent nothing.
    func isSuspended(of attack: Attack) async throws -> Bool {
        sent.with { sent in
            // The attack before is kept, so that another one has another address.
            guard sent.attack !== attack else { return }
            sent = ([Int](repeating: -1, count: sent.epochs.count), attack)
        }
        return try await isSuspended()
    }

    private func isSuspended() async throws -> Bool {
        try await scene.figure("requests-following") >= followers
    }

    /// Posts a notice whenever all followers are suspended, until the task is cancelled.
    func keepWaking() async throws {
        while !Task.isCancelled {
            try await Task.sleep(for: .milliseconds(50))
            guard try await isSuspended() else { continue }
            do {
                try ask(behind: try await post())
                wakes.increment()
            } catch {
                failures.increment()
            }
        }
    }
}
