import Core
import Foundation
import Hashing
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Wire

/// Grants against a live service.
@Suite("Grants against a live service")
struct GrantTests {
    private let service: TestService
    private let client: RootgateClient

    init() throws {
        service = try TestService { $0.grantSeconds = 60 }
        client = try service.client()
    }

    private func start(_ name: String = "doc", with people: [SimulatedPerson]) async throws -> CollaborationIdentifier {
        let owner = try #require(Account("owner"))
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: name))
        metadata.defaultPermission = .readWrite
        let prepared = try await client.send(PrepareCollaboration(owner: owner, metadata: metadata))
        let collaboration = prepared.collaborationIdentifier
        _ = try await client.send(
            AddParticipants(try people.map { NewParticipant(try $0.identity(in: collaboration)) }, to: collaboration))
        return collaboration
    }

    private func status(_ grant: AccessGrant, in collaboration: CollaborationIdentifier) async throws -> GrantStatus? {
        try await client.check([GrantCheck(grant, in: collaboration)]).first?.status
    }

    /// A collaboration with one participant, who has a grant.
    private func startWithGrant() async throws -> (SimulatedPerson, CollaborationIdentifier, AccessGrant) {
        let person = SimulatedPerson("ana")
        let collaboration = try await start(with: [person])
        return (person, collaboration, try #require(try await person.open(collaboration, client).grant))
    }

    @Test("The wire and the model agree on the sizes of a grant")
    func theWireAndTheModelMeanTheSameBytes() {
        #expect(AccessGrant.byteCount == 112 && GrantLayout.tagBytes == 24)
        #expect(Fingerprint.byteCount == 16)
    }

    @Test("A grant with any bit changed is forged")
    func aGrantWithAnyBitChangedIsForged() async throws {
        let (_, collaboration, grant) = try await startWithGrant()
        var checks: [GrantCheck] = []
        for bit in 0..<AccessGrant.byteCount * 8 {
            var bytes = grant.bytes
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            checks.append(GrantCheck(try #require(AccessGrant(bytes: bytes)), in: collaboration))
        }
        let decisions = try await client.check(checks)
        #expect(decisions.allSatisfy { $0.status == .forged && $0.permission == nil && $0.timeLeft == nil })
        let genuine = try await client.check([GrantCheck(grant, in: collaboration)])
        #expect(genuine[0].status == .valid)
        #expect(genuine[0].permission == .readWrite)
        #expect(genuine[0].role == .member)
        let left = try #require(genuine[0].timeLeft)
        #expect(left > .seconds(1) && left <= .seconds(60))
    }

    @Test("Whoever gets or shows a valid grant learns the selected options, for each collaboration its own")
    func selectedOptionsComeWithGrants() async throws {
        let ana = SimulatedPerson("ana")
        let rooms = [try await start("one", with: [ana]), try await start("two", with: [ana])]
        for (room, name) in zip(rooms, ["é", "b"]) {
            let group = OptionsGroup(
                identifier: "g",
                options: [name, "off"].map { CollaborationOption(title: $0, identifier: $0, isSelected: $0 == name) })
            _ = try await client.send(UpdateShareOptions(room, replacing: ShareOptions(optionsGroups: [group])))
        }
        var requests: [AccessRequest] = []
        for room in rooms {
            let proof = try await ana.device().signedIdentityProof(
                in: room, signing: try await client.challenges(1).challenges[0])
            requests.append(AccessRequest(collaboration: room, proof: proof))
        }
        requests.append(AccessRequest(collaboration: rooms[1], proof: requests[0].proof))
        let opened = try await client.open(requests, wantsOptions: true)
        #expect(opened.map(\.selectedOptions) == [["é"], ["b"], nil])
        let grants = try opened.prefix(2).map { try #require($0.grant) }
        let checks = [
            GrantCheck(grants[0], in: rooms[0]), GrantCheck(grants[1], in: rooms[0]),
            GrantCheck(grants[1], in: rooms[1]),
        ]
        let checked = try await client.check(checks, wantsOptions: true)
        #expect(checked.map(\.selectedOptions) == [["é"], nil, ["b"]])
        #expect(try await client.check(checks).allSatisfy { $0.selectedOptions == nil })
        let refused = try await client.check([checks[1]], wantsOptions: true)
        #expect(refused.map(\.status) == [.otherCollaboration] && refused[0].selectedOptions == nil)
    }

    @Test("A grant is for one collaboration and one device")
    func aGrantIsForOneCollaborationAndOneDevice() async throws {
        let person = SimulatedPerson("ana", devices: 2)
        let first = try await start("first", with: [person])
        let second = try await start("second", with: [person])
        let grant = try #require(try await person.open(first, device: 1, client).grant)
        #expect(try await status(grant, in: second) == .otherCollaboration)
        func key(_ device: Int) async throws -> [UInt8] {
            let proof = try await person.device(device).signedIdentityProof(in: first, signing: [0])
            return Array(SHA256.hash(proof.publicKey).bytes.prefix(16))
        }
        let decisions = try await client.check([
            GrantCheck(grant, in: first, deviceKey: try await key(1)),
            GrantCheck(grant, in: first, deviceKey: try await key(0)),
        ])
        #expect(decisions.map(\.status) == [.valid, .otherDevice])
    }

    @Test("A participant who is added again needs a new grant")
    func grantsAfterReturn() async throws {
        let (person, collaboration, old) = try await startWithGrant()
        let identity = try person.identity(in: collaboration)
        _ = try await client.send(RemoveParticipants([identity], from: collaboration))
        #expect(try await status(old, in: collaboration) == .revoked)
        _ = try await client.send(AddParticipants([NewParticipant(identity)], to: collaboration))
        #expect(try await status(old, in: collaboration) == .revoked)
        let new = try #require(try await person.open(collaboration, client).grant)
        #expect(try await status(new, in: collaboration) == .valid)
    }

    @Test("A root hash that is removed without the layer is refused")
    func rootRemovedWithoutTheLayer() async throws {
        let (person, collaboration, grant) = try await startWithGrant()
        let root = try person.identity(in: collaboration).rootHash
        try await client.removeRoots([root], from: collaboration)
        #expect(try await status(grant, in: collaboration) == .revoked)
        #expect(try await person.open(collaboration, client).verdict == .notParticipant)
        await #expect(throws: ServiceError(.grantRefused, "")) {
            try await client.send(PostNotices([.change(trigger: .edit)], on: collaboration, by: grant))
        }
    }

    @Test("A collaboration that is dropped without the layer can be stopped and started again")
    func droppedWithoutTheLayer() async throws {
        let (person, collaboration, grant) = try await startWithGrant()
        try await client.dropCollaboration(collaboration)
        #expect(try await status(grant, in: collaboration) == .revoked)
        #expect(try await client.send(StopSharing(collaboration)).changed == 1)
        await #expect(throws: ServiceError(.unknownCollaboration, "")) {
            try await client.send(ReadDetails(of: collaboration))
        }
        #expect(try await start(with: [person]) != collaboration)
    }

    @Test("A root hash that is added without the layer is granted, but gets no grant")
    func rootAddedWithoutTheLayer() async throws {
        let person = SimulatedPerson("ana")
        let collaboration = try await start(with: [])
        try await client.addRoots([try person.identity(in: collaboration).rootHash], to: collaboration)
        let decision = try await person.open(collaboration, client)
        #expect(decision == OpenDecision(verdict: .granted, grant: nil))
        let bare = try #require(CollaborationIdentifier("bare"))
        try await client.createCollaboration(bare)
        try await client.addRoots([try person.identity(in: bare).rootHash], to: bare)
        #expect(try await person.open(bare, client) == OpenDecision(verdict: .granted, grant: nil))
    }

    @Test("A grant survives a restart, and a removal after it revokes the grant")
    func aGrantSurvivesARestart() async throws {
        let (person, collaboration, grant) = try await startWithGrant()
        try service.restart()
        #expect(try await status(grant, in: collaboration) == .valid)
        _ = try await client.send(
            RemoveParticipants([try person.identity(in: collaboration)], from: collaboration))
        #expect(try await status(grant, in: collaboration) == .revoked)
        try service.restart()
        #expect(try await status(grant, in: collaboration) == .revoked)
    }

    @Test("Without the secret of before, a grant is forged after a restart")
    func aLostSecretEndsGrants() async throws {
        let (person, collaboration, grant) = try await startWithGrant()
        service.stop()
        try FileManager.default.removeItem(atPath: service.directory.path + "/data/secret")
        try service.start()
        #expect(try await status(grant, in: collaboration) == .forged)
        #expect(try await person.open(collaboration, client).grant != nil)
    }

    @Test("A check that demands a sequence sees the change of that sequence")
    func readsSeeEarlierWrites() async throws {
        let (person, collaboration, grant) = try await startWithGrant()
        let identity = try person.identity(in: collaboration)
        let removal = try await client.send(RemoveParticipants([identity], from: collaboration))
        let sequence = try #require(removal.sequence)
        #expect(try await client.check([GrantCheck(grant, in: collaboration)], atLeast: sequence)[0].status == .revoked)
        await #expect(throws: ServiceError(.behindSequence, "")) {
            try await client.check([GrantCheck(grant, in: collaboration)], atLeast: sequence + 1)
        }
        await #expect(throws: ServiceError(.behindSequence, "")) {
            let proof = try await person.device().signedIdentityProof(in: collaboration, signing: [1])
            return try await client.open(proof, in: collaboration, atLeast: sequence + 1)
        }
    }

    /// Grants are checked and proofs opened all the time while the person is removed and added. Every request after the
    /// acknowledged removal is refused.
    @Test("When a removal is acknowledged, every grant and every proof is refused")
    func acknowledgedRemovals() async throws {
        let person = SimulatedPerson("ana", devices: 4)
        let collaboration = try await start(with: [person])
        let identity = try person.identity(in: collaboration)
        let others = try (0..<4).map { _ in try service.client() }
        for _ in 0..<15 {
            let grants = try await withThrowingTaskGroup(of: AccessGrant?.self) { group in
                for (device, other) in others.enumerated() {
                    group.addTask { try await person.open(collaboration, device: device, other).grant }
                }
                var grants: [AccessGrant] = []
                for try await grant in group { grants.append(try #require(grant)) }
                return grants
            }
            // Every device got a grant at the same moment, and all grants are valid.
            let checks = grants.map { GrantCheck($0, in: collaboration) }
            #expect(try await client.check(checks).allSatisfy { $0.status == .valid })
            async let opened: [Bool] = withThrowingTaskGroup(of: AccessGrant?.self) { group in
                for (device, other) in others.enumerated() {
                    group.addTask { try await person.open(collaboration, device: device, other).grant }
                }
                var late: [AccessGrant] = []
                for try await grant in group { if let grant { late.append(grant) } }
                // All of these were requested before or while the person was removed; none is valid afterwards.
                _ = try await client.send(RemoveParticipants([identity], from: collaboration))
                return try await client.check(late.map { GrantCheck($0, in: collaboration) }).map {
                    $0.status == .revoked
                }
            }
            _ = try await client.send(RemoveParticipants([identity], from: collaboration))
            for other in others { #expect(try await other.check(checks).allSatisfy { $0.status == .revoked }) }
            #expect(try await person.open(collaboration, client).verdict == .notParticipant)
            #expect(try await opened.allSatisfy { $0 })
            _ = try await client.send(AddParticipants([NewParticipant(identity)], to: collaboration))
        }
    }

    @Test("Batches of many collaborations are answered in their order")
    func batchesOfManyCollaborationsAreAnsweredInTheirOrder() async throws {
        let person = SimulatedPerson("ana")
        var checks: [GrantCheck] = []
        var expected: [GrantStatus] = []
        for number in 0..<20 {
            let collaboration = try await start("doc \(number)", with: [person])
            let grant = try #require(try await person.open(collaboration, client).grant)
            if number % 3 == 0 { _ = try await client.send(StopSharing(collaboration)) }
            checks.append(GrantCheck(grant, in: collaboration))
            expected.append(number % 3 == 0 ? .revoked : .valid)
        }
        checks += checks + checks + checks.reversed()
        expected += expected + expected + expected.reversed()
        #expect(try await client.check(checks).map(\.status) == expected)
        #expect(try await client.check([]).isEmpty)
    }

    /// Proofs of several collaborations in turn, good ones among bad: each grant stands at its proof's place.
    @Test("A batch of proofs gets each grant in its place")
    func aBatchOfProofsGetsEachGrantInItsPlace() async throws {
        let people = (0..<4).map { SimulatedPerson("person \($0)", devices: 2) }
        let known = Array(people[..<3])
        let rooms = [try await start("one", with: known), try await start("two", with: known)]
        _ = try await client.send(RemoveParticipants([try people[2].identity(in: rooms[1])], from: rooms[1]))
        let challenges = try await client.challenges(64).challenges
        var requests: [AccessRequest] = []
        for (number, challenge) in challenges.enumerated() {
            let person = people[number % 4]
            let room = rooms[number / 4 % 3 == 2 ? 1 : 0]
            var proof = try await person.device(number % 2).signedIdentityProof(in: room, signing: challenge)
            if number % 7 == 6 { proof.signature[proof.signature.count - 1] ^= 1 }
            requests.append(AccessRequest(collaboration: room, proof: proof))
        }
        let decisions = try await client.open(requests)
        #expect(decisions.count == 64)
        var checks: [GrantCheck] = []
        for (number, (request, decision)) in zip(requests, decisions).enumerated() {
            let isMember = number % 4 < 2 || (number % 4 == 2 && request.collaboration == rooms[0])
            let expected: Verdict = isMember ? (number % 7 == 6 ? .badSignature : .granted) : .notParticipant
            #expect(decision.verdict == expected, "proof \(number)")
            #expect((decision.grant != nil) == (expected == .granted), "proof \(number)")
            guard let grant = decision.grant else { continue }
            let key = Array(SHA256.hash(request.proof.publicKey).bytes.prefix(16))
            checks.append(GrantCheck(grant, in: request.collaboration, deviceKey: key))
        }
        #expect(checks.count > 30)
        #expect(try await client.check(checks).allSatisfy { $0.status == .valid })
        // Shifted by one place, each grant is shown for another device or another collaboration.
        let shifted = zip(checks, checks.dropFirst()).map { check, next in
            GrantCheck(check.grant, in: next.collaboration, deviceKey: next.deviceKey)
        }
        #expect(
            try await client.check(shifted).allSatisfy { $0.status == .otherDevice || $0.status == .otherCollaboration }
        )
        #expect(try await client.open([]).isEmpty)
    }

    @Test("An expired grant is expired")
    func anExpiredGrantIsExpired() async throws {
        let brief = try TestService { $0.grantSeconds = 0 }
        let client = try brief.client()
        let person = SimulatedPerson("ana")
        let owner = try #require(Account("owner"))
        let local = LocalCollaborationIdentifier(rawValue: "brief")
        let collaboration = try await client.send(
            PrepareCollaboration(owner: owner, metadata: CollaborationMetadata(localIdentifier: local))
        ).collaborationIdentifier
        _ = try await client.send(
            AddParticipants([NewParticipant(try person.identity(in: collaboration))], to: collaboration))
        let grant = try #require(try await person.open(collaboration, client).grant)
        try await Task.sleep(for: .milliseconds(5))
        #expect(try await client.check([GrantCheck(grant, in: collaboration)]).map(\.status) == [.expired])
        await #expect(throws: ServiceError(.grantRefused, "")) {
            try await client.send(PostNotices([.change(trigger: .edit)], on: collaboration, by: grant))
        }
    }
}
