import Collaboration
import Core
import Foundation
import TestSupport
import Testing

@Suite("Managing by grants")
struct ManagingTests {
    private let world = World()
    private let options = ShareOptions(optionsGroups: [
        OptionsGroup(
            identifier: "more",
            options: [
                CollaborationOption(title: "May add", identifier: "add", isSelected: true, effects: [.addParticipants]),
                CollaborationOption(title: "Mentions", identifier: "mention", isSelected: true, effects: [.mention]),
                CollaborationOption(title: "Comments", identifier: "comment", isSelected: true, effects: [.comment]),
            ])
    ])

    /// Person 1 owns it, 2 is an administrator, 3 a member who may write, 4 a member who may read.
    private func shared() throws -> CollaborationIdentifier {
        let collaboration = try world.start(options: options, defaultPermission: .readOnly)
        try world.join(person(1), in: collaboration)
        try world.send(
            AddParticipants(
                [NewParticipant(person(2), role: .administrator, permission: .readWrite)], to: collaboration))
        try world.join(person(2), in: collaboration)
        try world.admit([person(3)], to: collaboration, permission: .readWrite)
        try world.admit([person(4)], to: collaboration)
        return collaboration
    }

    private func grant(_ number: UInt8, _ collaboration: CollaborationIdentifier) throws -> AccessGrant {
        try world.grant(person(number), in: collaboration)
    }

    @Test("Members add people while the options say so, administrators and the owner always")
    func adding() throws {
        let collaboration = try shared()
        for number in UInt8(1)...4 {
            let request = AddParticipants(
                [NewParticipant(person(10 + number))], to: collaboration, by: try grant(number, collaboration))
            #expect(try world.send(request).changed == 1)
        }
        try world.send(UpdateShareOptions(collaboration, selectedOptions: []))
        for number in UInt8(1)...4 {
            let request = AddParticipants(
                [NewParticipant(person(20 + number))], to: collaboration, by: try grant(number, collaboration))
            #expect(world.code(of: request) == (number <= 2 ? nil : .notPermitted))
        }
    }

    @Test("Nobody gives more than he has")
    func giving() throws {
        let collaboration = try shared()
        func code(_ number: UInt8, _ participant: NewParticipant) throws -> ServiceError.Code? {
            world.code(of: AddParticipants([participant], to: collaboration, by: try grant(number, collaboration)))
        }
        let administrator = NewParticipant(person(11), role: .administrator)
        #expect(try code(3, administrator) == .notPermitted)
        #expect(try code(2, administrator) == nil)
        let writer = NewParticipant(person(12), permission: .readWrite)
        #expect(try code(4, writer) == .notPermitted)
        #expect(try code(3, writer) == nil)
        #expect(try code(1, NewParticipant(person(13), role: .owner)) == .notPermitted)
        try world.send(UpdateParticipant(ParticipantChange(person(2), permission: .set(.readOnly)), in: collaboration))
        for change in [
            ParticipantChange(person(4), permission: .set(.readWrite)),
            ParticipantChange(person(1), displayName: .clear),
            ParticipantChange(person(11), role: .member), ParticipantChange(person(11), displayName: .set("X")),
        ] {
            let request = UpdateParticipant(change, in: collaboration, by: try grant(2, collaboration))
            #expect(world.code(of: request) == .notPermitted)
        }
        let harmless = UpdateParticipant(
            ParticipantChange(person(3), displayName: .set("Cy"), permission: .set(.readOnly)), in: collaboration,
            by: try grant(2, collaboration))
        #expect(world.code(of: harmless) == nil)
    }

    @Test("Who may only read lets nobody write by the share options either")
    func givingByOptions() throws {
        let collaboration = try world.start(defaultPermission: .readWrite)
        try world.send(
            AddParticipants(
                [
                    NewParticipant(person(2), role: .administrator, permission: .readOnly),
                    NewParticipant(person(3), permission: .readOnly),
                ], to: collaboration))
        for number in UInt8(2)...3 { try world.join(person(number), in: collaboration) }
        let grant = try grant(2, collaboration)
        func code(_ permission: Permission?) -> ServiceError.Code? {
            world.code(
                of: AddParticipants([NewParticipant(person(9), permission: permission)], to: collaboration, by: grant))
        }
        #expect(code(nil) == .notPermitted && code(.readWrite) == .notPermitted)
        let clearing = ParticipantChange(person(3), permission: .clear)
        #expect(world.code(of: UpdateParticipant(clearing, in: collaboration, by: grant)) == .notPermitted)
        #expect(try world.participants(of: collaboration)[person(9)] == nil)
        #expect(code(.readOnly) == nil)
    }

    @Test("A person or account that is named twice has the same values twice")
    func namedTwice() throws {
        let collaboration = try shared()
        let twice = [NewParticipant(person(9), permission: .readOnly), NewParticipant(person(9))]
        for request in [
            AddParticipants(twice, to: collaboration), AddParticipants(twice.reversed(), to: collaboration),
        ] {
            let error = world.error(of: request)
            #expect(error?.code == .malformedRequest && error?.reason.contains("participants[1]") == true)
        }
        #expect(
            world.code(of: UpdateParticipants(of: collaboration, adding: twice, removing: [])) == .malformedRequest)
        #expect(try world.send(AddParticipants([twice[0], twice[0]], to: collaboration)).changed == 1)
    }

    @Test("Everybody but the owner may leave; members remove nobody else, administrators no administrator")
    func removing() throws {
        let collaboration = try shared()
        try world.send(AddParticipants([NewParticipant(person(5), role: .administrator)], to: collaboration))
        func code(_ number: UInt8, _ people: [UInt8]) throws -> ServiceError.Code? {
            world.code(
                of: RemoveParticipants(people.map(person), from: collaboration, by: try grant(number, collaboration)))
        }
        #expect(try code(1, [1]) == .notPermitted)
        #expect(try code(3, [4]) == .notPermitted)
        #expect(try code(3, [3, 4]) == .notPermitted)
        #expect(try code(2, [5]) == .notPermitted)
        #expect(try code(2, [1]) == .notPermitted)
        #expect(try code(4, [4]) == nil)
        #expect(try code(2, [3, 9]) == nil)
        #expect(try code(2, [2]) == nil)
        #expect(try code(1, [5]) == nil)
        #expect(try world.participants(of: collaboration).keys.sorted { $0.rootHash < $1.rootHash } == [person(1)])
    }

    @Test("Options are changed by the owner and administrators, and the sharing is stopped by the owner")
    func settings() throws {
        let collaboration = try shared()
        for number in UInt8(2)...4 {
            #expect(
                world.code(of: StopSharing(collaboration, by: try grant(number, collaboration))) == .notPermitted)
        }
        for (number, selected) in [(UInt8(1), ["add"]), (2, ["mention"]), (3, []), (4, [])] {
            let request = UpdateShareOptions(
                collaboration, selectedOptions: selected, by: try grant(number, collaboration))
            #expect(world.code(of: request) == (number <= 2 ? nil : .notPermitted))
        }
        for (number, operations) in [
            (UInt8(1), ManageOperation.allCases),
            (2, [.changeOptions, .addParticipants, .changeParticipants, .removeParticipants]), (3, []),
        ] {
            let details = try world.send(ReadDetails(of: collaboration, viewer: person(number)))
            #expect(details.manageOperations == operations)
        }
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["add"]))
        #expect(
            try world.send(ReadDetails(of: collaboration, viewer: person(3))).manageOperations == [.addParticipants])
        #expect(world.code(of: StopSharing(collaboration, by: try grant(1, collaboration))) == nil)
    }

    @Test("A grant that does not hold manages nothing")
    func refusedGrants() throws {
        let collaboration = try shared()
        let forged = try world.grant(person(1), in: collaboration, isForged: true)
        let other = try world.start("other")
        let foreign = try world.grant(person(1), in: other)
        for grant in [forged, foreign] {
            #expect(world.code(of: AddParticipants([], to: collaboration, by: grant)) == .grantRefused)
            #expect(world.code(of: RemoveParticipants([], from: collaboration, by: grant)) == .grantRefused)
            #expect(world.code(of: UpdateParticipants(of: collaboration, by: grant)) == .grantRefused)
            #expect(world.code(of: StopSharing(collaboration, by: grant)) == .grantRefused)
            let options = UpdateShareOptions(collaboration, selectedOptions: [], by: grant)
            #expect(world.code(of: options) == .grantRefused)
            let change = UpdateParticipant(ParticipantChange(person(3)), in: collaboration, by: grant)
            #expect(world.code(of: change) == .grantRefused)
        }
    }

    @Test("An addition is stale when its bearer was changed meanwhile")
    func staleBearer() throws {
        let collaboration = try shared()
        let request = AddParticipants(
            [NewParticipant(person(9))], to: collaboration, by: try grant(3, collaboration))
        let edit = try world.edit(request)
        try world.send(RemoveParticipants([person(3)], from: collaboration))
        #expect(try world.isStale(edit))
    }

    @Test("An addition by a member is stale when the options were changed meanwhile")
    func staleOptions() throws {
        let collaboration = try shared()
        let request = AddParticipants(
            [NewParticipant(person(9))], to: collaboration, by: try grant(3, collaboration))
        let edit = try world.edit(request)
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["mention", "comment"]))
        #expect(try world.isStale(edit))
        #expect(world.code(of: request) == .notPermitted)
    }

    @Test("Mentions and comments are posted while the options allow them")
    func notices() throws {
        let collaboration = try shared()
        let mention = HighlightEvent.mention(person: person(3))
        let comment = HighlightEvent.change(trigger: .comment)
        func code(_ event: HighlightEvent) throws -> ServiceError.Code? {
            world.code(of: PostNotices([event], on: collaboration, by: try grant(1, collaboration)))
        }
        #expect(try code(mention) == nil && code(comment) == nil)
        let edit = try world.edit(PostNotices([comment], on: collaboration, by: try grant(1, collaboration)))
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["mention"]))
        #expect(try world.isStale(edit))
        #expect(try code(mention) == nil && code(comment) == .notPermitted)
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["comment"]))
        #expect(try code(mention) == .notPermitted && code(comment) == nil)
        #expect(try code(.change(trigger: .edit)) == nil)
    }

    @Test("People come in by invitations while the options allow it")
    func invitations() throws {
        let option = CollaborationOption(
            title: "Anyone invited", identifier: "any", isSelected: true, effects: [.joinByInvitation])
        let collaboration = try world.start(
            options: ShareOptions(optionsGroups: [OptionsGroup(identifier: "who", options: [option])]))
        let tokens = (0..<2).map { _ in InvitationToken.random() }
        for token in tokens { try world.send(CreateInvitation(to: collaboration, token: token)) }
        let late = try world.edit(AcceptInvitation(tokens[0], for: try account("bo"), identity: person(2)))
        try world.send(UpdateShareOptions(collaboration, selectedOptions: []))
        #expect(try world.isStale(late))
        let request = AcceptInvitation(tokens[0], for: try account("bo"), identity: person(2))
        #expect(try world.send(request).refusal == .closed)
        #expect(try world.send(AcceptInvitation(tokens[1], for: try account("cy"))).refusal == .closed)
        #expect(try world.send(ReadInvitation(tokens[1])).refusal == .closed)
        #expect(world.code(of: CreateInvitation(to: collaboration)) == .notPermitted)
        #expect(try world.participants(of: collaboration)[person(2)] == nil)
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["any"]))
        #expect(try world.send(request).state == .in)
    }

    @Test("The selected options stand in a record of their own, in the form of the wire")
    func selectedOptions() throws {
        let collaboration = try shared()
        func stored() throws -> [UInt8]? { try world.storage.record(SelectedOptions.key(collaboration))?.value }
        #expect(try stored() == [3, 0, 3, 0] + "add".utf8 + [7, 0] + "mention".utf8 + [7, 0] + "comment".utf8)
        try world.send(UpdateShareOptions(collaboration, selectedOptions: []))
        #expect(try stored() == SelectedOptions.none)
        try world.send(StopSharing(collaboration))
        #expect(world.storage.records.isEmpty)
    }

    @Test("A change of options that knows other ones than the present ones is refused")
    func otherPresentOptions() throws {
        let collaboration = try world.start(options: .deck)
        func options() throws -> ShareOptions { try world.send(ReadDetails(of: collaboration)).shareOptions }
        let before = try options()
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["view"], ifPresent: before))
        let late = UpdateShareOptions(collaboration, replacing: .deck, ifPresent: before)
        #expect(world.code(of: late) == .optionConflict)
        #expect(try options().selectedIdentifiers == ["view"])
        try world.send(UpdateShareOptions(collaboration, replacing: before, ifPresent: try options()))
        #expect(try options() == before)
        #expect(world.code(of: UpdateShareOptions(collaboration, ifPresent: before)) == .malformedRequest)
    }

    @Test("Options can be replaced, and a summary goes with the selection that it was given for")
    func replacing() throws {
        let collaboration = try shared()
        func highlight() throws -> CollaborationHighlight { try world.send(FindHighlight(collaboration)) }
        try world.send(UpdateShareOptions(collaboration, givenSummary: "All for all"))
        #expect(try highlight().summary == "All for all")
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["add"]))
        #expect(try highlight().summary == "Only invited people can view")
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["mention"], givenSummary: "Mentions"))
        #expect(try highlight().summary == "Mentions")
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["view"], replacing: .deck))
        #expect(try highlight().summary == "View only")
        let details = try world.send(ReadDetails(of: collaboration)).shareOptions
        #expect(details.selectedIdentifiers == ["view"] && details.groups.count == 2)
        #expect(world.code(of: UpdateShareOptions(collaboration)) == .malformedRequest)
        let many = ShareOptions(optionsGroups: (0...16).map { OptionsGroup(identifier: "\($0)", options: []) })
        #expect(world.code(of: UpdateShareOptions(collaboration, replacing: many)) == .limitExceeded)
    }
}

@Suite("Joining and leaving in one change")
struct MembershipTests {
    private let world = World()

    @Test("People are added and removed together, or not at all")
    func together() throws {
        let collaboration = try world.start()
        try world.admit([person(2), person(3)], to: collaboration)
        let sequence = world.storage.sequence
        let request = UpdateParticipants(
            of: collaboration, adding: [NewParticipant(person(4)), NewParticipant(person(3))], removing: [person(2)])
        let receipt = try world.send(request)
        #expect(receipt.sequence == sequence + 1 && receipt.changed == 2)
        #expect(world.storage.sets[collaboration] == Set([1, 3, 4].map { person($0).rootHash }))
        let refused = UpdateParticipants(
            of: collaboration, adding: [NewParticipant(person(5))], removing: [person(3), person(1)])
        #expect(world.code(of: refused) == .notPermitted)
        let both = UpdateParticipants(of: collaboration, adding: [NewParticipant(person(3))], removing: [person(3)])
        #expect(world.code(of: both) == .malformedRequest)
        #expect(try world.send(UpdateParticipants(of: collaboration)).changed == 0)
    }

    @Test("Removing names the accounts concerned, and a look-up by identity finds them afterwards")
    func accounts() throws {
        let collaboration = try world.start()
        try world.admit([person(2), person(3)], to: collaboration)
        try world.send(LinkAccount(try account("bo"), to: person(2), in: collaboration))
        let bo = try account("bo")
        let gone = [
            RemovedParticipant(identity: person(3), account: nil), RemovedParticipant(identity: person(2), account: bo),
        ]
        let request = RemoveParticipants([person(3), person(2), person(9), person(2)], from: collaboration)
        #expect(try world.send(request).removed == gone)
        let again = try world.send(request)
        #expect(again.removed == gone && again.changed == 0 && again.sequence == world.storage.sequence)
        let found = try world.send(FindParticipants([person(9), person(2), person(1)], in: collaboration))
        #expect(found.unknown == [person(9)])
        #expect(found.participants.map(\.identity) == [person(2), person(1)])
        #expect(found.participants[0].state == .removed && found.participants[0].account == bo)
        try world.send(AddParticipants([NewParticipant(person(2))], to: collaboration))
        let anew = try world.send(FindParticipants([person(2)], in: collaboration)).participants
        #expect(anew.map(\.account) == [nil])
    }

    @Test("As many people as a request may name are taken, and one more is over the limit")
    func limits() throws {
        let collaboration = try world.start()
        let people = (0...Limits.participantsPerRequestMax).map {
            PersonIdentity(rootHash: standIn(Array("\($0)".utf8)))
        }
        let half = Limits.participantsPerRequestMax / 2
        func request(_ added: Int) -> UpdateParticipants {
            UpdateParticipants(
                of: collaboration, adding: people.prefix(added).map { NewParticipant($0) },
                removing: Array(people.suffix(half)))
        }
        #expect(world.code(of: request(half + 1)) == .limitExceeded)
        #expect(world.code(of: request(half)) == nil)
        #expect(world.code(of: FindParticipants(Array(people.prefix(257)), in: collaboration)) == .limitExceeded)
        #expect(world.code(of: FindParticipants(Array(people.prefix(256)), in: collaboration)) == nil)
    }
}
