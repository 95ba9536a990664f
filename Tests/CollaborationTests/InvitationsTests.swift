import Collaboration
import Core
import Foundation
import TestSupport
import Testing

@Suite("Invitations")
struct InvitationsTests {
    private let world = World()

    private func token(_ number: UInt8) -> InvitationToken {
        InvitationToken(bytes: [UInt8](repeating: number, count: 16))
    }

    private func refusal(
        _ number: UInt8, for name: String = "bo", identity: PersonIdentity? = nil
    ) throws -> Acceptance.Refusal? {
        let records = world.storage.records
        let answer = try world.send(AcceptInvitation(token(number), for: try account(name), identity: identity))
        #expect(answer.token == token(number))
        #expect((answer.share == nil) == (answer.refusal != nil))
        if answer.refusal != nil { #expect(world.storage.records == records) }
        return answer.refusal
    }

    @Test("A new invitation is pending, keeps the given values, and its identifier is not its token")
    func create() throws {
        let collaboration = try world.start()
        let expiry = world.now + 60
        let invitation = try world.send(
            CreateInvitation(
                to: collaboration, token: token(1), role: .administrator, permission: .readOnly, expiresAt: expiry))
        #expect(invitation.collaboration == collaboration && invitation.state == .pending)
        #expect(invitation.role == .administrator && invitation.permission == .readOnly)
        #expect(invitation.createdAt == world.now && invitation.expiresAt == expiry)
        #expect(invitation.acceptedBy == nil && invitation.acceptedAt == nil)
        #expect(invitation.identifier == Array(standIn(token(1).bytes).bytes.prefix(16)).hexadecimal)
        let bare = try world.send(CreateInvitation(to: collaboration, token: token(0x77)))
        #expect(bare.role == .member && bare.permission == nil && bare.expiresAt == nil)
        for record in world.storage.records.values {
            #expect(!record.key.contains(token(0x77).bytes) && !record.value.contains(token(0x77).bytes))
        }
    }

    @Test("Making an invitation again with its token changes nothing")
    func createAgain() throws {
        let collaboration = try world.start()
        let first = try world.send(CreateInvitation(to: collaboration, token: token(1)))
        let records = world.storage.records
        world.now += 10
        let again = CreateInvitation(to: collaboration, token: token(1), role: .administrator, permission: .readOnly)
        #expect(try world.send(again) == first)
        #expect(world.storage.records == records)
        #expect(try refusal(1) == nil)
        #expect(try world.send(again).state == .accepted)
    }

    @Test("A token belongs to one collaboration and can't be used for another")
    func tokenReuse() throws {
        let (first, second) = (try world.start("a"), try world.start("b"))
        try world.send(CreateInvitation(to: first, token: token(1)))
        #expect(world.code(of: CreateInvitation(to: second, token: token(1))) == .notPermitted)
        #expect(try world.send(ListInvitations(of: second)).invitations.isEmpty)
        let share = try world.send(AcceptInvitation(token(1), for: try account("bo"))).share
        #expect(share?.collaborationIdentifier == first)
        #expect(world.code(of: CreateInvitation(to: second, token: token(1))) == .notPermitted)
    }

    @Test("Nobody is invited to be the owner")
    func owner() throws {
        let collaboration = try world.start()
        #expect(world.code(of: CreateInvitation(to: collaboration, role: .owner)) == .notPermitted)
    }

    @Test("Accepting puts the share into the account's scope and adds the identity as it was invited")
    func accept() throws {
        let collaboration = try world.start("deck", options: .deck)
        try world.send(
            CreateInvitation(to: collaboration, token: token(1), role: .administrator, permission: .readOnly))
        let bo = try account("bo")
        let request = AcceptInvitation(token(1), for: bo, identity: person(2), displayName: "Bo")
        #expect(try world.topics(request) == [.collaboration(collaboration), .account(bo)])
        let answer = try world.send(request)
        #expect(answer.refusal == nil)
        #expect(answer.share == (try world.send(FindHighlight(collaboration))))
        let participant = try #require(try world.participants(of: collaboration)[person(2)])
        #expect(participant.role == .administrator && participant.permission == .readOnly)
        #expect(participant.displayName == "Bo" && participant.state == .invited)
        #expect(world.storage.sets[collaboration]?.contains(person(2).rootHash) == true)
        #expect(
            try world.send(ListShares(of: bo, scope: .shared)).shares.map(\.collaborationIdentifier)
                == [collaboration])
        let settled = try world.send(ListInvitations(of: collaboration, includesSettled: true)).invitations
        #expect(settled.map(\.acceptedBy) == [bo] && settled.map(\.acceptedAt) == [world.now])
    }

    @Test("Accepting again with the same account changes nothing and adds no identity")
    func acceptAgain() throws {
        let collaboration = try world.start()
        try world.send(CreateInvitation(to: collaboration, token: token(1), expiresAt: world.now + 60))
        #expect(try refusal(1) == nil)
        let records = world.storage.records
        world.now += 3600
        #expect(try refusal(1, identity: person(5)) == nil, "not even expired")
        #expect(world.storage.records == records)
    }

    @Test("An identity that takes part already stays as it is")
    func acceptAsParticipant() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        let before = try world.participants(of: collaboration)
        try world.send(CreateInvitation(to: collaboration, token: token(1), role: .administrator))
        #expect(try refusal(1, identity: person(2)) == nil)
        #expect(try world.participants(of: collaboration) == before)
    }

    @Test("Unknown: a token that nobody has made an invitation with, or of a collaboration that has ended")
    func unknown() throws {
        #expect(try refusal(1) == .unknown)
        let collaboration = try world.start()
        try world.send(CreateInvitation(to: collaboration, token: token(1)))
        #expect(try refusal(2) == .unknown)
        try world.send(StopSharing(collaboration))
        #expect(try refusal(1) == .unknown)
    }

    @Test("Revoked: an invitation that was taken back")
    func revoked() throws {
        let collaboration = try world.start()
        let invitation = try world.send(CreateInvitation(to: collaboration, token: token(1)))
        try world.send(RevokeInvitation(invitation.identifier, of: collaboration))
        #expect(try refusal(1) == .revoked)
    }

    @Test("Expired: from the very millisecond on")
    func expired() throws {
        let collaboration = try world.start()
        let expiry = world.now + 60
        try world.send(CreateInvitation(to: collaboration, token: token(1), expiresAt: expiry))
        try world.send(CreateInvitation(to: collaboration, token: token(2), expiresAt: expiry))
        world.now = expiry - 0.001
        #expect(try world.send(ListInvitations(of: collaboration)).invitations.count == 2)
        #expect(try refusal(2) == nil)
        world.now = expiry
        #expect(try refusal(1) == .expired)
        let states = try world.send(ListInvitations(of: collaboration, includesSettled: true)).invitations.map(\.state)
        #expect(Set(states) == [.expired, .accepted])
        #expect(try world.send(ListInvitations(of: collaboration)).invitations.isEmpty)
    }

    @Test("Used: an invitation that somebody else has accepted")
    func used() throws {
        let collaboration = try world.start()
        try world.send(CreateInvitation(to: collaboration, token: token(1), expiresAt: world.now + 60))
        #expect(try refusal(1, for: "bo") == nil)
        #expect(try refusal(1, for: "cy") == .used)
        world.now += 60
        #expect(try refusal(1, for: "cy") == .used)
    }

    @Test("Conflict: an identity that was removed can't return by an invitation")
    func conflictOfRemoved() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        try world.send(CreateInvitation(to: collaboration, token: token(1)))
        #expect(try refusal(1, identity: person(2)) == .conflict)
        #expect(world.storage.sets[collaboration] == [person(1).rootHash])
        try world.send(AddParticipants([NewParticipant(person(2))], to: collaboration))
        #expect(try refusal(1, identity: person(2)) == nil, "a refusal has not used it up")
    }

    @Test("Conflict: an identity that is linked to somebody else's account")
    func conflictOfLinked() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        try world.send(LinkAccount(try account("cy"), to: person(2), in: collaboration))
        try world.send(CreateInvitation(to: collaboration, token: token(1)))
        #expect(try refusal(1, for: "bo", identity: person(2)) == .conflict)
        #expect(try refusal(1, for: "cy", identity: person(2)) == nil)
    }

    @Test("A name that is too long accepts nothing")
    func longName() throws {
        let collaboration = try world.start()
        try world.send(CreateInvitation(to: collaboration, token: token(1)))
        let name = String(repeating: "a", count: Limits.textBytesMax + 1)
        let request = AcceptInvitation(token(1), for: try account("bo"), identity: person(2), displayName: name)
        #expect(world.code(of: request) == .limitExceeded)
    }

    @Test("Revoking twice is harmless, an accepted invitation can't be revoked, and a missing one is unknown")
    func revoke() throws {
        let collaboration = try world.start()
        let other = try world.start("other")
        let first = try world.send(CreateInvitation(to: collaboration, token: token(1)))
        #expect(try world.send(RevokeInvitation(first.identifier, of: collaboration)).changed == 1)
        #expect(
            try world.send(RevokeInvitation(first.identifier, of: collaboration))
                == ChangeReceipt(sequence: nil, changed: 0))
        #expect(try world.send(CreateInvitation(to: collaboration, token: token(1))).state == .revoked)
        let second = try world.send(CreateInvitation(to: collaboration, token: token(2)))
        #expect(try refusal(2) == nil)
        #expect(world.code(of: RevokeInvitation(second.identifier, of: collaboration)) == .notPermitted)
        let never = [UInt8](repeating: 1, count: 16).hexadecimal
        #expect(world.code(of: RevokeInvitation(never, of: collaboration)) == .unknownInvitation)
        #expect(world.code(of: RevokeInvitation(first.identifier, of: other)) == .unknownInvitation)
        for text in ["", "01", never + "01", String(never.dropLast()) + "g", token(1).text] {
            #expect(world.code(of: RevokeInvitation(text, of: collaboration)) == .malformedRequest, "\(text)")
        }
        let nobody = try #require(CollaborationIdentifier("nobody"))
        #expect(world.code(of: RevokeInvitation(never, of: nobody)) == .unknownCollaboration)
    }

    @Test("An expired invitation can still be revoked")
    func revokeExpired() throws {
        let collaboration = try world.start()
        let invitation = try world.send(
            CreateInvitation(to: collaboration, token: token(1), expiresAt: world.now))
        #expect(invitation.state == .expired)
        #expect(try world.send(RevokeInvitation(invitation.identifier, of: collaboration)).changed == 1)
        #expect(try refusal(1) == .revoked)
    }

    @Test("Pages of any size list every invitation once: those that are pending, or all")
    func listing() throws {
        try withSeeds(10) { generator, context in
            let world = World()
            let collaboration = try world.start()
            var expected: [String: InvitationState] = [:]
            for _ in 0..<Int.random(in: 0...30, using: &generator) {
                let token = InvitationToken(bytes: generator.bytes(16))
                let isExpired = Int.random(in: 0..<4, using: &generator) == 0
                let made = try world.send(
                    CreateInvitation(to: collaboration, token: token, expiresAt: isExpired ? world.now : nil))
                expected[made.identifier] = isExpired ? .expired : .pending
                switch Int.random(in: 0..<4, using: &generator) {
                case 0:
                    try world.send(RevokeInvitation(made.identifier, of: collaboration))
                    expected[made.identifier] = .revoked
                case 1 where !isExpired:
                    try world.send(AcceptInvitation(token, for: try account("bo")))
                    expected[made.identifier] = .accepted
                default: break
                }
            }
            for includesSettled in [false, true] {
                var listed: [Invitation] = []
                var hasMore = true
                let limit = Int.random(in: 1...7, using: &generator)
                while hasMore, listed.count <= expected.count {
                    let page = try world.send(
                        ListInvitations(
                            of: collaboration, includesSettled: includesSettled, after: listed.last?.identifier,
                            limit: limit))
                    (listed, hasMore) = (listed + page.invitations, page.hasMore)
                    #expect(page.invitations.count == limit || !hasMore, context)
                }
                let all = Dictionary(listed.map { ($0.identifier, $0.state) }) { first, _ in first }
                #expect(all.count == listed.count, context)
                #expect(all == expected.filter { includesSettled || $0.value == .pending }, context)
            }
        }
    }

    @Test("A page of no items, of too many, or after a malformed identifier is refused")
    func listingLimits() throws {
        let collaboration = try world.start()
        #expect(world.code(of: ListInvitations(of: collaboration, limit: 0)) == .malformedRequest)
        #expect(world.code(of: ListInvitations(of: collaboration, limit: 257)) == .limitExceeded)
        #expect(world.code(of: ListInvitations(of: collaboration, after: "?")) == .malformedRequest)
        let ana = try account("ana")
        #expect(world.code(of: ListShares(of: ana, scope: .private, limit: 0)) == .malformedRequest)
        #expect(world.code(of: ListShares(of: ana, scope: .private, limit: 257)) == .limitExceeded)
        #expect(world.code(of: ListShares(of: ana, scope: .private, after: "")) == .malformedRequest)
    }

    @Test("The private scope has what the account has started, the shared one what it has accepted")
    func scopes() throws {
        let mine = try ["a", "b", "c"].map { try world.start($0) }
        let (ana, bo) = (try account("ana"), try account("bo"))
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "a"))
        metadata.title = "Bo's"
        let theirs = try world.send(PrepareCollaboration(owner: bo, metadata: metadata)).collaborationIdentifier
        for (index, collaboration) in mine.prefix(2).enumerated() {
            try world.send(CreateInvitation(to: collaboration, token: token(UInt8(index))))
            #expect(try refusal(UInt8(index)) == nil)
        }
        func shares(_ account: Account, _ scope: Scope) throws -> [CollaborationIdentifier] {
            var all: [CollaborationIdentifier] = []
            var after: String?
            repeat {
                let page = try world.send(ListShares(of: account, scope: scope, after: after, limit: 1))
                (all, after) = (all + page.shares.map(\.collaborationIdentifier), page.next)
            } while after != nil && all.count < 10
            #expect(try world.send(ListShares(of: account, scope: scope)).shares.map(\.collaborationIdentifier) == all)
            return all
        }
        #expect(try shares(ana, .private) == mine)
        #expect(try shares(ana, .shared) == [])
        #expect(try shares(bo, .private) == [theirs])
        #expect(try shares(bo, .shared) == mine.prefix(2).sorted())
        #expect(try shares(try account("b"), .shared) == [])
        try world.send(StopSharing(mine[0]))
        #expect(try shares(ana, .private) == Array(mine.dropFirst()))
        #expect(try shares(bo, .shared) == [mine[1]])
    }

    @Test("A share is out of the scope of an account whose linked participant was removed")
    func scopeAfterRemoval() throws {
        let collaboration = try world.start()
        let bo = try account("bo")
        try world.send(CreateInvitation(to: collaboration, token: token(1)))
        #expect(try refusal(1, identity: person(2)) == nil)
        try world.join(person(2), in: collaboration)
        try world.send(LinkAccount(bo, to: person(2), in: collaboration))
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        #expect(try world.send(ListShares(of: bo, scope: .shared)).shares.isEmpty)
    }
}
