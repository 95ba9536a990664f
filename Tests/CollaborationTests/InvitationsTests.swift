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
        #expect((answer.state == nil) == (answer.refusal != nil))
        #expect((answer.collaborationIdentifier == nil) == (answer.refusal != nil))
        #expect((answer.share == nil) == (answer.state != .in), "only who is in gets the share")
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
        #expect(invitation.identity == nil && invitation.completedAt == nil)
        #expect(invitation.identifier == Array(standIn(token(1).bytes).bytes.prefix(16)).hexadecimal)
        let bare = try world.send(CreateInvitation(to: collaboration, token: token(0x77)))
        #expect(bare.role == .member && bare.permission == nil && bare.expiresAt == nil)
        for record in world.storage.records.values {
            #expect(!record.key.contains(token(0x77).bytes) && !record.value.contains(token(0x77).bytes))
        }
    }

    @Test("Making an invitation again with its token changes nothing, and with other values it is refused")
    func createAgain() throws {
        let collaboration = try world.start()
        let expiry = world.now + 60
        let again = CreateInvitation(
            to: collaboration, token: token(1), role: .administrator, permission: .readOnly, expiresAt: expiry)
        let first = try world.send(again)
        let records = world.storage.records
        world.now += 10
        #expect(try world.send(again) == first)
        #expect(world.storage.records == records)
        let changes: [(inout CreateInvitation) -> Void] = [
            { $0.role = .member }, { $0.role = nil }, { $0.permission = nil }, { $0.permission = .readWrite },
            { $0.expiresAt = nil }, { $0.expiresAt = expiry + 1 }, { $0.inviter = Inviter(name: "Bo") },
        ]
        for change in changes {
            var other = again
            change(&other)
            #expect(world.code(of: other) == .notPermitted)
        }
        #expect(try refusal(1) == nil)
        #expect(try world.send(again).state == .accepted)
        world.now += 60
        #expect(try world.send(again).state == .expired)
    }

    @Test("An invitation that nobody could accept in time is not made")
    func createdTooLate() throws {
        let collaboration = try world.start()
        for expiry in [world.now, world.now - 0.001, world.now - 3600] {
            let error = world.error(of: CreateInvitation(to: collaboration, expiresAt: expiry))
            #expect(error?.code == .malformedRequest && error?.reason.hasPrefix("expiresAt ") == true)
        }
        #expect(world.code(of: CreateInvitation(to: collaboration, expiresAt: world.now + 0.001)) == nil)
    }

    @Test("Who invites is the initiator, unless the request names somebody else")
    func inviters() throws {
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        metadata.initiatorHandle = "ana@example.com"
        metadata.initiatorNameComponents = NameComponents(givenName: "Ana", familyName: "Lima")
        let (ana, bo, cy) = (try account("ana"), try account("bo"), try account("cy"))
        let collaboration = try world.send(PrepareCollaboration(owner: ana, metadata: metadata))
            .collaborationIdentifier
        try world.send(
            AddParticipants([NewParticipant(person(2), displayName: "Bo")], to: collaboration))
        try world.join(person(2), in: collaboration)
        try world.send(LinkAccount(bo, to: person(2), in: collaboration))
        let initiator = Inviter(name: "Ana Lima", handle: "ana@example.com")
        let cases: [(Inviter?, Inviter?)] = [
            (nil, initiator),
            (Inviter(account: ana), Inviter(account: ana, name: "Ana Lima", handle: "ana@example.com")),
            (Inviter(account: bo), Inviter(account: bo, name: "Bo")), (Inviter(account: cy), Inviter(account: cy)),
            (Inviter(name: "Bo B."), Inviter(name: "Bo B.")), (Inviter(handle: "+1"), Inviter(handle: "+1")),
            (Inviter(account: bo, handle: "bo@b.example"), Inviter(account: bo, handle: "bo@b.example")),
        ]
        for (number, (given, told)) in cases.enumerated() {
            let token = token(UInt8(number))
            let made = try world.send(CreateInvitation(to: collaboration, token: token, inviter: given))
            #expect(made.inviter == told)
            let preview = try world.send(ReadInvitation(token))
            #expect(preview.inviterName == told?.name && preview.inviterHandle == told?.handle)
        }
        #expect(world.code(of: CreateInvitation(to: collaboration, inviter: Inviter())) == .malformedRequest)
        let long = String(repeating: "a", count: Limits.textBytesMax + 1)
        for inviter in [Inviter(name: long), Inviter(handle: long)] {
            let error = world.error(of: CreateInvitation(to: collaboration, inviter: inviter))
            #expect(error?.code == .limitExceeded && error?.reason.contains("inviter.") == true)
        }
        let bare = try world.send(
            PrepareCollaboration(
                owner: ana, metadata: CollaborationMetadata(localIdentifier: .init(rawValue: "bare"))))
        #expect(try world.send(CreateInvitation(to: bare.collaborationIdentifier)).inviter == nil)
        let named = try world.start("named")
        #expect(try world.send(CreateInvitation(to: named)).inviter == Inviter(name: "Ana"), "the owner's name")
    }

    @Test("An inviter has the name of a participant that the account is linked to, not of one whose link is left over")
    func leftOverLink() throws {
        let collaboration = try world.start()
        let bo = try account("bo")
        for (number, name) in [(UInt8(2), "Bert"), (3, "Bo")] {
            try world.send(AddParticipants([NewParticipant(person(number), displayName: name)], to: collaboration))
            try world.join(person(number), in: collaboration)
        }
        let link = LinkAccount(bo, to: person(2), in: collaboration)
        let record = try #require(try world.edit(link)?.records.first { $0.value == [] })
        try world.send(link)
        try world.send(LinkAccount(nil, to: person(2), in: collaboration))
        var edit = Edit(collaboration)
        edit.records = [RecordEdit(record.key, value: [])]
        _ = try world.storage.apply(edit)
        func inviter() throws -> Inviter? {
            try world.send(CreateInvitation(to: collaboration, inviter: Inviter(account: bo))).inviter
        }
        #expect(try inviter() == Inviter(account: bo))
        try world.send(LinkAccount(bo, to: person(3), in: collaboration))
        #expect(try inviter() == Inviter(account: bo, name: "Bo"))
    }

    @Test("Reading an invitation tells title, inviter, role, permission, expiry and state, and nothing else")
    func read() throws {
        let collaboration = try world.start("deck", options: .deck)
        let expiry = world.now + 60
        let request = CreateInvitation(
            to: collaboration, token: token(1), role: .administrator, expiresAt: expiry,
            inviter: Inviter(account: try account("secret"), name: "Bo", handle: "bo@b.example"))
        let identifier = try world.send(request).identifier
        func fields() throws -> String {
            String(decoding: try JSON.encode(try world.send(ReadInvitation(token(1)))), as: UTF8.self)
        }
        func json(_ fields: [String: Any]) throws -> String {
            let data = try JSONSerialization.data(withJSONObject: fields, options: [.sortedKeys])
            return String(decoding: data, as: UTF8.self)
        }
        var expected: [String: Any] = [
            "token": token(1).text, "title": "Deck", "inviterName": "Bo", "inviterHandle": "bo@b.example",
            "role": "administrator", "permission": "readWrite", "state": "pending",
            "expiresAt": Int(expiry.timeIntervalSince1970 * 1000),
        ]
        #expect(try fields() == json(expected))
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["view"]))
        expected["permission"] = "readOnly"
        #expect(try fields() == json(expected), "what the accepter would get now")
        #expect(try refusal(1) == nil)
        expected["state"] = "accepted"
        #expect(try fields() == json(expected))
        world.now = expiry
        #expect(try fields() == json(["token": token(1).text, "refusal": "expired"]))
        try world.send(RevokeInvitation(identifier, of: collaboration))
        #expect(try fields() == json(["token": token(1).text, "refusal": "revoked"]))
        try world.send(StopSharing(collaboration))
        #expect(try fields() == json(["token": token(1).text, "refusal": "unknown"]))
    }

    @Test("A token belongs to one collaboration and can't be used for another")
    func tokenReuse() throws {
        let (first, second) = (try world.start("a"), try world.start("b"))
        try world.send(CreateInvitation(to: first, token: token(1)))
        #expect(world.code(of: CreateInvitation(to: second, token: token(1))) == .notPermitted)
        #expect(try world.send(ListInvitations(of: second)).invitations.isEmpty)
        #expect(try world.send(AcceptInvitation(token(1), for: try account("bo"))).collaborationIdentifier == first)
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
        #expect(answer.refusal == nil && answer.state == .in)
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
        #expect(settled.map(\.identity) == [person(2)] && settled.map(\.completedAt) == [world.now])
    }

    @Test("Accepting without an identity lets nobody in; accepting again with one completes it")
    func completeLater() throws {
        let collaboration = try world.start("deck", options: .deck)
        try world.send(CreateInvitation(to: collaboration, token: token(1), permission: .readOnly))
        let bo = try account("bo")
        let before = try world.participants(of: collaboration)
        let sets = world.storage.sets
        #expect(try world.topics(AcceptInvitation(token(1), for: bo)).isEmpty)
        let first = try world.send(AcceptInvitation(token(1), for: bo))
        #expect(first.state == .accepted && first.collaborationIdentifier == collaboration)
        #expect(try world.participants(of: collaboration) == before && world.storage.sets == sets)
        #expect(try world.send(ListShares(of: bo, scope: .shared)).shares.isEmpty, "the account takes no part yet")
        let accepted = try world.send(ListInvitations(of: collaboration, includesSettled: true)).invitations
        #expect(accepted.map(\.state) == [.accepted] && accepted.map(\.acceptedBy) == [bo])
        let date = world.now
        world.now += 60
        let second = try world.send(AcceptInvitation(token(1), for: bo, identity: person(2), displayName: "Bo"))
        let highlight = try world.send(FindHighlight(collaboration))
        #expect(second.state == .in && second.share == highlight)
        let participant = try #require(try world.participants(of: collaboration)[person(2)])
        #expect(participant.permission == .readOnly && participant.displayName == "Bo")
        #expect(try world.send(ListShares(of: bo, scope: .shared)).shares == [try #require(second.share)])
        let completed = try world.send(ListInvitations(of: collaboration, includesSettled: true)).invitations
        #expect(completed.map(\.state) == [.completed] && completed.map(\.identity) == [person(2)])
        #expect(completed.map(\.acceptedAt) == [date] && completed.map(\.completedAt) == [world.now])
    }

    @Test("An identity that another account has come in with is not taken over")
    func identityOfAnotherAccount() throws {
        let collaboration = try world.start()
        for number in [UInt8(1), 2] { try world.send(CreateInvitation(to: collaboration, token: token(number))) }
        #expect(try refusal(1, for: "bo", identity: person(2)) == nil)
        #expect(try refusal(2, for: "cy", identity: person(2)) == .conflict)
        #expect(try refusal(2, for: "bo", identity: person(2)) == nil, "the same account has two invitations")
    }

    @Test("Accepting again with the same account changes nothing and adds no identity")
    func acceptAgain() throws {
        let collaboration = try world.start()
        try world.send(CreateInvitation(to: collaboration, token: token(1), expiresAt: world.now + 60))
        #expect(try refusal(1) == nil)
        var records = world.storage.records
        #expect(try refusal(1) == nil)
        #expect(world.storage.records == records)
        #expect(try refusal(1, identity: person(5)) == nil)
        records = world.storage.records
        world.now += 3600
        for identity in [nil, person(5)] { #expect(try refusal(1, identity: identity) == nil, "not even expired") }
        #expect(try refusal(1, identity: person(6)) == .conflict, "a second identity")
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
        #expect(try refusal(2, identity: person(2)) == nil)
        world.now = expiry
        #expect(try refusal(1) == .expired)
        let states = try world.send(ListInvitations(of: collaboration, includesSettled: true)).invitations.map(\.state)
        #expect(Set(states) == [.expired, .completed])
        #expect(try world.send(ListInvitations(of: collaboration)).invitations.isEmpty)
    }

    @Test("An invitation that has expired stays so when the date is set back; new ones expire later than that")
    func dateSetBack() throws {
        let collaboration = try world.start()
        try world.send(CreateInvitation(to: collaboration, token: token(1), expiresAt: world.now + 60))
        world.now += 60
        world.durableTime = world.now
        #expect(try refusal(1) == .expired)
        world.now -= 3600
        #expect(try refusal(1) == .expired)
        #expect(try world.send(ReadInvitation(token(1))).refusal == .expired)
        #expect(try world.send(ListInvitations(of: collaboration)).invitations.isEmpty)
        #expect(
            world.code(of: CreateInvitation(to: collaboration, token: token(2), expiresAt: world.now + 60))
                == .malformedRequest)
        try world.send(CreateInvitation(to: collaboration, token: token(3), expiresAt: world.now + 3661))
        #expect(try refusal(3) == nil)
    }

    @Test("Before 1970 everything works as in 1970")
    func before1970() throws {
        world.now = Date(timeIntervalSince1970: -86_400 * 365)
        let collaboration = try world.start()
        try world.send(CreateInvitation(to: collaboration, token: token(1)))
        #expect(try refusal(1, identity: person(2)) == nil)
        #expect(try world.post([.change(trigger: .edit)], by: person(1), on: collaboration).changed == 1)
        let notices = try world.send(ReadNotices(.participant(person(2), of: collaboration))).notices
        #expect(notices.map(\.date) == [Date(timeIntervalSince1970: 0)])
    }

    @Test("Used: an invitation that somebody else has accepted")
    func used() throws {
        let collaboration = try world.start()
        try world.send(CreateInvitation(to: collaboration, token: token(1), expiresAt: world.now + 60))
        #expect(try refusal(1, for: "bo") == nil)
        #expect(try refusal(1, for: "cy") == .used)
        #expect(try refusal(1, for: "bo", identity: person(2)) == nil)
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

    @Test("Revoking twice is harmless, a completed invitation can't be revoked, and a missing one is unknown")
    func revoke() throws {
        let collaboration = try world.start()
        let other = try world.start("other")
        let first = try world.send(CreateInvitation(to: collaboration, token: token(1)))
        #expect(try world.send(RevokeInvitation(first.identifier, of: collaboration)).changed == 1)
        #expect(
            try world.send(RevokeInvitation(first.identifier, of: collaboration))
                == ChangeReceipt(sequence: world.storage.sequence, changed: 0))
        #expect(try world.send(CreateInvitation(to: collaboration, token: token(1))).state == .revoked)
        let second = try world.send(CreateInvitation(to: collaboration, token: token(2)))
        #expect(try refusal(2, identity: person(2)) == nil)
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
            CreateInvitation(to: collaboration, token: token(1), expiresAt: world.now + 1))
        world.now += 1
        #expect(try world.send(ReadInvitation(token(1))).refusal == .expired)
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
                    CreateInvitation(to: collaboration, token: token, expiresAt: isExpired ? world.now + 1 : nil))
                expected[made.identifier] = isExpired ? .expired : .pending
                switch Int.random(in: 0..<5, using: &generator) {
                case 0:
                    try world.send(RevokeInvitation(made.identifier, of: collaboration))
                    expected[made.identifier] = .revoked
                case 1:
                    try world.send(AcceptInvitation(token, for: try account("bo")))
                    expected[made.identifier] = isExpired ? .expired : .accepted
                case 2:
                    try world.send(AcceptInvitation(token, for: try account("bo"), identity: person(2)))
                    expected[made.identifier] = .completed
                default: break
                }
            }
            world.now += 1
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

    @Test("The private scope has what the account has started, the shared one what it takes part in by an invitation")
    func scopes() throws {
        let mine = try ["a", "b", "c"].map { try world.start($0) }
        let (ana, bo) = (try account("ana"), try account("bo"))
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "a"))
        metadata.title = "Bo's"
        let theirs = try world.send(PrepareCollaboration(owner: bo, metadata: metadata)).collaborationIdentifier
        for (index, collaboration) in mine.prefix(2).enumerated() {
            try world.send(CreateInvitation(to: collaboration, token: token(UInt8(index))))
            #expect(try refusal(UInt8(index), identity: person(UInt8(index + 2))) == nil)
        }
        try world.send(CreateInvitation(to: mine[2], token: token(2)))
        #expect(try refusal(2) == nil, "accepted, but not in")
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

    @Test("Highlights say who shares, and only the owner's own list has the local identifier")
    func initiators() throws {
        let (ana, bo) = (try account("ana"), try account("bo"))
        let names: [(NameComponents?, String?, String?)] = [
            (NameComponents(givenName: "Ana", familyName: "Lima"), "The owner", "Ana Lima"),
            (NameComponents(givenName: "Ana", nickname: "An"), nil, "An"), (NameComponents(), "The owner", "The owner"),
            (nil, "The owner", "The owner"), (nil, nil, nil), (NameComponents(), "", nil),
        ]
        for (number, (components, ownerName, expected)) in names.enumerated() {
            let local = LocalCollaborationIdentifier(rawValue: "deck \(number)")
            var metadata = CollaborationMetadata(localIdentifier: local)
            metadata.initiatorHandle = number == 4 ? nil : "ana@example.com"
            metadata.initiatorNameComponents = components
            let prepared = try world.send(PrepareCollaboration(owner: ana, metadata: metadata, ownerName: ownerName))
            let highlight = prepared.highlight
            #expect(highlight.initiatorName == expected && highlight.initiatorHandle == metadata.initiatorHandle)
            #expect(highlight.localIdentifier == nil)
            let collaboration = prepared.collaborationIdentifier
            #expect(try world.send(FindHighlight(collaboration)) == highlight)
            #expect(try world.send(ReadDetails(of: collaboration)).highlight == highlight)
            let token = token(UInt8(number))
            try world.send(CreateInvitation(to: collaboration, token: token))
            let share = try world.send(AcceptInvitation(token, for: bo, identity: person(2))).share
            #expect(share == highlight)
            let own = try world.send(ListShares(of: ana, scope: .private)).shares
            let mine = try #require(own.first { $0.collaborationIdentifier == collaboration })
            #expect(mine.localIdentifier == local && mine.initiatorName == expected)
        }
        #expect(try world.send(ListShares(of: bo, scope: .shared)).shares.allSatisfy { $0.localIdentifier == nil })
        #expect(try world.send(ListShares(of: bo, scope: .shared)).shares.count == names.count)
    }

    @Test("A page of shares with long texts ends before its limit, and the pages together are all shares")
    func longShares() throws {
        let ana = try account("ana")
        let text = String(repeating: "a", count: Limits.textBytesMax)
        var started: Set<CollaborationIdentifier> = []
        for number in 0..<250 {
            var metadata = CollaborationMetadata(localIdentifier: .init(rawValue: "deck \(number)"))
            (metadata.title, metadata.initiatorHandle) = (text, text)
            metadata.initiatorNameComponents = NameComponents(nickname: text)
            started.insert(
                try world.send(PrepareCollaboration(owner: ana, metadata: metadata)).collaborationIdentifier)
        }
        var listed: [CollaborationIdentifier] = []
        var after: String?
        repeat {
            let page = try world.send(ListShares(of: ana, scope: .private, after: after))
            #expect(page.shares.count < 250)
            #expect(try JSON.encode(page).count < 2 * Limits.sharesPageBytesMax)
            (listed, after) = (listed + page.shares.map(\.collaborationIdentifier), page.next)
        } while after != nil && listed.count <= 250
        #expect(listed.count == 250 && Set(listed) == started)
    }

    @Test("An account that came in by two invitations keeps the share until both of its identities have left")
    func twoInvitations() throws {
        let collaboration = try world.start()
        for number in [UInt8(1), 2] {
            try world.send(CreateInvitation(to: collaboration, token: token(number)))
            #expect(try refusal(number, identity: person(number + 1)) == nil)
        }
        func shares() throws -> [CollaborationIdentifier] {
            try world.send(ListShares(of: try account("bo"), scope: .shared)).shares.map(\.collaborationIdentifier)
        }
        try world.send(RemoveParticipants([person(3)], from: collaboration))
        #expect(try shares() == [collaboration])
        #expect(try refusal(1, identity: person(2)) == nil)
        // A link keeps it, too, and names nobody who has left.
        try world.admit([person(4)], to: collaboration)
        try world.send(LinkAccount(try account("bo"), to: person(4), in: collaboration))
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        #expect(try shares() == [collaboration])
        try world.admit([person(2)], to: collaboration)
        try world.send(LinkAccount(nil, to: person(4), in: collaboration))
        #expect(try shares() == [])
        try world.send(LinkAccount(try account("bo"), to: person(4), in: collaboration))
        try world.send(RemoveParticipants([person(4)], from: collaboration))
        #expect(try shares() == [])
        #expect(!world.storage.records.keys.contains { $0.starts(with: Array("y".utf8)) })
    }

    @Test("A share that an ending left does not come back with a new collaboration of that identifier")
    func leftShares() throws {
        let identifier = try #require(CollaborationIdentifier("moved-here_1"))
        let (ana, bo) = (try account("ana"), try account("bo"))
        let metadata = CollaborationMetadata(localIdentifier: .init(rawValue: "deck"))
        let starting = PrepareCollaborationAs(identifier, owner: ana, metadata: metadata)
        try world.send(starting)
        try world.send(CreateInvitation(to: identifier, token: token(1)))
        #expect(try refusal(1, identity: person(2)) == nil)
        let share = try #require(world.storage.records.values.first { $0.key.first == UInt8(ascii: "y") })
        #expect(try world.send(ListShares(of: bo, scope: .shared)).shares.count == 1)
        try world.send(StopSharing(identifier))
        world.storage.keep(share)
        try world.send(starting)
        try world.send(AddParticipants([NewParticipant(person(2))], to: identifier))
        #expect(world.storage.sets == [identifier: [person(2).rootHash]])
        #expect(try world.send(ListShares(of: bo, scope: .shared)).shares.isEmpty)
        // It takes no room of a new one, and does not outlive that.
        for number in 2..<UInt8(Limits.identitiesPerAccountMax + 2) {
            try world.send(CreateInvitation(to: identifier, token: token(number)))
            #expect(try refusal(number, identity: person(number + 10)) == nil)
        }
        #expect(try world.send(ListShares(of: bo, scope: .shared)).shares.count == 1)
        let came = (2..<UInt8(Limits.identitiesPerAccountMax + 2)).map { person($0 + 10) }
        try world.send(RemoveParticipants(came, from: identifier))
        #expect(try world.send(ListShares(of: bo, scope: .shared)).shares.isEmpty)
        #expect(world.storage.records.values.allSatisfy { $0.key.first != UInt8(ascii: "y") })
    }

    @Test("An account comes in to a collaboration with so many identities")
    func identitiesByInvitations() throws {
        let collaboration = try world.start()
        for number in 0..<UInt8(Limits.identitiesPerAccountMax) {
            try world.send(CreateInvitation(to: collaboration, token: token(number)))
            #expect(try refusal(number, identity: person(number + 10)) == nil)
        }
        try world.send(CreateInvitation(to: collaboration, token: token(100)))
        let more = AcceptInvitation(token(100), for: try account("bo"), identity: person(100))
        let error = world.error(of: more)
        #expect(error?.code == .limitExceeded && error?.detail == UInt32(Limits.identitiesPerAccountMax))
        try world.send(RemoveParticipants([person(10)], from: collaboration))
        #expect(try world.send(more).state == .in)
    }

    @Test("A blank name or handle of an inviter is none")
    func blankInviter() throws {
        let collaboration = try world.start()
        let blank = CreateInvitation(
            to: collaboration, token: token(1), inviter: Inviter(name: " ", handle: "\u{3000}"))
        #expect(world.code(of: blank) == .malformedRequest)
        let named = CreateInvitation(
            to: collaboration, token: token(1), inviter: Inviter(name: "", handle: "ana@example.com"))
        #expect(try world.send(named).inviter == Inviter(handle: "ana@example.com"))
    }
}
