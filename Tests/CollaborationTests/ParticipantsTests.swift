import Collaboration
import Core
import Foundation
import TestSupport
import Testing

@Suite("Participants")
struct ParticipantsTests {
    private let world = World()

    private func roots(_ collaboration: CollaborationIdentifier) -> Set<Digest> {
        world.storage.sets[collaboration] ?? []
    }

    private func since(_ number: UInt8, _ collaboration: CollaborationIdentifier) throws -> UInt64? {
        try world.storage.access(of: person(number), in: collaboration)?.since
    }

    @Test("Added participants are in the set, invited, and have the given name, role and permission")
    func add() throws {
        let collaboration = try world.start("deck", options: .deck)
        let receipt = try world.send(
            AddParticipants(
                [
                    NewParticipant(person(2), displayName: "Bo", role: .administrator, permission: .readOnly),
                    NewParticipant(person(3)), NewParticipant(person(3)),
                ], to: collaboration))
        #expect(receipt == ChangeReceipt(sequence: 2, changed: 2))
        #expect(roots(collaboration) == [person(1).rootHash, person(2).rootHash, person(3).rootHash])
        let all = try world.participants(of: collaboration)
        let bo = try #require(all[person(2)])
        #expect(bo.displayName == "Bo" && bo.role == .administrator && bo.permission == .readOnly)
        #expect(!bo.followsShareOptions && bo.state == .invited && bo.invitedAt == world.now)
        let member = try #require(all[person(3)])
        #expect(member.displayName == nil && member.role == .member && member.permission == .readWrite)
        #expect(member.followsShareOptions && member.joinedAt == nil && member.removedAt == nil)
    }

    @Test("When one participant can't be added, none is")
    func addAtomically() throws {
        let collaboration = try world.start()
        for wrong in [
            NewParticipant(person(4), role: .owner),
            NewParticipant(person(4), displayName: String(repeating: "a", count: Limits.textBytesMax + 1)),
        ] {
            let people = [NewParticipant(person(2)), wrong, NewParticipant(person(3))]
            let request = AddParticipants(people, to: collaboration)
            #expect(world.code(of: request) == (wrong.role == .owner ? .notPermitted : .limitExceeded))
            #expect(roots(collaboration) == [person(1).rootHash])
        }
    }

    @Test("Adding existing participants again leaves them as they are")
    func alreadyThere() throws {
        let collaboration = try world.start()
        try world.send(AddParticipants([NewParticipant(person(2), displayName: "Bo")], to: collaboration))
        let records = world.storage.records
        let again = NewParticipant(person(2), displayName: "Other", role: .administrator, permission: .readOnly)
        #expect(try world.send(AddParticipants([again], to: collaboration)).changed == 0)
        #expect(world.storage.records == records)
        #expect(try world.send(AddParticipants([again, NewParticipant(person(3))], to: collaboration)).changed == 1)
        #expect(try world.participants(of: collaboration)[person(2)]?.displayName == "Bo")
        #expect(try world.send(AddParticipants([], to: collaboration)).changed == 0)
    }

    @Test("Removed participants are in neither the set nor the list, and have no access and no link")
    func remove() throws {
        let collaboration = try world.start()
        let bo = try account("bo")
        try world.admit([person(2), person(3)], to: collaboration)
        try world.send(LinkAccount(bo, to: person(2), in: collaboration))
        let request = RemoveParticipants([person(2), person(2), person(9)], from: collaboration)
        #expect(try world.topics(request) == [.collaboration(collaboration), .account(bo)])
        world.now += 60
        #expect(try world.send(request).changed == 1)
        #expect(roots(collaboration) == [person(1).rootHash, person(3).rootHash])
        #expect(try world.storage.access(of: person(2), in: collaboration) == nil)
        #expect(try Set(world.participants(of: collaboration).keys) == [person(1), person(3)])
        let removed = try #require(try world.participants(of: collaboration, includesRemoved: true)[person(2)])
        #expect(removed.state == .removed && removed.removedAt == world.now)
        #expect(removed.joinedAt == nil && removed.account == bo)
        let again = try world.send(request)
        #expect(again.sequence == world.storage.sequence && again.changed == 0)
        try world.post([.change(trigger: .edit)], by: person(1), on: collaboration)
        #expect(try world.send(ReadNotices(.account(bo))).notices.isEmpty)
    }

    @Test("A removed participant who is added again is invited anew, and old grants stay revoked")
    func readd() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        let grant = try world.grant(person(2), in: collaboration)
        try world.post([.change(trigger: .edit)], by: person(1), on: collaboration)
        try world.send(ClearNotices(of: collaboration, by: grant))
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        world.now += 60
        let anew = NewParticipant(person(2), displayName: "Bo", permission: .readOnly)
        #expect(try world.send(AddParticipants([anew], to: collaboration)).changed == 1)
        let bo = try #require(try world.participants(of: collaboration)[person(2)])
        #expect(bo.state == .invited && bo.invitedAt == world.now && bo.removedAt == nil && bo.joinedAt == nil)
        #expect(bo.displayName == "Bo" && bo.permission == .readOnly)
        #expect(roots(collaboration).contains(person(2).rootHash))
        let error = world.error(of: PostNotices([.change(trigger: .comment)], on: collaboration, by: grant))
        #expect(error?.code == .grantRefused && error?.detail == UInt32(GrantStatus.revoked.rawValue))
        let feed = Feed.participant(person(2), of: collaboration)
        #expect(try world.send(ReadNotices(feed)).notices.count == 1, "what was cleared before is forgotten")
    }

    @Test("The owner can't be removed, neither alone nor with others")
    func ownerStays() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        for people in [[person(1)], [person(2), person(1)]] {
            #expect(world.code(of: RemoveParticipants(people, from: collaboration)) == .notPermitted)
        }
        #expect(roots(collaboration).count == 2)
    }

    @Test("Nobody becomes the owner, and the owner keeps the role, but the owner's name can change")
    func ownerRole() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        for participant in [
            ParticipantChange(person(2), role: .owner), ParticipantChange(person(1), role: .member),
            ParticipantChange(person(1), role: .administrator),
            ParticipantChange(person(1), permission: .set(.readOnly)),
            ParticipantChange(person(1), permission: .clear),
        ] {
            #expect(world.code(of: UpdateParticipant(participant, in: collaboration)) == .notPermitted)
        }
        let renamed = ParticipantChange(person(1), displayName: .set("Ana L."), permission: .set(.readWrite))
        try world.send(UpdateParticipant(renamed, in: collaboration))
        let owner = try #require(try world.participants(of: collaboration)[person(1)])
        #expect(owner.displayName == "Ana L." && owner.role == .owner)
    }

    @Test("Another name leaves a participant's grants valid, another role or permission revokes them")
    func update() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        let before = try since(2, collaboration)
        try world.send(UpdateParticipant(ParticipantChange(person(2), displayName: .set("Bo")), in: collaboration))
        #expect(try since(2, collaboration) == before)
        let readOnly = ParticipantChange(person(2), permission: .set(.readOnly))
        try world.send(UpdateParticipant(readOnly, in: collaboration))
        #expect(try since(2, collaboration) == world.storage.sequence)
        #expect(try world.storage.access(of: person(2), in: collaboration)?.permission == .readOnly)
        let promoted = ParticipantChange(person(2), role: .administrator)
        try world.send(UpdateParticipant(promoted, in: collaboration))
        #expect(try since(2, collaboration) == world.storage.sequence)
        #expect(try world.storage.access(of: person(2), in: collaboration)?.role == .administrator)
        #expect(try world.send(UpdateParticipant(promoted, in: collaboration)).changed == 0)
    }

    @Test("What a change leaves out stays, and null clears it")
    func patches() throws {
        let collaboration = try world.start()
        try world.send(
            AddParticipants(
                [NewParticipant(person(2), displayName: "Bo", role: .administrator, permission: .readOnly)],
                to: collaboration))
        func bo() throws -> Participant { try #require(try world.participants(of: collaboration)[person(2)]) }
        let renamed = ParticipantChange(person(2), displayName: .set("Bob"))
        try world.send(UpdateParticipant(renamed, in: collaboration))
        #expect(try bo().displayName == "Bob" && bo().permission == .readOnly && bo().role == .administrator)
        #expect(try !bo().followsShareOptions, "another name gives nobody the right to write")
        #expect(try world.send(UpdateParticipant(ParticipantChange(person(2)), in: collaboration)).changed == 0)
        let json = #"{"collaboration":"\#(collaboration)","participant":{"identity":"\#(person(2).rootHash)","#
        for (rest, name, follows) in [
            (#""displayName":null}}"#, nil, false), (#""permission":null,"displayName":"Bo"}}"#, "Bo", true),
        ] as [(String, String?, Bool)] {
            try world.send(try JSON.decode(UpdateParticipant.self, from: Array((json + rest).utf8)))
            #expect(try bo().displayName == name && bo().followsShareOptions == follows)
        }
    }

    @Test("Neither a stranger nor a removed participant can be changed")
    func updateStrangers() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        for number in [UInt8(2), 9] {
            let request = UpdateParticipant(ParticipantChange(person(number)), in: collaboration)
            #expect(world.code(of: request) == .unknownParticipant)
        }
    }

    @Test("As many participants as a request may name are taken, and one more is over the limit")
    func limits() throws {
        let collaboration = try world.start()
        let people = (0...Limits.participantsPerRequestMax).map {
            PersonIdentity(rootHash: standIn(Array("\($0)".utf8)))
        }
        let most = Array(people.dropLast())
        let name = String(repeating: "a", count: Limits.textBytesMax)
        let over = world.error(of: AddParticipants(people.map { NewParticipant($0) }, to: collaboration))
        #expect(over?.code == .limitExceeded && over?.detail == UInt32(Limits.participantsPerRequestMax))
        let longest = most.map { NewParticipant($0, displayName: name) }
        #expect(try world.send(AddParticipants(longest, to: collaboration)).changed == most.count)
        #expect(world.code(of: RemoveParticipants(people, from: collaboration)) == .limitExceeded)
        #expect(try world.send(RemoveParticipants(most, from: collaboration)).changed == most.count)
        #expect(world.code(of: ListParticipants(of: collaboration, limit: 0)) == .malformedRequest)
        #expect(world.code(of: ListParticipants(of: collaboration, limit: -1)) == .malformedRequest)
        #expect(world.code(of: ListParticipants(of: collaboration, limit: 257)) == .limitExceeded)
        #expect(world.code(of: ListParticipants(of: collaboration, limit: 256)) == nil)
    }

    @Test("A collaboration that was never started has no participants to change")
    func unknownCollaboration() throws {
        let nobody = try #require(CollaborationIdentifier("nobody"))
        #expect(world.code(of: AddParticipants([NewParticipant(person(1))], to: nobody)) == .unknownCollaboration)
        #expect(world.code(of: RemoveParticipants([person(1)], from: nobody)) == .unknownCollaboration)
        #expect(world.code(of: ListParticipants(of: nobody)) == .unknownCollaboration)
        #expect(world.code(of: LinkAccount(nil, to: person(1), in: nobody)) == .unknownCollaboration)
        #expect(world.code(of: UpdateParticipant(ParticipantChange(person(1)), in: nobody)) != nil)
    }

    @Test("A participant is invited, then joined, then removed")
    func states() throws {
        let collaboration = try world.start()
        func state() throws -> ParticipantState? {
            try world.participants(of: collaboration, includesRemoved: true)[person(2)]?.state
        }
        #expect(try state() == nil)
        try world.send(AddParticipants([NewParticipant(person(2))], to: collaboration))
        #expect(try state() == .invited)
        world.now += 30
        try world.join(person(2), in: collaboration)
        #expect(try state() == .joined)
        #expect(try world.participants(of: collaboration)[person(2)]?.joinedAt == world.now)
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        #expect(try state() == .removed)
    }

    @Test("Other options revoke the grants of the participants who inherit them, and nobody else's")
    func followers() throws {
        let collaboration = try world.start("deck", options: .deck)
        try world.admit([person(2)], to: collaboration)
        try world.admit([person(3)], to: collaboration, permission: .readWrite)
        let before = try #require(try since(3, collaboration))
        let grants = try [2, 3].map { try world.grant(person($0), in: collaboration) }
        let receipt = try world.send(UpdateShareOptions(collaboration, selectedOptions: ["view"]))
        #expect(receipt.sequence == world.storage.sequence)
        #expect(try since(2, collaboration) == receipt.sequence)
        #expect(try since(3, collaboration) == before)
        let all = try world.participants(of: collaboration)
        #expect(all[person(2)]?.permission == .readOnly && all[person(2)]?.followsShareOptions == true)
        #expect(all[person(3)]?.permission == .readWrite && all[person(3)]?.followsShareOptions == false)
        #expect(all[person(1)]?.permission == .readWrite)
        let comment = HighlightEvent.change(trigger: .comment)
        #expect(world.code(of: PostNotices([comment], on: collaboration, by: grants[0])) == .grantRefused)
        #expect(world.code(of: PostNotices([comment], on: collaboration, by: grants[1])) == nil)
        try world.post([comment], by: person(2), on: collaboration)
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["edit"]))
        #expect(try world.storage.access(of: person(2), in: collaboration)?.permission == .readWrite)
    }

    @Test("Options that permit the same revoke nothing, and the same options change nothing")
    func harmlessOptions() throws {
        let collaboration = try world.start("deck", options: .deck)
        try world.admit([person(2)], to: collaboration)
        let before = try since(2, collaboration)
        let receipt = try world.send(UpdateShareOptions(collaboration, selectedOptions: ["edit", "comments"]))
        #expect(receipt.changed == 1)
        #expect(try since(2, collaboration) == before)
        let same = UpdateShareOptions(collaboration, selectedOptions: ["comments", "edit"])
        #expect(try world.send(same).changed == 0)
        for (selected, code) in [
            (["edit", "view"], ServiceError.Code.optionConflict), (["fly"], .unknownOption),
            (["edit", "reactions"], .optionRequired),
        ] {
            #expect(world.code(of: UpdateShareOptions(collaboration, selectedOptions: selected)) == code)
        }
    }

    @Test("There is no access when one of its records is missing, and a damaged one is an error")
    func damagedAccess() throws {
        let permissions = StoredRecord(key: [1], version: 5, value: [1])
        func access(_ permissions: StoredRecord?, _ value: [UInt8]?) throws -> Access? {
            let own = try OwnAccess(value.map { StoredRecord(key: [2], version: 3, value: $0) })
            return Access(own, try DefaultPermission(permissions))
        }
        func isDamaged(_ permissions: StoredRecord?, _ value: [UInt8]) -> Bool {
            thrownServiceError { _ = try access(permissions, value) }?.code == .storageDamaged
        }
        let follower = try #require(try access(permissions, [0, 3]))
        #expect(follower.permission == .readOnly && follower.role == .member && follower.since == 5)
        let other = try #require(try access(permissions, [2, 2]))
        #expect(other.permission == .readWrite && other.role == .administrator && other.since == 3)
        for value: [UInt8] in [[], [0], [0, 3, 0], [3, 3], [0, 0], [1, 4]] {
            #expect(isDamaged(permissions, value), "\(value)")
        }
        #expect(try access(nil, [2, 3]) == nil)
        #expect(try access(permissions, nil) == nil)
        #expect(isDamaged(StoredRecord(key: [1], version: 5, value: []), [2, 3]))
        #expect(isDamaged(StoredRecord(key: [1], version: 5, value: [7]), [0, 3]))
    }

    @Test("Pages of any size have every participant once, in the order of the root hashes")
    func paging() throws {
        try withSeeds(20) { generator, context in
            let world = World()
            let collaboration = try world.start()
            let people = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                PersonIdentity(rootHash: generator.digest())
            }
            let removed = people.filter { _ in Bool.random(using: &generator) }
            try world.send(AddParticipants(people.map { NewParticipant($0) }, to: collaboration))
            try world.send(RemoveParticipants(removed, from: collaboration))
            for includesRemoved in [false, true] {
                var listed: [PersonIdentity] = []
                let limit = Int.random(in: 1...8, using: &generator)
                var hasMore = true
                while hasMore {
                    let page = try world.send(
                        ListParticipants(
                            of: collaboration, after: listed.last, limit: limit, includesRemoved: includesRemoved))
                    listed += page.participants.map(\.identity)
                    hasMore = page.hasMore
                    #expect(page.participants.count == limit || !hasMore, context)
                    guard listed.count <= people.count + 1 else { break }
                }
                let expected = Set([person(1)] + people).subtracting(includesRemoved ? [] : removed)
                #expect(listed == expected.sorted { $0.rootHash < $1.rootHash }, context)
            }
        }
    }
}

@Suite("Links between participants and accounts")
struct LinkAccountTests {
    private let world = World()

    private func accountOf(_ number: UInt8, _ collaboration: CollaborationIdentifier) throws -> String? {
        try world.participants(of: collaboration)[person(number)]?.account?.name
    }

    @Test("Only a participant who has joined can be linked")
    func joined() throws {
        let collaboration = try world.start()
        try world.send(AddParticipants([NewParticipant(person(2))], to: collaboration))
        let bo = try account("bo")
        #expect(world.code(of: LinkAccount(bo, to: person(2), in: collaboration)) == .notPermitted)
        #expect(world.code(of: LinkAccount(bo, to: person(3), in: collaboration)) == .unknownParticipant)
        try world.join(person(2), in: collaboration)
        #expect(try world.send(LinkAccount(bo, to: person(2), in: collaboration)).changed == 1)
        #expect(try accountOf(2, collaboration) == "bo")
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        #expect(world.code(of: LinkAccount(bo, to: person(2), in: collaboration)) == .unknownParticipant)
        try world.send(AddParticipants([NewParticipant(person(2))], to: collaboration))
        #expect(world.code(of: LinkAccount(bo, to: person(2), in: collaboration)) == .notPermitted)
        #expect(try accountOf(2, collaboration) == nil)
    }

    @Test("A participant has one account at a time, and ending the link leaves nothing of it")
    func oneAccount() throws {
        let collaboration = try world.start()
        let (bo, cy) = (try account("bo"), try account("cy"))
        try world.admit([person(2)], to: collaboration)
        try world.post([.change(trigger: .edit)], by: person(1), on: collaboration)
        let before = world.storage.records
        func reads(_ account: Account) throws -> Bool {
            try !world.send(ReadNotices(.account(account))).notices.isEmpty
        }
        try world.send(LinkAccount(bo, to: person(2), in: collaboration))
        #expect(try world.send(LinkAccount(bo, to: person(2), in: collaboration)).changed == 0)
        #expect(try reads(bo) && !reads(cy))
        let move = LinkAccount(cy, to: person(2), in: collaboration)
        #expect(try world.topics(move) == [.account(bo), .account(cy), .collaboration(collaboration)])
        try world.send(move)
        #expect(try !reads(bo) && reads(cy))
        #expect(try accountOf(2, collaboration) == "cy")
        #expect(try world.send(LinkAccount(nil, to: person(2), in: collaboration)).changed == 1)
        #expect(try world.send(LinkAccount(nil, to: person(2), in: collaboration)).changed == 0)
        #expect(world.storage.records == before)
    }

    @Test("An account may have several identities in a collaboration")
    func severalIdentities() throws {
        let collaboration = try world.start()
        let bo = try account("bo")
        try world.admit([person(2), person(3)], to: collaboration)
        for number in [UInt8(2), 3] { try world.send(LinkAccount(bo, to: person(number), in: collaboration)) }
        try world.post([.change(trigger: .edit)], by: person(1), on: collaboration)
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        #expect(try world.send(ReadNotices(.account(bo))).notices.count == 1)
        #expect(try accountOf(3, collaboration) == "bo")
    }
}

/// Two decisions on the same records: the second is stale, or finds what the first has done.
@Suite("Concurrent decisions")
struct RaceTests {
    private let world = World()

    @Test("Of two requests that add the same person only one does")
    func twoAdds() throws {
        let collaboration = try world.start()
        let both = [NewParticipant(person(2)), NewParticipant(person(3))]
        let second = try world.edit(AddParticipants(both, to: collaboration))
        try world.send(AddParticipants([NewParticipant(person(3))], to: collaboration))
        #expect(try world.isStale(second))
    }

    @Test("Nobody is added to a collaboration that has ended meanwhile")
    func addAfterStop() throws {
        let collaboration = try world.start()
        let late = try #require(try world.edit(AddParticipants([NewParticipant(person(2))], to: collaboration)))
        let lateInvitation = try #require(try world.edit(CreateInvitation(to: collaboration)))
        try world.send(StopSharing(collaboration))
        for edit in [late, lateInvitation] {
            #expect(thrownServiceError { _ = try world.storage.apply(edit) }?.code == .unknownCollaboration)
        }
        #expect(world.storage.records.isEmpty && world.storage.sets.isEmpty)
    }

    @Test("A start that is abandoned while somebody is added stays", arguments: [false, true])
    func addDuringAbandonment(byInvitation: Bool) throws {
        let collaboration = try world.start("deck")
        let token = InvitationToken.random()
        try world.send(CreateInvitation(to: collaboration, token: token))
        let abandonment = try world.edit(
            AbandonCollaboration(
                owner: try account("ana"), localIdentifier: LocalCollaborationIdentifier(rawValue: "deck")))
        #expect(abandonment != nil)
        if byInvitation {
            try world.send(AcceptInvitation(token, for: try account("bo"), identity: person(2)))
        } else {
            try world.send(AddParticipants([NewParticipant(person(2))], to: collaboration))
        }
        #expect(try world.isStale(abandonment))
    }

    @Test("The owner may write whatever the options say, also after a change of name")
    func ownerKeepsWriting() throws {
        let collaboration = try world.start("deck", options: .deck)
        try world.send(UpdateParticipant(ParticipantChange(person(1), displayName: .set("Ana B.")), in: collaboration))
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["view"]))
        let owner = try world.send(ListParticipants(of: collaboration)).participants.first { $0.role == .owner }
        #expect(owner?.permission == .readWrite)
        #expect(owner?.displayName == "Ana B.")
    }

    @Test("An account can be linked to a limited number of participants")
    func linksOfAnAccount() throws {
        let collaboration = try world.start()
        let bo = try account("bo")
        var edit = Edit()
        edit.records = (1..<Limits.linksPerAccountMax).map { number in
            RecordEdit(Array("kbo\0elsewhere \(number)\0".utf8) + [UInt8](repeating: 7, count: 32), value: [])
        }
        _ = try world.storage.apply(edit)
        try world.admit([person(2), person(3)], to: collaboration)
        try world.send(LinkAccount(bo, to: person(2), in: collaboration))
        #expect(world.code(of: LinkAccount(bo, to: person(3), in: collaboration)) == .limitExceeded)
    }

    @Test("A removed participant who accepted an invitation loses the share, linked or not")
    func removedAccepter() throws {
        let collaboration = try world.start()
        let bo = try account("bo")
        let token = InvitationToken.random()
        try world.send(CreateInvitation(to: collaboration, token: token))
        try world.send(AcceptInvitation(token, for: bo, identity: person(2)))
        #expect(try world.send(ListShares(of: bo, scope: .shared)).shares.count == 1)
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        #expect(try world.send(ListShares(of: bo, scope: .shared)).shares.isEmpty)
        #expect(try world.send(AcceptInvitation(token, for: bo, identity: person(2))).refusal == .conflict)
    }

    @Test("An account has a limited number of identities in one collaboration")
    func identitiesOfAnAccount() throws {
        let collaboration = try world.start()
        let bo = try account("bo")
        let people = (0...Limits.identitiesPerAccountMax).map { person(UInt8(10 + $0)) }
        try world.admit(people, to: collaboration)
        for person in people.dropLast() { try world.send(LinkAccount(bo, to: person, in: collaboration)) }
        let over = world.error(of: LinkAccount(bo, to: try #require(people.last), in: collaboration))
        #expect(over?.code == .limitExceeded && over?.detail == UInt32(Limits.identitiesPerAccountMax))
        try world.send(LinkAccount(nil, to: people[0], in: collaboration))
        try world.send(LinkAccount(bo, to: try #require(people.last), in: collaboration))
    }

    @Test("An account with two identities keeps the share until the last one is removed")
    func twoIdentitiesOfOneAccount() throws {
        let collaboration = try world.start()
        let bo = try account("bo")
        let token = InvitationToken.random()
        try world.send(CreateInvitation(to: collaboration, token: token))
        try world.send(AcceptInvitation(token, for: bo, identity: person(2)))
        try world.admit([person(3)], to: collaboration)
        try world.join(person(2), in: collaboration)
        for number in [2, 3] as [UInt8] {
            try world.send(LinkAccount(bo, to: person(number), in: collaboration))
        }
        func shares() throws -> Int { try world.send(ListShares(of: bo, scope: .shared)).shares.count }
        #expect(try shares() == 1)
        try world.send(RemoveParticipants([person(3)], from: collaboration))
        #expect(try shares() == 1)
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        #expect(try shares() == 0)
    }

    @Test("A link that is made while its participant is removed does not stay")
    func linkDuringRemoval() throws {
        let collaboration = try world.start()
        let bo = try account("bo")
        try world.admit([person(2)], to: collaboration)
        let removal = try world.edit(RemoveParticipants([person(2)], from: collaboration))
        let link = try world.edit(LinkAccount(bo, to: person(2), in: collaboration))
        try world.send(LinkAccount(bo, to: person(2), in: collaboration))
        #expect(try world.isStale(removal), "the removal knows nothing of the link")
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        #expect(try world.isStale(link), "the participant is gone")
        try world.post([.change(trigger: .edit)], by: person(1), on: collaboration)
        #expect(try world.send(ReadNotices(.account(bo))).notices.isEmpty)
    }

    @Test("A link that moves to another account while its participant is removed does not stay")
    func relinkDuringRemoval() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        try world.send(LinkAccount(try account("bo"), to: person(2), in: collaboration))
        let removal = try world.edit(RemoveParticipants([person(2)], from: collaboration))
        try world.send(LinkAccount(try account("cy"), to: person(2), in: collaboration))
        #expect(try world.isStale(removal))
    }

    @Test("A decision about an access is stale when the access has changed")
    func accessChanges() throws {
        let collaboration = try world.start("deck", options: .deck)
        try world.admit([person(2), person(3)], to: collaboration)
        func decided(_ number: UInt8) throws -> [Edit?] {
            let grant = try world.grant(person(number), in: collaboration)
            return [
                try world.edit(PostNotices([.change(trigger: .edit)], on: collaboration, by: grant)),
                try world.edit(ClearNotices(of: collaboration, by: grant)),
            ]
        }
        let beforeRemoval = try decided(2)
        let promoted = ParticipantChange(person(2), role: .administrator)
        let update = try world.edit(UpdateParticipant(promoted, in: collaboration))
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        for edit in beforeRemoval + [update] { #expect(try world.isStale(edit)) }
        let beforeOptions = try decided(3)
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["view"]))
        for edit in beforeOptions { #expect(try world.isStale(edit)) }
    }

    @Test("A joining is recorded once, and not for a participant who was removed meanwhile")
    func joinings() throws {
        let collaboration = try world.start()
        try world.send(AddParticipants([NewParticipant(person(2)), NewParticipant(person(3))], to: collaboration))
        func joining(_ number: UInt8) throws -> Edit {
            let access = try #require(try world.storage.access(of: person(number), in: collaboration))
            return Joining.edit(of: person(number), in: collaboration, access, milliseconds: 1)
        }
        let second = try joining(2)
        try world.join(person(2), in: collaboration)
        #expect(try world.isStale(second))
        let late = try joining(3)
        try world.send(RemoveParticipants([person(3)], from: collaboration))
        #expect(try world.isStale(late))
    }

    @Test("An invitation is accepted once, and not after it was revoked or its identity was removed")
    func acceptances() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        let tokens = (UInt8(0)..<3).map { InvitationToken(bytes: [UInt8](repeating: $0, count: 16)) }
        let invitations = try tokens.map { try world.send(CreateInvitation(to: collaboration, token: $0)) }
        let (bo, cy) = (try account("bo"), try account("cy"))
        let second = try world.edit(AcceptInvitation(tokens[0], for: cy))
        try world.send(AcceptInvitation(tokens[0], for: bo))
        #expect(try world.isStale(second))
        let late = try world.edit(AcceptInvitation(tokens[1], for: cy))
        let lateRevocation = try world.edit(RevokeInvitation(invitations[2].identifier, of: collaboration))
        try world.send(RevokeInvitation(invitations[1].identifier, of: collaboration))
        #expect(try world.isStale(late))
        let conflicting = try world.edit(AcceptInvitation(tokens[2], for: cy, identity: person(2)))
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        #expect(try world.isStale(conflicting), "whoever was removed comes back by the owner's hand only")
        try world.send(AcceptInvitation(tokens[2], for: cy))
        #expect(try world.isStale(lateRevocation))
    }

    @Test("Concurrent changes of one shelf don't undo each other")
    func shelves() throws {
        let bo = try account("bo")
        let link = try url("https://decks.example/1")
        func share(_ date: Date?) -> RecordShare {
            RecordShare(
                url: link, app: "app", sharer: Sharer(name: "Ana"), conversation: Conversation(identifier: "c"),
                date: date, recipients: [ShareRecipient(bo)])
        }
        try world.send(SetConsent(of: bo, .app("app"), isAllowed: true))
        let first = try world.edit(share(nil))
        try world.send(share(nil))
        #expect(try world.isStale(first))
        let pin = try world.edit(PinHighlight(link, of: bo, for: .everyApp))
        let view = try world.edit(SignalHighlight(.viewed, link, of: bo, for: .everyApp))
        let consent = try world.edit(SetConsent(of: bo, .everything, isAllowed: true))
        try world.send(share(world.now + 5))
        #expect(try world.isStale(pin))
        try world.send(SignalHighlight(.viewed, link, of: bo, for: .everyApp))
        #expect(try world.isStale(view))
        try world.send(SetConsent(of: bo, .app("other"), isAllowed: true))
        #expect(try world.isStale(consent))
    }
}
