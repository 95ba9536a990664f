import Collaboration
import Core
import Foundation
import TestSupport
import Testing

@Suite("The owner")
struct OwnerTests {
    private let world = World()

    /// A start of the account "ana" without an identity: it derives from the collaboration's identifier.
    private func start(_ local: String = "deck", by owner: String = "ana") throws -> CollaborationIdentifier {
        try world.send(try prepare(local, by: owner)).collaborationIdentifier
    }

    private func prepare(
        _ local: String = "deck", by owner: String = "ana", as identity: PersonIdentity? = nil
    ) throws -> PrepareCollaboration {
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: local))
        metadata.initiatorNameComponents = NameComponents(givenName: "Ana")
        return PrepareCollaboration(owner: try account(owner), metadata: metadata, ownerIdentity: identity)
    }

    private func claim(
        _ collaboration: CollaborationIdentifier, as number: UInt8 = 1, by owner: String = "ana"
    ) throws -> ClaimOwnership {
        ClaimOwnership(of: collaboration, by: try account(owner), as: person(number))
    }

    private func transfer(
        _ collaboration: CollaborationIdentifier, to number: UInt8 = 2, from owner: String = "ana",
        as local: String? = nil
    ) throws -> TransferOwnership {
        TransferOwnership(
            of: collaboration, from: try account(owner), to: person(number),
            localIdentifier: local.map { LocalCollaborationIdentifier(rawValue: $0) })
    }

    /// A collaboration of "ana", who is person 1, with person 2, who has joined and is linked to "bo".
    private func shared() throws -> CollaborationIdentifier {
        let collaboration = try start()
        try world.send(try claim(collaboration))
        try world.join(person(1), in: collaboration)
        try world.admit([person(2), person(3)], to: collaboration)
        try world.send(LinkAccount(try account("bo"), to: person(2), in: collaboration))
        return collaboration
    }

    @Test("The owner's account claims an identity after the start, once", arguments: [false, true])
    func claimOnce(byPreparing: Bool) throws {
        let collaboration = try start()
        #expect(try world.participants(of: collaboration).isEmpty)
        if byPreparing {
            let answer = try world.send(try prepare(as: person(1)))
            #expect(!answer.isNew && answer.sequence == world.storage.sequence)
            let records = world.storage.records
            #expect(try world.send(try prepare(as: person(1))).sequence == world.storage.sequence)
            #expect(world.storage.records == records, "the same claim changed something")
            #expect(world.code(of: try prepare(as: person(2))) == .notPermitted)
        } else {
            #expect(try world.send(try claim(collaboration)).changed == 1)
            #expect(try world.send(try claim(collaboration)).changed == 0)
            #expect(world.code(of: try claim(collaboration, as: 2)) == .notPermitted)
        }
        let owner = try #require(try world.participants(of: collaboration)[person(1)])
        #expect(owner.role == .owner && owner.permission == .readWrite && owner.displayName == "Ana")
        #expect(world.storage.sets[collaboration] == [person(1).rootHash])
    }

    @Test("Nobody but the owner's account claims the ownership")
    func claimByOthers() throws {
        let collaboration = try start()
        #expect(world.code(of: try claim(collaboration, by: "bo")) == .notPermitted)
        #expect(world.code(of: try claim(try #require(CollaborationIdentifier("none")))) == .unknownCollaboration)
    }

    @Test("A participant becomes the owner by the claim, whose grants as a member are revoked")
    func claimByParticipant() throws {
        let collaboration = try start()
        try world.admit([person(1)], to: collaboration)
        let grant = try world.grant(person(1), in: collaboration)
        try world.send(try claim(collaboration))
        let owner = try #require(try world.participants(of: collaboration)[person(1)])
        #expect(owner.role == .owner && owner.permission == .readWrite && owner.state == .joined)
        #expect(world.code(of: PostNotices([], on: collaboration, by: grant)) == .grantRefused)
    }

    @Test("An identity that was removed takes part again when the owner claims it")
    func claimAfterRemoval() throws {
        let collaboration = try start()
        try world.admit([person(1)], to: collaboration)
        try world.send(RemoveParticipants([person(1)], from: collaboration))
        try world.send(try claim(collaboration))
        #expect(try world.participants(of: collaboration)[person(1)]?.role == .owner)
        #expect(world.storage.sets[collaboration] == [person(1).rootHash])
    }

    @Test("A start with a claimed owner can be abandoned, and a claim that is decided before is stale then")
    func abandonClaimed() throws {
        let collaboration = try start()
        let late = try world.edit(try claim(collaboration, as: 2))
        try world.send(try claim(collaboration))
        #expect(try world.isStale(late))
        let abandon = AbandonCollaboration(
            owner: try account("ana"), localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        #expect(try world.send(abandon).changed == 1)
        #expect(world.storage.records.isEmpty)
    }

    @Test("A handed over collaboration belongs to the new owner's account, and the former owner may still write")
    func handOver() throws {
        let collaboration = try shared()
        let grants = try [1, 2, 3].map { try world.grant(person($0), in: collaboration) }
        #expect(try world.send(try transfer(collaboration)).changed == 1)
        let people = try world.participants(of: collaboration)
        #expect(people[person(2)]?.role == .owner && people[person(2)]?.permission == .readWrite)
        #expect(people[person(1)]?.role == .member && people[person(1)]?.permission == .readWrite)
        for (grant, code) in zip(grants, [.grantRefused, .grantRefused, nil] as [ServiceError.Code?]) {
            #expect(world.code(of: PostNotices([], on: collaboration, by: grant)) == code)
        }
        func shares(_ name: String, _ scope: Scope) throws -> [CollaborationIdentifier] {
            try world.send(ListShares(of: try account(name), scope: scope)).shares.map(\.collaborationIdentifier)
        }
        #expect(try shares("ana", .private) == [] && shares("ana", .shared) == [collaboration])
        #expect(try shares("bo", .private) == [collaboration] && shares("bo", .shared) == [])
        #expect(try world.send(try prepare()).isNew, "the former owner's content is another one now")
        #expect(try world.send(try prepare(by: "bo")).collaborationIdentifier == collaboration)
        #expect(world.code(of: try transfer(collaboration, to: 3)) == .notPermitted)
        #expect(world.code(of: try claim(collaboration)) == .notPermitted)
        try world.send(RemoveParticipants([person(1)], from: collaboration))
        #expect(try shares("ana", .shared) == [])
        #expect(world.code(of: RemoveParticipants([person(2)], from: collaboration)) == .notPermitted)
    }

    private func shares(_ name: String, _ scope: Scope) throws -> [CollaborationIdentifier] {
        try world.send(ListShares(of: try account(name), scope: scope)).shares.map(\.collaborationIdentifier)
    }

    @Test("A hand-over to another identity of the owner's account leaves the former one with that account")
    func handOverToOwnIdentity() throws {
        let collaboration = try shared()
        let (ana, mallory) = (try account("ana"), try account("mallory"))
        try world.send(LinkAccount(ana, to: person(3), in: collaboration))
        try world.send(try transfer(collaboration, to: 3))
        #expect(try shares("ana", .private) == [collaboration] && shares("ana", .shared) == [])
        #expect(world.code(of: LinkAccount(mallory, to: person(1), in: collaboration)) == .notPermitted)
        let token = InvitationToken.random()
        try world.send(CreateInvitation(to: collaboration, token: token))
        let taken = try world.send(AcceptInvitation(token, for: mallory, identity: person(1)))
        #expect(taken.refusal == .conflict)
        // When the account has handed over the other identity, too, it takes part as both.
        try world.send(try transfer(collaboration, to: 2))
        #expect(try shares("ana", .shared) == [collaboration])
        let removed = try world.send(RemoveParticipants([person(3)], from: collaboration))
        #expect(removed.removed.map(\.account) == [ana])
        #expect(try shares("ana", .shared) == [collaboration], "person 1 is the account's, too")
        #expect(try world.send(RemoveParticipants([person(1)], from: collaboration)).removed.map(\.account) == [ana])
        #expect(try shares("ana", .shared) == [])
    }

    @Test("An account that hands over keeps the share that it has by its other identities, and their number")
    func handOverBySeveralIdentities() throws {
        let collaboration = try shared()
        let xena = try account("xena")
        func accept(_ number: UInt8) throws -> Acceptance {
            let token = InvitationToken.random()
            try world.send(CreateInvitation(to: collaboration, token: token))
            return try world.send(AcceptInvitation(token, for: xena, identity: person(number)))
        }
        for number: UInt8 in 10..<18 { #expect(try accept(number).state == .in) }
        try world.join(person(10), in: collaboration)
        try world.send(LinkAccount(xena, to: person(10), in: collaboration))
        try world.send(try transfer(collaboration, to: 10))
        #expect(try shares("xena", .shared) == [], "the account owns it")
        #expect(throws: ServiceError.self, "eight identities are all") { try accept(18) }
        try world.send(try transfer(collaboration, from: "xena"))
        try world.send(RemoveParticipants([person(10)], from: collaboration))
        #expect(try shares("xena", .shared) == [collaboration])
        try world.send(RemoveParticipants((11..<18).map { person($0) }, from: collaboration))
        #expect(try shares("xena", .shared) == [])
    }

    @Test("Only the owner hands over, and only to a participant who has joined and is linked")
    func refusedHandOver() throws {
        let collaboration = try shared()
        try world.send(AddParticipants([NewParticipant(person(4))], to: collaboration))
        #expect(world.code(of: try transfer(collaboration, from: "bo")) == .notPermitted)
        #expect(world.code(of: try transfer(collaboration, to: 1)) == .notPermitted)
        #expect(world.code(of: try transfer(collaboration, to: 3)) == .notPermitted, "not linked")
        #expect(world.code(of: try transfer(collaboration, to: 4)) == .notPermitted, "not joined")
        #expect(world.code(of: try transfer(collaboration, to: 9)) == .unknownParticipant)
        #expect(world.code(of: try transfer(collaboration, as: "")) == .malformedRequest)
    }

    @Test("The new owner's other content of the same name stays his: another name is needed")
    func handOverCollision() throws {
        let theirs = try start(by: "bo")
        let collaboration = try shared()
        #expect(world.code(of: try transfer(collaboration)) == .notPermitted)
        try world.send(try transfer(collaboration, as: "ana's deck"))
        #expect(try world.send(try prepare(by: "bo")).collaborationIdentifier == theirs)
        #expect(try world.send(try prepare("ana's deck", by: "bo")).collaborationIdentifier == collaboration)
    }

    @Test("An ended collaboration leaves the shared scopes of all who have owned it")
    func formerOwners() throws {
        let collaboration = try shared()
        try world.send(try transfer(collaboration))
        try world.send(LinkAccount(try account("cy"), to: person(3), in: collaboration))
        try world.send(try transfer(collaboration, to: 3, from: "bo"))
        func scope(_ name: String) throws -> [CollaborationIdentifier] {
            try world.send(ListShares(of: try account(name), scope: .shared)).shares.map(\.collaborationIdentifier)
        }
        #expect(try scope("ana") == [collaboration] && scope("bo") == [collaboration])
        try world.send(StopSharing(collaboration))
        #expect(try scope("ana") == [] && scope("bo") == [])
        #expect(world.storage.records.isEmpty)
    }

    @Test("A collaboration has so many former owners who take part, and one who has left makes room for another")
    func handOverLimit() throws {
        let collaboration = try start()
        let people = (0...UInt8(Limits.formerOwnersMax + 1)).map { person($0 + 1) }
        try world.send(try claim(collaboration))
        try world.join(people[0], in: collaboration)
        try world.send(LinkAccount(try account("ana"), to: people[0], in: collaboration))
        try world.admit(Array(people.dropFirst()), to: collaboration)
        for (number, person) in people.enumerated().dropFirst() {
            try world.send(LinkAccount(try account("account \(number)"), to: person, in: collaboration))
        }
        var owner = "ana"
        for number in 1...Limits.formerOwnersMax {
            try world.send(try transfer(collaboration, to: UInt8(number + 1), from: owner))
            owner = "account \(number)"
        }
        let error = world.error(of: try transfer(collaboration, to: UInt8(people.count), from: owner))
        #expect(error?.code == .limitExceeded && error?.detail == UInt32(Limits.formerOwnersMax))
        #expect(error?.reason.contains("former owner") == true, "\(error?.reason ?? "")")
        // A former owner who has left makes room for another one.
        try world.send(RemoveParticipants([people[3]], from: collaboration))
        try world.send(try transfer(collaboration, to: UInt8(people.count), from: owner))
        owner = "account \(people.count - 1)"
        try world.send(try transfer(collaboration, to: 1, from: owner))
        try world.send(StopSharing(collaboration))
        #expect(world.storage.records.isEmpty)
    }

    @Test("The owner's identity and the owner's account stay together")
    func oneAccount() throws {
        let collaboration = try start()
        try world.admit([person(1)], to: collaboration)
        try world.send(LinkAccount(try account("bo"), to: person(1), in: collaboration))
        #expect(world.code(of: try claim(collaboration)) == .notPermitted)
        #expect(world.code(of: try prepare(as: person(1))) == .notPermitted)
        try world.send(LinkAccount(nil, to: person(1), in: collaboration))
        let claimed = try world.edit(try claim(collaboration))
        try world.send(LinkAccount(try account("bo"), to: person(1), in: collaboration))
        #expect(try world.isStale(claimed))
        try world.send(LinkAccount(nil, to: person(1), in: collaboration))
        try world.send(try claim(collaboration))
        func link(_ name: String?) throws -> LinkAccount {
            LinkAccount(try name.map { try account($0) }, to: person(1), in: collaboration)
        }
        #expect(world.code(of: try link("bo")) == .notPermitted)
        let token = InvitationToken.random()
        try world.send(CreateInvitation(to: collaboration, token: token))
        let acceptance = AcceptInvitation(token, for: try account("bo"), identity: person(1))
        #expect(try world.send(acceptance).refusal == .conflict)
        #expect(try world.send(try link("ana")).changed == 1 && world.send(try link(nil)).changed == 1)
    }

    @Test(
        "A hand-over is stale when the new owner was removed or linked elsewhere meanwhile", arguments: [false, true])
    func handOverRace(isRemoved: Bool) throws {
        let collaboration = try shared()
        let edit = try world.edit(try transfer(collaboration))
        if isRemoved {
            try world.send(RemoveParticipants([person(2)], from: collaboration))
        } else {
            try world.send(LinkAccount(try account("cy"), to: person(2), in: collaboration))
        }
        #expect(try world.isStale(edit))
    }
}
