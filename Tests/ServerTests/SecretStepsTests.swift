import Cluster
import Collaboration
import Core
import Etcd
import EtcdTestSupport
import Foundation
import Identity
import RootgateClient
import Secrets
import Server
import ServiceTestSupport
import TestSupport
import Testing
import Wire

private let day: UInt64 = 24 * 3600 * 1000

@Suite("A cluster whose secret is rotated in steps", .serialized, .enabled(if: etcd != nil, "there is no program etcd"))
struct SecretStepsTests {
    @Test("Services with files of neighbouring steps take each other's grants, challenges and snapshot tokens")
    func neighbours() async throws {
        let scene = try await SecretSteps()
        try await scene.expectAgreement("before")
        for step in SecretSteps.Step.allCases.dropFirst() {
            // When every service uses the prepared generation, what the one before authenticated expires.
            if step == .dropped { scene.forgetGrants(ofGeneration: 0) }
            for gate in [0, 1] {
                try scene.give(step, to: gate)
                try await scene.expectAgreement("\(step) at gate \(gate)")
            }
        }
        // The grants of both generations were checked.
        #expect(scene.generations == [0, 1])
    }

    @Test("Without the first step, grants and snapshot tokens of the new generation are refused: the steps are needed")
    func withoutPreparation() async throws {
        let scene = try await SecretSteps()
        try scene.give(.used, to: 0)
        let grant = try await scene.open(at: 0)
        #expect(try await scene.status(of: grant, at: 0) == .valid)
        #expect(try await scene.status(of: grant, at: 1) == .forged)
        #expect(await scene.readsSnapshot(of: 1, askedBy: 0) == .roleMissing)
        #expect(try await scene.verdict(ofChallengeOf: 0, at: 1) == .challengeForged)
        // The services tell, until they have the same file.
        #expect(try await comesTrue { try await scene.foreignSecrets() == [1, 1] })
        #expect(try scene.report().hasForeignSecrets)
        try scene.give(.used, to: 1)
        #expect(try await comesTrue { try await scene.foreignSecrets() == [0, 0] })
        #expect(try !scene.report().hasForeignSecrets)
    }

    @Test("As long as a service has not read a prepared generation, the operator is told not to use it")
    func missing() async throws {
        let scene = try await SecretSteps()
        #expect(try scene.report().missingGenerations.isEmpty)
        try scene.give(.prepared, to: 0)
        #expect(try await comesTrue { try scene.report().missingGenerations.count == 1 })
        let missing = try #require(try scene.report().missingGenerations.first)
        #expect(missing.service.record.address == scene.cluster.services[1].endpoint.description)
        #expect(try scene.report().hasForeignSecrets == false)
        try scene.give(.prepared, to: 1)
        #expect(try await comesTrue { try scene.report().missingGenerations.isEmpty })
    }

    @Test("A secret that has leaked while a generation is prepared is dropped with it: nothing of either is genuine")
    func leak() async throws {
        let scene = try await SecretSteps()
        for gate in [0, 1] { try scene.give(.prepared, to: gate) }
        let old = try await scene.open(at: 0)
        try scene.give(.used, to: 0)
        let new = try await scene.open(at: 0)
        for grant in [old, new] { #expect(try await scene.status(of: grant, at: 1) == .valid) }
        try scene.dropEverything(at: 1)
        for grant in [old, new] { #expect(try await scene.status(of: grant, at: 1) == .forged) }
        #expect(await scene.readsSnapshot(of: 1, askedBy: 0) == .roleMissing)
    }

    @Test("A service that is new and has the next step's file gets its snapshot from one with the file before")
    func joining() async throws {
        let scene = try await SecretSteps { $0.logRetentionBytes = 64 << 10 }
        for gate in [0, 1] { try scene.give(.prepared, to: gate) }
        try await scene.outgrowTheLog()
        try scene.add(at: .used)
        let client = try scene.cluster.services[2].client()
        #expect(try await comesTrue { (try? await client.ping()) != nil })
        try await scene.expectAgreement("a new service")
    }
}

/// Services of a cluster, each with a secret file of its own, a person who opens a collaboration at them, and the
/// grants that were issued.
private final class SecretSteps {
    /// The files of a rotation. Each is made of the one before it by what an operator says.
    enum Step: Int, CaseIterable {
        case before, prepared, used
        /// The file of `used` when the generation before has expired.
        case dropped
    }

    let cluster: TestCluster
    private let scratch = ScratchDirectory()
    private let adjust: (inout Configuration) -> Void
    private let deck: CollaborationIdentifier
    private let person: SimulatedIdentity
    /// The change that has added the person.
    private let added: UInt64
    private var steps: [Step]
    /// With the number of the generation that has authenticated each.
    private var grants: [(grant: AccessGrant, generation: Int)] = []
    /// The generations that have authenticated a grant.
    private(set) var generations: Set<Int> = []

    init(_ adjust: @escaping (inout Configuration) -> Void = { _ in }) async throws {
        self.adjust = adjust
        cluster = try TestCluster(services: 0)
        steps = [.before, .before]
        try SecretSteps.makeFiles(in: scratch.path)
        for gate in [0, 1] {
            let file = SecretSteps.file(of: gate, in: scratch.path)
            try SecretSteps.copy(SecretSteps.file(.before, in: scratch.path), to: file)
            try cluster.add {
                $0.secretPath = file.path
                adjust(&$0)
            }
        }
        let services = cluster.services
        #expect(becomesTrue { services.allSatisfy { $0.service.resources.rootSets.isFresh } })
        let client = try services[0].client()
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        metadata.defaultPermission = .readWrite
        deck = try await client.send(
            PrepareCollaboration(owner: try #require(Account("olga")), metadata: metadata)
        ).collaborationIdentifier
        person = try Person(deviceCount: 1).identity(in: deck)
        let participant = NewParticipant(PersonIdentity(rootHash: person.rootHash))
        added = try #require(try await client.send(AddParticipants([participant], to: deck)).sequence)
    }

    // MARK: Files

    /// Makes the file of each step, as an operator does: two days before now, and now.
    private static func makeFiles(in folder: String) throws {
        let now = UInt64(Date().timeIntervalSince1970 * 1000)
        _ = try file(.before, in: folder).rotate(at: now - 2 * day)
        try copy(file(.before, in: folder), to: file(.prepared, in: folder))
        _ = try file(.prepared, in: folder).prepare(at: now - 2 * day)
        for (step, time) in [(Step.used, now), (.dropped, now - 2 * day)] {
            try copy(file(.prepared, in: folder), to: file(step, in: folder))
            _ = try file(step, in: folder).usePrepared(at: time)
        }
    }

    private static func file(_ step: Step, in folder: String) -> SecretFile { SecretFile(path: "\(folder)/\(step)") }

    private static func file(of gate: Int, in folder: String) -> SecretFile {
        SecretFile(path: "\(folder)/gate-\(gate)")
    }

    private static func copy(_ source: SecretFile, to file: SecretFile) throws {
        try? FileManager.default.removeItem(atPath: file.path)
        try FileManager.default.copyItem(atPath: source.path, toPath: file.path)
    }

    /// Gives a service the file of a step, and lets it read the file, as SIGHUP does.
    func give(_ step: Step, to gate: Int) throws {
        let file = SecretSteps.file(of: gate, in: scratch.path)
        try SecretSteps.copy(SecretSteps.file(step, in: scratch.path), to: file)
        steps[gate] = step
        cluster.services[gate].service.reload()
    }

    /// Gives a service a file in which nothing of before is valid.
    func dropEverything(at gate: Int) throws {
        let now = UInt64(Date().timeIntervalSince1970 * 1000)
        _ = try SecretSteps.file(of: gate, in: scratch.path).rotate(at: now, dropsPrevious: true)
        cluster.services[gate].service.reload()
    }

    /// Starts another service, with the file of a step.
    func add(at step: Step) throws {
        let file = SecretSteps.file(of: steps.count, in: scratch.path)
        try SecretSteps.copy(SecretSteps.file(step, in: scratch.path), to: file)
        steps.append(step)
        try cluster.add {
            $0.secretPath = file.path
            adjust(&$0)
        }
    }

    // MARK: What services make and take

    /// Lets every service issue a grant, and expects that each takes every grant, challenge and snapshot token.
    func expectAgreement(_ place: Comment) async throws {
        let gates = steps.indices
        for gate in gates {
            let generation = steps[gate].rawValue < Step.used.rawValue ? 0 : 1
            generations.insert(generation)
            grants.append((try await open(at: gate), generation))
        }
        for gate in gates {
            for (grant, generation) in grants {
                let status = try await status(of: grant, at: gate)
                #expect(status == .valid, "\(place): a grant of generation \(generation) at gate \(gate)")
            }
            for other in gates where other != gate {
                let verdict = try await verdict(ofChallengeOf: other, at: gate)
                #expect(verdict == .challengeElsewhere, "\(place): a challenge of gate \(other) at gate \(gate)")
                let code = await readsSnapshot(of: gate, askedBy: other)
                #expect(code == nil, "\(place): gate \(other) asks gate \(gate) for a snapshot")
            }
        }
    }

    /// How many other services each says to have another secret.
    func foreignSecrets() async throws -> [UInt64?] {
        var counts: [UInt64?] = []
        for service in cluster.services {
            counts.append(try await foreignSecrets(of: service.client()))
        }
        return counts
    }

    private func foreignSecrets(of client: RootgateClient) async throws -> UInt64? {
        try await client.statistics().first { $0.name == "cluster-foreign-secrets" }?.value
    }

    func report() throws -> ClusterReport {
        try ClusterReport(of: ClusterSettings(cluster.etcd.endpoints, name: TestCluster.name))
    }

    func forgetGrants(ofGeneration generation: Int) { grants.removeAll { $0.generation == generation } }

    private func client(_ gate: Int) throws -> RootgateClient { try cluster.services[gate].client() }

    func open(at gate: Int) async throws -> AccessGrant {
        let client = try client(gate)
        let proof = try person.proof(ofDevice: 0, signing: try await client.challenge())
        return try #require(try await client.open(proof, in: deck, atLeast: added).grant)
    }

    func status(of grant: AccessGrant, at gate: Int) async throws -> GrantStatus {
        try #require(try await client(gate).check([GrantCheck(grant, in: deck)]).first).status
    }

    /// What a service says to a proof over a challenge of another one.
    func verdict(ofChallengeOf other: Int, at gate: Int) async throws -> Verdict {
        let proof = try person.proof(ofDevice: 0, signing: try await client(other).challenge())
        return try await client(gate).verify(proof, in: deck)
    }

    /// Asks a service for the first piece of a snapshot, with the token that another one makes of its own file. Returns
    /// the code of the refusal; `nil`: it got the piece.
    func readsSnapshot(of gate: Int, askedBy other: Int) async -> ServiceError.Code? {
        do {
            let client = try client(gate)
            let issuer = try #require(try await client.hello().limits[15])
            let secret = try SecretSteps.file(of: other, in: scratch.path).load()
            let key = try secret.current.authenticator(for: .snapshots)
            let token = ClusterSettings.Peers.message(for: issuer, at: cluster.services[gate].endpoint)
                .withUnsafeBytes { key.tag(of: $0).bytes }
            _ = try await client.readSnapshot(SnapshotRequest(token: token, identifier: 0, offset: 0))
            return nil
        } catch {
            return (error as? ServiceError)?.code ?? .internalFault
        }
    }

    /// Makes changes until the log no longer goes back to its beginning.
    func outgrowTheLog() async throws {
        var generator = SeededGenerator(seed: runSeed)
        let client = try client(0)
        for _ in 0..<80 {
            let roots = try (0..<100).map { _ in try #require(Digest(generator.bytes(32))) }
            try await client.addRoots(roots, to: deck)
        }
        let log = OrderedLog(EtcdSession(try EtcdMembers(cluster.etcd.endpoints), first: 0), name: TestCluster.name)
        #expect(
            try await comesTrue {
                guard case .removed = try log.read(from: 1, after: nil, milliseconds: 1000) else { return false }
                return true
            })
    }
}
