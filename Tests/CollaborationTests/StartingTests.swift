import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// Metadata of the content "deck" that is shared with the options of `ShareOptions.deck`.
private func deckMetadata(_ local: String = "deck") -> CollaborationMetadata {
    var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: local))
    metadata.title = "Deck"
    metadata.defaultShareOptions = .deck
    return metadata
}

@Suite("Starting a collaboration")
struct StartingTests {
    private let world = World()

    private func prepare(_ metadata: CollaborationMetadata, by owner: String = "ana") throws -> PrepareCollaboration {
        PrepareCollaboration(owner: try account(owner), metadata: metadata)
    }

    @Test("A start gives an identifier, a link and a highlight, and makes the owner a participant")
    func start() throws {
        var request = try prepare(deckMetadata())
        request.ownerIdentity = person(1)
        request.ownerName = "Ana"
        let answer = try world.send(request)
        #expect(answer.isNew && answer.sequence == 1)
        #expect(answer.collaborationIdentifier.utf8.count == 22)
        #expect(answer.url.absoluteString == "https://decks.example/c/\(answer.collaborationIdentifier)")
        #expect(answer.highlight.url == answer.url)
        #expect(answer.highlight.title == "Deck")
        #expect(answer.highlight.summary == "Can make changes")
        #expect(answer.highlight.creationDate == world.now)
        #expect(world.storage.sets == [answer.collaborationIdentifier: [person(1).rootHash]])
        let owner = try #require(try world.participants(of: answer.collaborationIdentifier)[person(1)])
        #expect(owner.role == .owner && owner.permission == .readWrite && !owner.followsShareOptions)
        #expect(owner.displayName == "Ana" && owner.state == .invited)
    }

    @Test("The owner's name is the initiator's when no other is said")
    func ownerName() throws {
        var metadata = deckMetadata()
        metadata.initiatorNameComponents = NameComponents(givenName: "Ana", familyName: "Lopes")
        var request = try prepare(metadata)
        request.ownerIdentity = person(1)
        let collaboration = try world.send(request).collaborationIdentifier
        #expect(try world.participants(of: collaboration)[person(1)]?.displayName == "Ana Lopes")
    }

    /// The name of the owner, person 1, who took part before as "Annie" or not at all.
    private func nameOfOwner(
        _ components: NameComponents?, _ ownerName: String?, byPreparing: Bool, tookPart: Bool
    ) throws -> String? {
        let world = World()
        var metadata = deckMetadata()
        metadata.initiatorNameComponents = components
        var request = try prepare(metadata)
        request.ownerName = ownerName
        let collaboration = try world.send(request).collaborationIdentifier
        if tookPart {
            try world.send(AddParticipants([NewParticipant(person(1), displayName: "Annie")], to: collaboration))
        }
        if byPreparing {
            request.ownerIdentity = person(1)
            try world.send(request)
        } else {
            try world.send(ClaimOwnership(of: collaboration, by: try account("ana"), as: person(1)))
        }
        return try world.participants(of: collaboration)[person(1)]?.displayName
    }

    @Test("The owner has the same name by preparing and by claiming: the initiator's", arguments: [true, false])
    func ownerNameOfBothWays(byPreparing: Bool) throws {
        let ana = NameComponents(givenName: "Ana", familyName: "Lopes")
        let names: [(NameComponents?, String?, String?)] = [
            (ana, "The owner", "Ana Lopes"), (ana, nil, "Ana Lopes"), (nil, "The owner", "The owner"),
            (NameComponents(), "The owner", "The owner"), (NameComponents(nickname: " "), "", nil), (nil, nil, nil),
        ]
        for (components, ownerName, expected) in names {
            for tookPart in [false, true] {
                let name = try nameOfOwner(components, ownerName, byPreparing: byPreparing, tookPart: tookPart)
                #expect(name == expected ?? (tookPart ? "Annie" : nil))
            }
        }
    }

    @Test("A nameless request that makes the owner leaves the name that the start has said")
    func ownerNameOfTheStart() throws {
        var metadata = deckMetadata()
        metadata.initiatorNameComponents = NameComponents(givenName: "Ana")
        let collaboration = try world.send(try prepare(metadata)).collaborationIdentifier
        var again = try prepare(deckMetadata())
        again.ownerIdentity = person(1)
        try world.send(again)
        #expect(try world.participants(of: collaboration)[person(1)]?.displayName == "Ana")
    }

    @Test("A claim with a blank name does not take a participant's name away")
    func blankNameOfAClaim() throws {
        let collaboration = try world.send(try prepare(deckMetadata())).collaborationIdentifier
        try world.send(AddParticipants([NewParticipant(person(1), displayName: "Annie")], to: collaboration))
        let owner = try account("ana")
        try world.send(ClaimOwnership(of: collaboration, by: owner, as: person(1), displayName: " "))
        #expect(try world.participants(of: collaboration)[person(1)]?.displayName == "Annie")
    }

    @Test("Starting again without another choice changes nothing, and tells what holds")
    func again() throws {
        let first = try world.send(try prepare(deckMetadata()))
        let records = world.storage.records
        var other = deckMetadata()
        other.title = "Another title"
        other.defaultShareOptions = nil
        other.defaultPermission = .readWrite
        let second = try world.send(try prepare(other))
        #expect(!second.isNew && second.sequence == world.storage.sequence)
        #expect(second.collaborationIdentifier == first.collaborationIdentifier)
        #expect(second.url == first.url && second.highlight == first.highlight)
        #expect(second.selectedOptions == ["edit"] && second.permission == .readWrite)
        #expect(world.storage.records == records)
    }

    @Test("A choice that is made when content is shared again is applied")
    func chosenAgain() throws {
        let collaboration = try world.send(try prepare(deckMetadata())).collaborationIdentifier
        try world.admit([person(2)], to: collaboration)
        var request = try prepare(deckMetadata())
        request.selectedOptions = ["view"]
        let answer = try world.send(request)
        #expect(!answer.isNew && answer.sequence == world.storage.sequence)
        #expect(answer.selectedOptions == ["view"] && answer.permission == .readOnly)
        #expect(answer.highlight.summary == "View only")
        #expect(try world.storage.access(of: person(2), in: collaboration)?.permission == .readOnly)
        #expect(
            try world.send(try prepare(deckMetadata())).selectedOptions == ["view"], "default options are no choice")
        request.selectedOptions = ["nonsense"]
        #expect(world.code(of: request) == .unknownOption)
        var metadata = deckMetadata()
        metadata.userSelectedShareOptions = ShareOptions(optionsGroups: [
            OptionsGroup(identifier: "new", options: [CollaborationOption(title: "New", identifier: "new")])
        ])
        let replaced = try world.send(try prepare(metadata))
        #expect(replaced.selectedOptions == [] && replaced.permission == .readOnly)
        #expect(try world.send(ReadDetails(of: collaboration)).shareOptions.groups.count == 1)
    }

    @Test("A group may leave out its title and its footer, as Apple's sample does, and nothing else")
    func shortGroups() throws {
        func read(_ group: String) -> ShareOptions? {
            try? JSON.decodeStrictly(ShareOptions.self, from: Array("{\"groups\":[{\(group)}]}".utf8))
        }
        let options = #""options":[{"title":"Read only","identifier":"2"}]"#
        for kind in ["picker", "switches"] {
            let content = try #require(
                read(#""kind":"\#(kind)","identifier":"1",\#(options)"#)?.groups.first?.content)
            #expect(content.title == "" && content.footer == "" && content.options.count == 1)
            #expect(read(#""kind":"\#(kind)",\#(options)"#) == nil)
            #expect(read(#""kind":"\#(kind)","identifier":"1""#) == nil)
            #expect(read(#""kind":"\#(kind)","identifier":"1","title":null,"footer":7,\#(options)"#) == nil)
        }
    }

    @Test("Without a word about permissions everybody but the owner reads", arguments: [nil, Permission.readWrite])
    func defaultPermission(_ permission: Permission?) throws {
        // Apple's sample: the options say nothing that a service understands.
        let sample = ShareOptions(optionsGroups: [
            OptionsPickerGroup(
                identifier: "1",
                options: [
                    CollaborationOption(title: "Can make changes", identifier: "2"),
                    CollaborationOption(title: "Read only", identifier: "3"),
                ])
        ])
        let collaboration = try world.start(options: sample, defaultPermission: permission)
        try world.admit([person(2)], to: collaboration)
        for selected in [["2"], ["3"]] {
            try world.send(UpdateShareOptions(collaboration, selectedOptions: selected))
            #expect(
                try world.storage.access(of: person(2), in: collaboration)?.permission == permission ?? .readOnly)
        }
        #expect(try world.storage.access(of: person(1), in: collaboration)?.permission == .readWrite)
    }

    @Test("A start under an identifier of before keeps identifier and link, and lets nobody in by itself")
    func startAs() throws {
        let identifier = try #require(CollaborationIdentifier("moved-here_1"))
        var metadata = deckMetadata()
        metadata.initiatorHandle = "ana@example.com"
        let before = world.now.addingTimeInterval(-1000)
        let request = PrepareCollaborationAs(
            identifier, owner: try account("ana"), metadata: metadata, selectedOptions: ["view"], ownerName: "Ana",
            nonceWindowSeconds: 60, creationDate: before)
        #expect(try world.edit(request)?.creation == .deviceNonce(windowSeconds: 60))
        let answer = try world.send(request)
        #expect(answer.isNew && answer.sequence == 1 && answer.collaborationIdentifier == identifier)
        #expect(answer.url.absoluteString == "https://decks.example/c/moved-here_1")
        #expect(answer.highlight.creationDate == before && answer.highlight.initiatorName == "Ana")
        #expect(answer.selectedOptions == ["view"] && answer.permission == .readOnly)
        #expect(world.storage.sets == [identifier: []])
        #expect(try world.participants(of: identifier).isEmpty)
        #expect(try world.send(try prepare(deckMetadata())).collaborationIdentifier == identifier)
        try world.send(ClaimOwnership(of: identifier, by: try account("ana"), as: person(1)))
        #expect(try world.participants(of: identifier)[person(1)]?.displayName == "Ana")
    }

    @Test("A start under an identifier that something has is refused, and so is one of content that was started")
    func startAsPresent() throws {
        let present = try world.start()
        func code(_ identifier: CollaborationIdentifier, _ local: String, _ owner: String = "ana") throws
            -> ServiceError.Code?
        {
            let request = PrepareCollaborationAs(
                identifier, owner: try account(owner), metadata: deckMetadata(local))
            return world.code(of: request)
        }
        #expect(try code(present, "deck") == .collaborationExists)
        #expect(try code(present, "other", "ben") == .collaborationExists)
        let bare = try #require(CollaborationIdentifier("bare"))
        var edit = Edit(bare)
        edit.creation = .challenge
        _ = try world.storage.apply(edit)
        #expect(try code(bare, "other") == .collaborationExists)
        let free = try #require(CollaborationIdentifier("free"))
        #expect(try code(free, "deck") == .notPermitted)
        #expect(try code(free, "a\u{7}") == .malformedRequest)
        for wrong in ["a/b", "..", "a.b", "a b", "\u{e9}", "a%2Fb", "a?b"] {
            #expect(try code(try #require(CollaborationIdentifier(wrong)), "other") == .malformedRequest, "\(wrong)")
        }
        #expect(try code(free, "other") == nil)
    }

    @Test("After a start under an identifier that has ended, earlier grants stay revoked and a date to come is now")
    func startAsEnded() throws {
        let ended = try world.start()
        let grant = try world.grant(person(1), in: ended)
        try world.send(StopSharing(ended))
        let answer = try world.send(
            PrepareCollaborationAs(
                ended, owner: try account("ana"), metadata: deckMetadata(), creationDate: .distantFuture))
        #expect(answer.highlight.creationDate == world.now)
        #expect(world.code(of: PostNotices([.persistence(trigger: .renamed)], on: ended, by: grant)) != nil)
        try world.send(ClaimOwnership(of: ended, by: try account("ana"), as: person(1)))
        let error = world.error(of: PostNotices([.persistence(trigger: .renamed)], on: ended, by: grant))
        #expect(error?.code == .grantRefused && error?.detail == UInt32(GrantStatus.revoked.rawValue))
        let edit = try world.edit(
            PrepareCollaborationAs(
                try #require(CollaborationIdentifier("free")), owner: try account("ben"), metadata: deckMetadata()))
        try world.send(
            PrepareCollaborationAs(
                try #require(CollaborationIdentifier("free")), owner: try account("ben"), metadata: deckMetadata("x")))
        #expect(try world.isStale(edit))
    }

    @Test("Devices sign challenges unless the start gives a window for nonces")
    func noncePolicy() throws {
        var request = try prepare(deckMetadata())
        for (window, code) in [(UInt32(0), ServiceError.Code.malformedRequest), (604_801, .malformedRequest)] {
            request.nonceWindowSeconds = window
            #expect(world.code(of: request) == code)
        }
        request.nonceWindowSeconds = 604_800
        #expect(try world.edit(request)?.creation == .deviceNonce(windowSeconds: 604_800))
        #expect(try world.edit(try prepare(deckMetadata()))?.creation == .challenge)
        try world.send(request)
        #expect(world.code(of: request) == nil)
        #expect(world.code(of: try prepare(deckMetadata())) == nil, "nothing was said about it")
        request.nonceWindowSeconds = 60
        #expect(world.code(of: request) == .collaborationExists)
    }

    @Test("Owners and local identifiers tell collaborations apart")
    func apart() throws {
        let requests = [
            try prepare(deckMetadata("a"), by: "ana"), try prepare(deckMetadata("b"), by: "ana"),
            try prepare(deckMetadata("a"), by: "bo"), try prepare(deckMetadata("aa"), by: "an"),
        ]
        let identifiers = try requests.map { try world.send($0).collaborationIdentifier }
        #expect(Set(identifiers).count == 4)
        #expect(try requests.map { try world.send($0).collaborationIdentifier } == identifiers)
    }

    @Test("Of two starts on the same records the second is stale; evaluated again, it finds the first")
    func race() throws {
        let request = try prepare(deckMetadata())
        let second = try world.edit(request)
        let first = try world.send(request)
        #expect(try world.isStale(second))
        #expect(try world.send(request).collaborationIdentifier == first.collaborationIdentifier)
    }

    @Test("Without a base for links nothing is started")
    func noLinkBase() throws {
        world.settings.linkBase = nil
        #expect(world.code(of: try prepare(deckMetadata())) == .noLinkBase)
        #expect(world.storage.records.isEmpty)
    }

    @Test("The selected options count from the start on")
    func selectedOptions() throws {
        var request = try prepare(deckMetadata())
        request.selectedOptions = ["view", "comments"]
        let answer = try world.send(request)
        #expect(answer.highlight.summary == "View only")
        let details = try world.send(ReadDetails(of: answer.collaborationIdentifier))
        #expect(details.shareOptions.selectedIdentifiers == ["view", "comments"])
        try world.admit([person(2)], to: answer.collaborationIdentifier)
        #expect(try world.storage.access(of: person(2), in: answer.collaborationIdentifier)?.permission == .readOnly)
    }

    @Test("Options that don't go together are refused as the options say")
    func wrongOptions() throws {
        for (selected, code) in [
            (["view", "edit"], ServiceError.Code.optionConflict), (["fly"], .unknownOption), ([], .optionConflict),
            (["edit", "reactions"], .optionRequired),
        ] {
            var request = try prepare(deckMetadata())
            request.selectedOptions = selected
            #expect(world.code(of: request) == code)
        }
        var metadata = deckMetadata()
        var options = ShareOptions.deck
        for index in options.groups[0].options.indices { options.groups[0].options[index].isSelected = true }
        metadata.userSelectedShareOptions = options
        #expect(world.code(of: try prepare(metadata)) == .optionConflict)
    }

    @Test("Texts, groups and options at their limits are taken, and one more is over the limit")
    func limits() throws {
        func request(_ change: (inout PrepareCollaboration) -> Void) throws -> PrepareCollaboration {
            var request = try prepare(deckMetadata())
            request.ownerIdentity = person(1)
            change(&request)
            return request
        }
        func groups(_ count: Int, options: Int) -> ShareOptions {
            ShareOptions(
                optionsGroups: (0..<count).map { group in
                    let share = group == 0 ? options : 0
                    return OptionsGroup(
                        identifier: "\(group)",
                        options: (0..<share).map { CollaborationOption(title: "", identifier: "\($0)") })
                })
        }
        let text = String(repeating: "é", count: Limits.textBytesMax / 2)
        let requests: [(Int) throws -> PrepareCollaboration] = [
            { more in try request { $0.metadata.title = text + String(repeating: "a", count: more) } },
            { more in try request { $0.metadata.initiatorHandle = text + String(repeating: "a", count: more) } },
            { more in try request { $0.ownerName = text + String(repeating: "a", count: more) } },
            { more in
                try request {
                    $0.metadata.initiatorNameComponents = NameComponents(
                        nickname: text + String(repeating: "a", count: more))
                }
            },
            { more in
                try request { $0.metadata.defaultShareOptions = groups(Limits.optionGroupsMax + more, options: 1) }
            },
            { more in try request { $0.metadata.defaultShareOptions = groups(1, options: Limits.optionsMax + more) } },
        ]
        for (index, make) in requests.enumerated() {
            let error = world.error(of: try make(1))
            #expect(error?.code == .limitExceeded, "limit \(index)")
            #expect([512, 16, 64].contains(error?.detail), "limit \(index)")
            var allowed = try make(0)
            allowed.metadata.localIdentifier = LocalCollaborationIdentifier(rawValue: "allowed-\(index)")
            #expect(world.code(of: allowed) == nil, "limit \(index)")
        }
    }

    @Test("A summary of several titles that is longer than a text is refused, whichever request selects them")
    func longSummary() throws {
        // Each picker has a long and a short title. The long ones together are over the limit.
        let title = String(repeating: "a", count: Limits.textBytesMax / Limits.optionGroupsMax)
        let long = (0..<Limits.optionGroupsMax).map { "long \($0)" }
        let short = (0..<Limits.optionGroupsMax).map { "short \($0)" }
        let options = ShareOptions(
            optionsGroups: zip(long, short).map { long, short in
                OptionsPickerGroup(
                    identifier: long,
                    options: [
                        CollaborationOption(title: title, identifier: long, effects: [.readWrite]),
                        CollaborationOption(title: "Short", identifier: short, effects: [.readWrite]),
                    ])
            })
        var request = try prepare(deckMetadata())
        request.metadata.defaultShareOptions = options
        func expectTooLong(_ request: some RuledRequest, _ location: SourceLocation = #_sourceLocation) {
            let error = world.error(of: request)
            #expect(
                error?.code == .limitExceeded && error?.detail == UInt32(Limits.textBytesMax), sourceLocation: location)
        }
        expectTooLong(request)
        request.selectedOptions = short
        let collaboration = try world.send(request).collaborationIdentifier
        request.selectedOptions = long
        expectTooLong(request)
        expectTooLong(UpdateShareOptions(collaboration, selectedOptions: long))
        expectTooLong(UpdateShareOptions(collaboration, replacing: options))
        let changed = UpdateShareOptions(collaboration, selectedOptions: long, givenSummary: "Many")
        #expect(try world.send(changed).changed == 1)
    }

    @Test("A local identifier that names nothing is malformed")
    func localIdentifiers() throws {
        for name in ["", String(repeating: "a", count: 129), "a\u{0}b", "line\n", "\u{7f}"] {
            #expect(world.code(of: try prepare(deckMetadata(name))) == .malformedRequest)
        }
        #expect(world.code(of: try prepare(deckMetadata(String(repeating: "a", count: 128)))) == nil)
    }
}

@Suite("Ending a collaboration")
struct EndingTests {
    private let world = World()

    private func abandon(_ owner: String = "ana", _ local: String = "deck") throws -> AbandonCollaboration {
        AbandonCollaboration(
            owner: try account(owner), localIdentifier: LocalCollaborationIdentifier(rawValue: local))
    }

    @Test("Abandoning leaves nothing of a start, and doing it again is harmless")
    func abandonStart() throws {
        _ = try world.start("other")
        let (records, sets) = (world.storage.records, world.storage.sets)
        _ = try world.start()
        #expect(try world.send(try abandon()).changed == 1)
        #expect(world.storage.records == records)
        #expect(world.storage.sets == sets)
        #expect(try world.send(try abandon()) == ChangeReceipt(sequence: world.storage.sequence, changed: 0))
        #expect(try world.send(try abandon("bo", "other")).changed == 0)
        #expect(world.storage.records == records)
    }

    @Test("A start in which somebody else takes part can't be abandoned")
    func abandonWithOthers() throws {
        for number in [UInt8(0), 2] {
            let local = "deck \(number)"
            let collaboration = try world.start(local)
            try world.send(AddParticipants([NewParticipant(person(number))], to: collaboration))
            #expect(world.code(of: try abandon("ana", local)) == .notPermitted)
        }
    }

    @Test("Those who were removed take no part: the start can be abandoned again")
    func abandonAfterRemoval() throws {
        let collaboration = try world.start()
        try world.admit([person(0), person(2), person(3)], to: collaboration)
        try world.send(RemoveParticipants([person(0), person(2)], from: collaboration))
        #expect(world.code(of: try abandon()) == .notPermitted)
        try world.send(RemoveParticipants([person(3)], from: collaboration))
        #expect(try world.send(try abandon()).changed == 1)
        #expect(world.storage.records.isEmpty)
    }

    @Test("A start can be abandoned in which not even the owner takes part")
    func abandonWithoutIdentity() throws {
        try world.send(PrepareCollaboration(owner: try account("ana"), metadata: deckMetadata()))
        #expect(try world.send(try abandon()).changed == 1)
        #expect(world.storage.records.isEmpty && world.storage.sets.isEmpty)
    }

    @Test("An abandoned content can be started anew, as another collaboration")
    func startAnew() throws {
        let first = try world.start()
        try world.send(try abandon())
        #expect(try world.start() != first)
    }

    /// A collaboration with records of every kind: people in all states, links, notices, cleared ones, invitations.
    private func fill(_ collaboration: CollaborationIdentifier) throws {
        try world.admit([person(2), person(3), person(4)], to: collaboration)
        try world.send(AddParticipants([NewParticipant(person(5))], to: collaboration))
        for (number, name) in [(UInt8(2), "bo"), (3, "bo"), (4, "cy")] {
            try world.send(LinkAccount(try account(name), to: person(number), in: collaboration))
        }
        for _ in 0..<3 { try world.post([.change(trigger: .edit)], by: person(2), on: collaboration) }
        try world.send(ClearNotices(of: collaboration, by: try world.grant(person(2), in: collaboration)))
        try world.send(RemoveParticipants([person(4)], from: collaboration))
        let tokens = (UInt8(0)..<4).map {
            InvitationToken(bytes: Array(standIn(collaboration.utf8 + [$0]).bytes.prefix(16)))
        }
        let invitations = try tokens.map { try world.send(CreateInvitation(to: collaboration, token: $0)) }
        try world.send(AcceptInvitation(tokens[0], for: try account("di"), identity: person(6)))
        try world.send(AcceptInvitation(tokens[1], for: try account("bo")))
        try world.send(RevokeInvitation(invitations[2].identifier, of: collaboration))
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["view"]))
        try world.send(
            CustomizeDetails(of: collaboration, customItems: .set([CustomItem(identifier: "i", title: "I")])))
    }

    @Test("Stopping to share leaves no record and no set of the collaboration, and all of the others")
    func stop() throws {
        let other = try world.start("other", options: .deck)
        try fill(other)
        try world.send(
            RecordShare(
                url: try url("https://decks.example/x"), app: "com.example", sharer: Sharer(name: "Ana"),
                conversation: Conversation(identifier: "c"), recipients: [ShareRecipient(try account("bo"))]))
        let (records, sets) = (world.storage.records, world.storage.sets)
        let collaboration = try world.start("deck", options: .deck)
        try fill(collaboration)
        #expect(world.storage.records.count > records.count + 20)
        let receipt = try world.send(StopSharing(collaboration))
        #expect(receipt == ChangeReceipt(sequence: world.storage.sequence, changed: 1))
        #expect(world.storage.records == records)
        #expect(world.storage.sets == sets)
    }

    @Test("Stopping to share changes the topics of the collaboration and of the accounts that are linked to it")
    func stopTopics() throws {
        let collaboration = try world.start("deck", options: .deck)
        try fill(collaboration)
        let topics = try world.topics(StopSharing(collaboration))
        #expect(topics == [.collaboration(collaboration), .account(try account("bo"))])
    }

    @Test("A collaboration that is no longer shared is unknown to every request")
    func stopped() throws {
        let collaboration = try world.start()
        let grant = try world.grant(person(1), in: collaboration)
        try world.send(StopSharing(collaboration))
        #expect(world.code(of: StopSharing(collaboration)) == .unknownCollaboration)
        #expect(world.code(of: FindHighlight(collaboration)) == .unknownCollaboration)
        #expect(world.code(of: UpdateShareOptions(collaboration, selectedOptions: [])) == .unknownCollaboration)
        #expect(world.code(of: ReadDetails(of: collaboration)) == .unknownCollaboration)
        #expect(world.code(of: CustomizeDetails(of: collaboration)) == .unknownCollaboration)
        #expect(world.code(of: ReadNotices(.collaboration(collaboration))) == .unknownCollaboration)
        #expect(world.code(of: ListInvitations(of: collaboration)) == .unknownCollaboration)
        #expect(world.code(of: CreateInvitation(to: collaboration)) == .unknownCollaboration)
        let post = world.error(of: PostNotices([.change(trigger: .edit)], on: collaboration, by: grant))
        #expect(post?.code == .grantRefused && post?.detail == UInt32(GrantStatus.revoked.rawValue))
        #expect(try world.storage.access(of: person(1), in: collaboration) == nil)
    }

    @Test("Invitations and links beyond the limit of one edit lead nowhere after the end")
    func stopWithMany() throws {
        let collaboration = try world.start()
        let tokens = (0..<1003).map { InvitationToken(bytes: Array(standIn(Array("\($0)".utf8)).bytes.prefix(16))) }
        for token in tokens { try world.send(CreateInvitation(to: collaboration, token: token)) }
        let people = (0..<1003).map { PersonIdentity(rootHash: standIn(Array("person \($0)".utf8))) }
        for start in stride(from: 0, to: people.count, by: 400) {
            try world.admit(Array(people[start..<min(start + 400, people.count)]), to: collaboration)
        }
        let bo = try account("bo")
        for (number, person) in people.enumerated() {
            try world.send(LinkAccount(try account("bo \(number)"), to: person, in: collaboration))
        }
        try world.send(StopSharing(collaboration))
        #expect(world.storage.sets.isEmpty)
        #expect(world.storage.records.count == 6, "three places of invitations and three links from accounts")
        for token in tokens { #expect(try world.send(AcceptInvitation(token, for: bo)).refusal == .unknown) }
        for number in people.indices.suffix(5) {
            let page = try world.send(ReadNotices(.account(try account("bo \(number)"))))
            #expect(page.notices.isEmpty && !page.hasMore)
        }
        #expect(try world.send(ListShares(of: bo, scope: .shared)).shares.isEmpty)

        // Another life of the identifier. Who is linked by a record that was left sees nothing of it.
        try world.send(
            PrepareCollaborationAs(collaboration, owner: try account("ana"), metadata: deckMetadata()))
        try world.send(ClaimOwnership(of: collaboration, by: try account("ana"), as: person(1)))
        let numbers = people.indices.sorted {
            people[$0].rootHash.bytes.lexicographicallyPrecedes(people[$1].rootHash.bytes)
        }
        let last = try #require(numbers.last)
        let former = try account("bo \(last)")
        try world.admit([people[last]], to: collaboration)
        try world.post([.change(trigger: .edit)], by: person(1), on: collaboration)
        #expect(try world.send(ReadNotices(.account(former))).notices.isEmpty)
        try world.send(LinkAccount(former, to: people[last], in: collaboration))
        #expect(try world.send(ReadNotices(.account(former))).notices.count == 1)
        try world.send(RemoveParticipants([people[last]], from: collaboration))
        #expect(try world.send(ReadNotices(.account(former))).notices.isEmpty)
    }
}

@Suite("Highlights of collaborations")
struct FindHighlightTests {
    private let world = World()

    private func found(_ text: String) throws -> CollaborationIdentifier? {
        let request = FindHighlight(url: try url(text))
        guard let error = thrownServiceError({ try world.send(request) }) else {
            return try world.send(request).collaborationIdentifier
        }
        #expect(error.code == .unknownCollaboration, "\(text)")
        return nil
    }

    @Test("A highlight is found by its identifier and by its link")
    func both() throws {
        let collaboration = try world.start("deck", options: .deck)
        let highlight = try world.send(FindHighlight(collaboration))
        #expect(highlight.collaborationIdentifier == collaboration)
        #expect(try world.send(FindHighlight(url: try #require(highlight.url))) == highlight)
    }

    @Test("Query, fragment and percent escapes in a link don't matter")
    func variants() throws {
        let collaboration = try world.start()
        let link = "https://decks.example/c/\(collaboration)"
        for tail in ["?utm=1", "#page", "?a=b/c&d=e#f", "?", "#"] { #expect(try found(link + tail) == collaboration) }
        for count in [1, collaboration.utf8.count] {
            let escaped = collaboration.utf8.prefix(count).map { "%" + [$0].hexadecimal }.joined()
            let rest = String(decoding: collaboration.utf8.dropFirst(count), as: UTF8.self)
            #expect(try found("https://decks.example/c/" + escaped + rest) == collaboration)
            #expect(try found("https://decks.example/c/" + escaped.uppercased() + rest) == collaboration)
        }
    }

    @Test("Links that are not of this service lead to no collaboration")
    func foreign() throws {
        let collaboration = try world.start()
        for text in [
            "https://decks.example/d/\(collaboration)", "http://decks.example/c/\(collaboration)",
            "https://other.example/c/\(collaboration)", "https://decks.example/c//\(collaboration)",
            "https://decks.example:80/c/\(collaboration)", "https://decks.example./c/\(collaboration)",
            "https://decks.example/C/\(collaboration)", "https://decks.example/c%2F\(collaboration)",
            "https://decks.example@evil.example/c/\(collaboration)", "https://me@decks.example/c/\(collaboration)",
            "https://@decks.example/c/\(collaboration)", "https://decks.example/c/../\(collaboration)",
            "https://decks.example/c/\(collaboration)/..", "https://decks.example/c/\(collaboration)/../nobody",
            "https://decks.example/c/", "https://decks.example/c", "https://decks.example/cc/\(collaboration)",
            "https://decks.example.evil.example/c/\(collaboration)", "https://decks.example/c/%00",
            "https://decks.example/c/?\(collaboration)", "https://decks.example/c/nobody",
        ] {
            #expect(try found(text) == nil, "\(text)")
        }
    }

    @Test("A link may be written in any way that leads to the collaboration, or deeper into it")
    func spellings() throws {
        let collaboration = try world.start()
        for text in [
            "HTTPS://Decks.EXAMPLE/c/\(collaboration)", "https://decks.example:443/c/\(collaboration)",
            "https://decks.example:/c/\(collaboration)", "https://decks.example/c/\(collaboration)/",
            "https://decks.example/./c/x/../\(collaboration)", "https://decks.example/%63/\(collaboration)",
            "https://decks.example/c/\(collaboration)/page", "https://decks.example/c/\(collaboration)/page/3?q#f",
            "https://decks.example/c/\(collaboration)//", "https://decks.example/c/nobody/%2E%2e/\(collaboration)",
        ] {
            #expect(try found(text) == collaboration, "\(text)")
        }
        world.settings.linkBase = "https://DECKS.example:443/x/../c/"
        #expect(try found("https://decks.example/c/\(collaboration)/3") == collaboration)
    }

    @Test("A link that is not one of the web is malformed, wherever a request takes one, and the error names the field")
    func otherSchemes() throws {
        let collaboration = try world.start()
        let ana = try account("ana")
        let share = RecordShare(
            url: try url("https://a.example"), app: "app", sharer: Sharer(name: "Ana"),
            conversation: Conversation(identifier: "c"), recipients: [ShareRecipient(ana)])
        let good = CustomItem(identifier: "a", title: "A", url: try url("https://a.example"))
        for text in [
            "javascript:alert(1)", "mailto:ana@example.com", "data:text/html,a", "file:///etc/passwd", "tel:1",
            "https:a.example", "https:///path", "/c/\(collaboration)", "a", "ftp://a.example/c", "https://:443/c",
        ] {
            let link = try url(text)
            var shared = share
            shared.url = link
            let items = [good, CustomItem(identifier: "b", title: "B", url: link)]
            let requests: [(any RuledRequest, String)] = [
                (FindHighlight(url: link), "url"), (shared, "url"),
                (PinHighlight(link, of: ana, for: .everyApp), "url"),
                (RemoveHighlight(link, of: ana, for: .everyApp), "url"),
                (SignalHighlight(.viewed, link, of: ana, for: .everyApp), "url"),
                (ReadAttribution(link, of: ana, for: .everyApp), "url"),
                (ReadThumbnail(.zero, of: link, on: ana, for: .everyApp), "url"),
                (CustomizeDetails(of: collaboration, customItems: .set(items)), "customItems[1].url"),
            ]
            for (request, field) in requests {
                let error = world.error(of: request)
                #expect(error?.code == .malformedRequest, "\(request)")
                #expect(error?.reason.hasPrefix("\(field) is not a link") == true, "\(request)")
            }
        }
        let long = try url("https://a.example/" + String(repeating: "a", count: Limits.linkBytesMax))
        #expect(world.code(of: FindHighlight(url: long)) == .limitExceeded)
        #expect(world.code(of: ReadThumbnail(.zero, of: long, on: ana, for: .everyApp)) == .limitExceeded)
    }

    @Test("A base with a slash at its end makes the same links")
    func trailingSlash() throws {
        let collaboration = try world.start()
        let link = try #require(try world.send(FindHighlight(collaboration)).url)
        world.settings.linkBase = "https://decks.example/c/"
        #expect(try world.send(FindHighlight(collaboration)).url == link)
        #expect(try found(link.absoluteString) == collaboration)
    }

    @Test("Without a base there is a highlight, but no link")
    func noBase() throws {
        let collaboration = try world.start()
        let link = try #require(try world.send(FindHighlight(collaboration)).url)
        world.settings.linkBase = nil
        #expect(try world.send(FindHighlight(collaboration)).url == nil)
        #expect(try found(link.absoluteString) == nil)
    }

    @Test("A request for a highlight that names nothing is malformed")
    func nothing() throws {
        let empty = try JSON.decode(FindHighlight.self, from: Array("{}".utf8))
        #expect(world.code(of: empty) == .malformedRequest)
    }
}

@Suite("Details of a collaboration")
struct DetailsTests {
    private let world = World()

    @Test("Details show participants, the newest activity first, and what the viewer may do")
    func details() throws {
        let collaboration = try world.start("deck", options: .deck)
        try world.admit([person(2), person(3)], to: collaboration)
        try world.send(
            UpdateParticipant(
                ParticipantChange(person(2), displayName: .set("Bo"), role: .administrator), in: collaboration))
        for number in 0..<25 {
            let event: HighlightEvent = number == 24 ? .mention(person: person(3)) : .change(trigger: .edit)
            try world.post([event], by: person(1), on: collaboration)
        }
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        try world.send(AddParticipants([NewParticipant(person(2), role: .administrator)], to: collaboration))
        try world.admit([person(4)], to: collaboration)
        try world.send(RemoveParticipants([person(4)], from: collaboration))
        let all = try world.send(ReadDetails(of: collaboration))
        #expect(all.participants.map(\.identity) == [person(1), person(2), person(3)])
        #expect(all.participantCount == 3)
        #expect(all.manageOperations == ManageOperation.allCases)
        #expect(all.manageButtonTitle == CollaborationDetails.standardManageButtonTitle)
        #expect(all.recentActivity.count == Limits.detailNoticesMax)
        #expect(all.recentActivity.map(\.sequence) == all.recentActivity.map(\.sequence).sorted(by: >))
        #expect(all.recentActivity.allSatisfy { $0.event == .change(trigger: .edit) })
        func seen(_ number: UInt8) throws -> CollaborationDetails {
            try world.send(ReadDetails(of: collaboration, viewer: person(number)))
        }
        #expect(try seen(1).manageOperations == ManageOperation.allCases)
        #expect(
            try seen(2).manageOperations
                == [.changeOptions, .addParticipants, .changeParticipants, .removeParticipants])
        #expect(try seen(3).manageOperations == [])
        #expect(try seen(3).recentActivity.first?.event == .mention(person: person(3)))
        #expect(try seen(2).recentActivity.first?.event == .change(trigger: .edit))
        for stranger in [UInt8(4), 9] {
            #expect(world.code(of: ReadDetails(of: collaboration, viewer: person(stranger))) == .unknownParticipant)
        }
    }

    @Test("Details show the first participants and count them all")
    func manyParticipants() throws {
        let collaboration = try world.start()
        let people = (0..<150).map { PersonIdentity(rootHash: standIn(Array("\($0)".utf8))) }
        try world.send(AddParticipants(people.map { NewParticipant($0) }, to: collaboration))
        try world.send(RemoveParticipants(Array(people.prefix(10)), from: collaboration))
        let details = try world.send(ReadDetails(of: collaboration))
        #expect(details.participants.count == Limits.detailParticipantsMax)
        #expect(details.participantCount == 141)
    }

    @Test("Customizing changes what is given and leaves the rest, and clearing the title brings the usual one back")
    func customizing() throws {
        let collaboration = try world.start()
        let item = CustomItem(identifier: "open", title: "Open", subtitle: "Now", url: try url("https://a.example"))
        try world.send(
            CustomizeDetails(of: collaboration, customItems: .set([item]), manageButtonTitle: .set("Manage Deck")))
        try world.send(CustomizeDetails(of: collaboration, title: .set("Plans")))
        let details = try world.send(ReadDetails(of: collaboration))
        #expect(details.highlight.title == "Plans")
        #expect(details.customItems == [item])
        #expect(details.manageButtonTitle == "Manage Deck")
        try world.send(CustomizeDetails(of: collaboration, customItems: .clear, manageButtonTitle: .clear))
        let bare = try world.send(ReadDetails(of: collaboration))
        #expect(bare.customItems == [])
        #expect(bare.manageButtonTitle == CollaborationDetails.standardManageButtonTitle)
        #expect(bare.highlight.title == "Plans")
        #expect(try world.send(CustomizeDetails(of: collaboration)).changed == 0)
        #expect(world.code(of: CustomizeDetails(of: collaboration, manageButtonTitle: .set(""))) == .malformedRequest)
    }

    @Test("Custom items and texts over their limits are refused")
    func limits() throws {
        let collaboration = try world.start()
        let item = CustomItem(identifier: "i", title: "I")
        let long = String(repeating: "a", count: Limits.textBytesMax + 1)
        for request in [
            CustomizeDetails(of: collaboration, title: .set(long)),
            CustomizeDetails(of: collaboration, manageButtonTitle: .set(long)),
            CustomizeDetails(
                of: collaboration, customItems: .set(.init(repeating: item, count: Limits.customItemsMax + 1))),
            CustomizeDetails(of: collaboration, customItems: .set([CustomItem(identifier: "i", title: long)])),
            CustomizeDetails(
                of: collaboration, customItems: .set([CustomItem(identifier: "i", title: "", subtitle: long)])),
        ] {
            #expect(world.code(of: request) == .limitExceeded)
        }
        let nameless = CustomizeDetails(of: collaboration, customItems: .set([CustomItem(identifier: "", title: "")]))
        #expect(world.code(of: nameless) == .malformedRequest)
    }
}
