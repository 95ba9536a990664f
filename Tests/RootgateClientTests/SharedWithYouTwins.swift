import Core
import Foundation
import Hashing
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

// Each test is the twin of a sample of Apple's articles "Adding custom collaboration to your app" and "Adding Shared
// with You to your app", the sessions WWDC22 10093 and 10094, and "Accepting share invitations in a SwiftUI app": in
// the same order, with the same names apart from the prefix, against a live service and simulated devices.

@Suite struct SharedWithYouTwins {
    private let calendar = TestCalendar()
    private let service: TestService
    private let client: RootgateClient
    private let devin = SimulatedPerson("devin")

    init() throws {
        service = try TestService(calendar: calendar)
        client = try service.client()
    }

    // MARK: Create the metadata object

    private func makeMetadata() -> CollaborationMetadata {
        let localIdentifier = LocalCollaborationIdentifier(rawValue: "identifier")
        var metadata = CollaborationMetadata(localIdentifier: localIdentifier)
        metadata.title = "Content Title"
        metadata.initiatorHandle = "user@example.com"

        if let components = NameComponents(from: "Devin") {
            metadata.initiatorNameComponents = components
        }

        var permission = OptionsPickerGroup(
            identifier: UUID().uuidString,
            options: [
                CollaborationOption(title: "Can make changes", identifier: UUID().uuidString),
                CollaborationOption(title: "Read only", identifier: UUID().uuidString),
            ])
        permission.options[0].isSelected = true
        permission.title = "Permission"

        var additionalOptions = OptionsGroup(
            identifier: UUID().uuidString,
            options: [
                CollaborationOption(title: "Allow mentions", identifier: UUID().uuidString),
                CollaborationOption(title: "Allow comments", identifier: UUID().uuidString),
            ])
        additionalOptions.title = "Additional Settings"
        let optionsGroups: [any CollaborationOptionsGroup] = [permission, additionalOptions]
        metadata.defaultShareOptions = ShareOptions(optionsGroups: optionsGroups)
        return metadata
    }

    /// The options of that title, as the person taps them in the share sheet.
    private func options(_ titles: String..., in options: ShareOptions?) throws -> [String] {
        let all = try #require(options).groups.flatMap(\.options)
        return try titles.map { title in try #require(all.first { $0.title == title }).identifier }
    }

    @Test("Metadata and share options are made as in the article")
    func metadataAndShareOptions() throws {
        let metadata = makeMetadata()
        let options = try #require(metadata.defaultShareOptions)
        #expect(options.summary(for: .readOnly) == "Can make changes")
        #expect(try Array(options.selectedIdentifiers) == self.options("Can make changes", in: options))
        #expect(options.optionsGroups.map(\.title) == ["Permission", "Additional Settings"])
        #expect(metadata.initiatorNameComponents == NameComponents(givenName: "Devin"))
        #expect(metadata.initiatorNameComponents?.formatted == "Devin")
    }

    // MARK: Present a collaboration view

    private struct CustomCollaboration: TransferableContent {
        var name: String

        static var transferRepresentation: some TransferRepresentation<CustomCollaboration> {
            ProxyRepresentation { customCollaboration in
                CollaborationMetadata(
                    localIdentifier: .init(rawValue: "com.example.customcollaboration"),
                    title: customCollaboration.name,
                    defaultShareOptions: nil,
                    initiatorHandle: "johnappleseed@apple.com",
                    initiatorNameComponents: nil
                )
            }
        }
    }

    @Test("A model object of the app is shared through the metadata that represents it")
    func proxyRepresentation() async throws {
        let item = CustomCollaboration(name: "Example")
        let metadata = item.collaborationMetadata
        #expect(metadata.localIdentifier.rawValue == "com.example.customcollaboration")
        #expect(metadata.title == "Example" && metadata.initiatorHandle == "johnappleseed@apple.com")
        #expect(metadata.defaultShareOptions == nil && metadata.initiatorNameComponents == nil)
        let representations = try item.representations()
        #expect(representations.map(\.typeIdentifier) == ["public.json", "public.utf8-plain-text"])
        #expect(try CollaborationMetadata(json: representations[0].content) == metadata)
        let prepared = try await client.send(PrepareCollaboration(owner: devin.account, metadata: metadata))
        #expect(prepared.highlight.title == "Example")
    }

    @Test("Metadata goes into an item provider in every representation")
    func metadataInAnItemProvider() throws {
        let metadata = makeMetadata()
        let copy = CollaborationMetadata.FileCopy(
            name: "Content.txt", typeIdentifier: "public.plain-text", content: Data("the content".utf8))
        let itemProvider = try metadata.representations(link: URL(string: "https://example.com/collab/1"), copy: copy)
        #expect(itemProvider.map(\.typeIdentifier) == ["public.json", "public.plain-text", "public.utf8-plain-text"])
        #expect(try CollaborationMetadata(json: itemProvider[0].content) == metadata)
        #expect(itemProvider[1].content == Data("the content".utf8))
        #expect(
            String(decoding: itemProvider[2].content, as: UTF8.self)
                == "Content Title\nCan make changes\nhttps://example.com/collab/1")
    }

    // MARK: Coordinate the collaboration

    /// The app's handler, as the article has it.
    private final class AppDelegate: CollaborationActionHandler {
        let apiController: RootgateClient
        let owner: SimulatedPerson
        /// Whether the app adds nobody.
        let refuses = Lock(false)

        init(_ apiController: RootgateClient, _ owner: SimulatedPerson) {
            self.apiController = apiController
            self.owner = owner
        }

        func collaborationCoordinator(
            _ coordinator: CollaborationCoordinator, handle action: StartCollaborationAction
        ) {
            let owner = owner.account
            Task {
                do {
                    let response = try await action.prepare(with: apiController, owner: owner)
                    action.fulfill(
                        using: response.url, collaborationIdentifier: response.collaborationIdentifier)
                } catch {
                    action.fail()
                }
            }
        }

        func collaborationCoordinator(
            _ coordinator: CollaborationCoordinator, handle action: UpdateCollaborationParticipantsAction
        ) {
            guard let identifier = action.collaborationMetadata.collaborationIdentifier, !refuses.withLock({ $0 })
            else {
                action.fail()  // Cancels the message.
                return
            }
            let added = action.addedIdentities.map { NewParticipant($0) }
            Task {
                do {
                    _ = try await apiController.send(
                        UpdateParticipants(of: identifier, adding: added, removing: action.removedIdentities))
                    action.fulfill()
                } catch {
                    action.fail()
                }
            }
        }
    }

    @Test("A coordinator starts a collaboration with the options that the person has selected")
    func coordinatorStart() async throws {
        // The coordinator of the whole program, as the article has it; no other test uses it.
        let collaborationCoordinator = CollaborationCoordinator.shared
        let appDelegate = AppDelegate(client, devin)
        collaborationCoordinator.actionHandler = appDelegate
        defer { collaborationCoordinator.actionHandler = nil }
        var metadata = makeMetadata()
        let tapped = try options("Read only", "Allow mentions", in: metadata.defaultShareOptions)
        metadata.userSelectedShareOptions = try metadata.defaultShareOptions?.selecting(tapped)
        let started = try await collaborationCoordinator.startCollaboration(with: metadata)
        #expect(
            started.url.absoluteString == "\(TestService.linkBase)/\(started.collaborationIdentifier)")
        let highlightCenter = HighlightCenter(client, account: devin.account, app: app)
        let highlight = try await highlightCenter.collaborationHighlight(for: started.url)
        #expect(highlight.collaborationIdentifier == started.collaborationIdentifier)
        #expect(highlight.title == "Content Title")
        #expect(highlight.summary == "Read only")
        // The same device shares it once more.
        let again = try await collaborationCoordinator.startCollaboration(with: metadata)
        #expect(again == started)
    }

    @Test("A message is sent when its recipients were added, and cancelled when they were not")
    func messageWithRecipients() async throws {
        let collaborationCoordinator = CollaborationCoordinator()
        let appDelegate = AppDelegate(client, devin)
        collaborationCoordinator.actionHandler = appDelegate
        let recipients = ["ana", "bo"].map { SimulatedPerson($0) }
        let metadata = makeMetadata()
        let message = try await collaborationCoordinator.share(
            with: metadata, adding: { collaboration in try recipients.map { try $0.identity(in: collaboration) } })
        for recipient in recipients {
            #expect(try await recipient.open(message.collaborationIdentifier, client).verdict == .granted)
        }
        // The app can't add anybody, so the message is cancelled and nothing stays behind.
        let stranger = SimulatedPerson("stranger")
        var other = metadata
        other.localIdentifier = LocalCollaborationIdentifier(rawValue: "other")
        appDelegate.refuses.withLock { $0 = true }
        await #expect(throws: CollaborationActionFailure.failed) {
            try await collaborationCoordinator.share(
                with: other, adding: { [try stranger.identity(in: $0)] })
        }
        let shares = try await client.send(ListShares(of: devin.account, scope: .private)).shares
        #expect(shares.map(\.collaborationIdentifier) == [message.collaborationIdentifier])
    }

    // MARK: Verify access

    @Test("A device signs a proof for the collaboration of a link")
    func signedIdentityProofForALink() async throws {
        let participant = SimulatedPerson("lance", devices: 3)
        let prepared = try await client.send(
            PrepareCollaboration(owner: devin.account, metadata: makeMetadata()))
        let identity = try participant.identity(in: prepared.collaborationIdentifier)
        _ = try await client.send(AddParticipants([NewParticipant(identity)], to: prepared.collaborationIdentifier))

        // The device opens the link.
        let highlightCenter = HighlightCenter(
            client, account: participant.account, app: app, device: participant.device(2))
        let highlight = try await highlightCenter.collaborationHighlight(for: prepared.url)
        let data = try await client.challenges(1).challenges[0]
        let proof = try await highlightCenter.signedIdentityProof(for: highlight, using: data)
        let verdict = try await client.verify(proof, in: highlight.collaborationIdentifier)
        #expect(verdict == .granted)
        // The same challenge grants access once.
        #expect(try await client.verify(proof, in: highlight.collaborationIdentifier) == .challengeReplayed)
    }

    /// The article's computation of a root hash. Only the hash function is this package's.
    private func generateRootHashFromArray(
        localHash: [UInt8], inclusionHashes: [[UInt8]], publicKeyIndex: Int
    ) -> [UInt8] {
        guard let first = inclusionHashes.first else { return localHash }
        // An even index has its sibling on the right.
        let pair = publicKeyIndex % 2 == 0 ? localHash + first : first + localHash
        return generateRootHashFromArray(
            localHash: SHA256.hash(pair).bytes, inclusionHashes: Array(inclusionHashes.dropFirst()),
            publicKeyIndex: publicKeyIndex / 2)
    }

    @Test("A root hash is computed from a proof")
    func rootHashFromProof() async throws {
        let participant = SimulatedPerson("lance", devices: 5)
        let collaboration = try #require(CollaborationIdentifier("any"))
        let proof = try await participant.device(4).signedIdentityProof(in: collaboration, signing: [1, 2, 3])
        let rootHash = generateRootHashFromArray(
            localHash: SHA256.hash(proof.publicKey).bytes, inclusionHashes: proof.inclusionHashes.map(\.bytes),
            publicKeyIndex: Int(proof.publicKeyIndex))
        #expect(try participant.identity(in: collaboration).rootHash.bytes == rootHash)
    }

    // MARK: Add and remove participants

    @Test("Participants are added and removed")
    func addAndRemoveParticipants() async throws {
        let collaborationCoordinator = CollaborationCoordinator()
        let appDelegate = AppDelegate(client, devin)
        collaborationCoordinator.actionHandler = appDelegate
        var metadata = makeMetadata()
        let started = try await collaborationCoordinator.startCollaboration(with: metadata)
        metadata.collaborationIdentifier = started.collaborationIdentifier
        let people = ["ana", "bo", "cy"].map { SimulatedPerson($0) }
        let identities = try people.map { try $0.identity(in: started.collaborationIdentifier) }

        try await collaborationCoordinator.updateParticipants(of: metadata, adding: identities)
        for person in people {
            #expect(try await person.open(started.collaborationIdentifier, client).verdict == .granted)
        }
        try await collaborationCoordinator.updateParticipants(of: metadata, removing: [identities[1]])
        #expect(try await people[0].open(started.collaborationIdentifier, client).verdict == .granted)
        #expect(try await people[1].open(started.collaborationIdentifier, client).verdict == .notParticipant)
        let listed = try await client.send(
            ListParticipants(of: started.collaborationIdentifier, includesRemoved: true))
        let states = Dictionary(uniqueKeysWithValues: listed.participants.map { ($0.identity, $0.state) })
        #expect(states == [identities[0]: .joined, identities[1]: .removed, identities[2]: .joined])
    }

    // MARK: Post notices

    @Test("Notices of every kind are posted and cleared")
    func notices() async throws {
        let lance = SimulatedPerson("lance")
        let prepared = try await client.send(
            PrepareCollaboration(owner: devin.account, metadata: makeMetadata()))
        let collaboration = prepared.collaborationIdentifier
        let mentioned = try lance.identity(in: collaboration)
        let author = try devin.identity(in: collaboration)
        _ = try await client.send(
            AddParticipants(
                [
                    NewParticipant(author, displayName: "Devin", permission: .readWrite),
                    NewParticipant(mentioned, displayName: "Lance"),
                ], to: collaboration))

        let highlightCenter = HighlightCenter(client, account: devin.account, app: app, device: devin.device())
        let highlight = try await highlightCenter.collaborationHighlight(forIdentifier: collaboration)
        let editEvent = HighlightChangeEvent(highlight: highlight, trigger: .edit)
        try await highlightCenter.postNotice(for: editEvent)
        let mentionEvent = HighlightMentionEvent(highlight: highlight, mentionedPersonIdentity: mentioned)
        try await highlightCenter.postNotice(for: mentionEvent)
        let renamedEvent = HighlightPersistenceEvent(highlight: highlight, trigger: .renamed)
        try await highlightCenter.postNotice(for: renamedEvent)
        // As in the sample, which names nobody: whoever posts it, it says what is so.
        let membershipEvent = HighlightMembershipEvent(highlight: highlight, trigger: .addedCollaborator)
        try await highlightCenter.postNotice(for: membershipEvent)

        let everybody = try await client.send(ReadNotices(.collaboration(collaboration)))
        #expect(
            everybody.notices.map(\.sentence) == [
                "Devin edited “Content Title”", "Devin renamed “Content Title”",
                "There is a new participant in “Content Title”",
            ])
        let his = try await client.send(ReadNotices(.participant(mentioned, of: collaboration)))
        #expect(
            his.notices.map(\.sentence) == [
                "Devin edited “Content Title”", "Devin mentioned you in “Content Title”",
                "Devin renamed “Content Title”", "There is a new participant in “Content Title”",
            ])

        let hisCenter = HighlightCenter(client, account: lance.account, app: app, device: lance.device())
        try await hisCenter.clearNotices(for: highlight)
        #expect(try await client.send(ReadNotices(.participant(mentioned, of: collaboration))).notices.isEmpty)
        #expect(try await client.send(ReadNotices(.collaboration(collaboration))).notices.count == 3)
    }

    // MARK: Enumerate the highlights

    private let app = "com.example.app"

    private final class ContentViewController: HighlightCenterDelegate {
        let changes = Lock<[[URL]]>([])
        let previewed = Lock<Set<URL>>([])

        func highlightCenterHighlightsDidChange(
            _ highlightCenter: HighlightCenter, highlights: [Highlight], difference: CollectionDifference<URL>
        ) {
            // What a rich preview is made from.
            previewed.withLock { previewed in
                for highlight in highlights {
                    let highlightURL = highlight.url
                    previewed.insert(highlightURL)
                }
            }
            let inserted = difference.insertions.map { change -> URL in
                switch change {
                case .insert(_, let element, _), .remove(_, let element, _): element
                }
            }
            changes.withLock { $0.append(inserted) }
        }
    }

    private func share(_ link: String, from name: String = "Ana", in conversation: String = "chat") async throws {
        calendar.advance(seconds: 60)
        _ = try await client.send(
            RecordShare(
                url: #require(URL(string: link)), title: "About \(link.suffix(1))", app: app,
                sharer: Sharer(name: name, avatar: "avatars/\(name)"),
                conversation: Conversation(identifier: conversation, name: "The \(conversation)"),
                recipients: [ShareRecipient(devin.account)]))
    }

    /// The person turns automatic sharing on, or has never said anything.
    private func allowAutomaticSharing() async throws {
        _ = try await client.send(SetConsent(of: devin.account, .app(app), isAllowed: true))
    }

    @Test("The shelf lists its highlights and reports changes")
    func shelfEnumeration() async throws {
        try await allowAutomaticSharing()
        let highlightCenter = HighlightCenter(client, account: devin.account, app: app)
        let viewController = ContentViewController()
        try await share("https://example.com/1")
        highlightCenter.delegate = viewController
        try await share("https://example.com/2")
        var urls: [URL] = []
        for highlight in try await highlightCenter.highlights() { urls.append(highlight.url) }
        #expect(urls.map(\.absoluteString) == ["https://example.com/2", "https://example.com/1"])
        // The delegate is told of changes once it has seen the shelf.
        var shared = 3
        while viewController.changes.withLock({ $0.isEmpty }) {
            try await share("https://example.com/\(shared)")
            shared += 1
            try await Task.sleep(for: .milliseconds(50))
        }
        #expect(viewController.changes.withLock { $0.first?.isEmpty } == false)
        #expect(viewController.previewed.withLock { $0.isSuperset(of: urls) })
    }

    /// What a delegate was told: the links that came and went, and the pinned ones.
    private final class Observer: HighlightCenterDelegate {
        let told = Lock<[(inserted: Int, removed: Int, pinned: Int, count: Int)]>([])

        func highlightCenterHighlightsDidChange(
            _ center: HighlightCenter, highlights: [Highlight], difference: CollectionDifference<URL>
        ) {
            let pinned = highlights.count { $0.isPinned }
            told.withLock {
                $0.append((difference.insertions.count, difference.removals.count, pinned, highlights.count))
            }
        }

        /// Waits until something that was told meets the condition.
        func wait(until isMet: @Sendable (Int, Int, Int, Int) -> Bool) async throws {
            for _ in 0..<600 where !told.withLock({ $0.contains { isMet($0.0, $0.1, $0.2, $0.3) } }) {
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(told.withLock { $0.contains { isMet($0.0, $0.1, $0.2, $0.3) } })
            told.withLock { $0 = [] }
        }
    }

    @Test("A delegate is told of content that is added, updated and removed")
    func delegateChanges() async throws {
        try await allowAutomaticSharing()
        let highlightCenter = HighlightCenter(client, account: devin.account, app: app)
        try await share("https://example.com/1")
        let observer = Observer()
        highlightCenter.delegate = observer
        // The first thing that is told shows that the center watches the shelf.
        var number = 2
        while observer.told.withLock({ $0.isEmpty }) {
            try await share("https://example.com/\(number)")
            number += 1
            try await Task.sleep(for: .milliseconds(50))
        }
        try await share("https://example.com/added")
        try await observer.wait { inserted, _, _, _ in inserted > 0 }
        let link = try #require(URL(string: "https://example.com/added"))
        _ = try await client.send(PinHighlight(link, of: devin.account, for: .app(app)))
        try await observer.wait { _, _, pinned, _ in pinned == 1 }
        _ = try await highlightCenter.remove(link)
        try await observer.wait { _, removed, pinned, _ in removed > 0 && pinned == 0 }
    }

    @Test("A rich preview has a thumbnail, a title and a subtitle")
    func richPreview() async throws {
        try await allowAutomaticSharing()
        let art: [UInt8] = [0xff, 0xd8, 0xff, 0xe0] + [UInt8](repeating: 1, count: 500)
        _ = try await client.send(
            RecordShare(
                url: #require(URL(string: "https://example.com/episode")), title: "Episode 1", subtitle: "The show",
                thumbnail: .image(art, .jpeg), app: app, sharer: Sharer(name: "Ana"),
                conversation: Conversation(identifier: "chat"), recipients: [ShareRecipient(devin.account)]))
        let highlightCenter = HighlightCenter(client, account: devin.account, app: app)
        let highlight = try #require(try await highlightCenter.highlights().first)
        #expect(highlight.title == "Episode 1" && highlight.subtitle == "The show")
        let thumbnail = try await highlightCenter.thumbnail(of: highlight)
        #expect(thumbnail?.bytes == art && thumbnail?.type == .jpeg)
    }

    @Test("A pin brings content onto the shelf and starts the flow of automatic sharing")
    func pinning() async throws {
        let highlightCenter = HighlightCenter(client, account: devin.account, app: app)
        try await share("https://example.com/1")
        try await share("https://example.com/2")
        #expect(try await highlightCenter.highlights().isEmpty, "nothing is requested in advance, nothing surfaces")
        let link = try #require(URL(string: "https://example.com/1"))
        let pin = try await client.send(PinHighlight(link, of: devin.account, for: .everyApp))
        #expect(pin.offersAutomaticSharing && pin.offeredLevel == .app(app))
        #expect(try await highlightCenter.highlights().map(\.url) == [link])
        // The person takes the offer: further content is there automatically.
        _ = try await client.send(SetConsent(of: devin.account, try #require(pin.offeredLevel), isAllowed: true))
        #expect(try await highlightCenter.highlights().count == 2)
        try await share("https://example.com/3")
        #expect(try await highlightCenter.highlights().map(\.isPinned) == [true, false, false])
        #expect(
            try await !client.send(PinHighlight(link, of: devin.account, for: .everyApp)).offersAutomaticSharing)
    }

    @Test("The content is accessible only to the app that opens it")
    func otherApps() async throws {
        _ = try await client.send(SetConsent(of: devin.account, .everything, isAllowed: true))
        try await share("https://example.com/1")
        let others = HighlightCenter(client, account: devin.account, app: "com.example.other")
        #expect(try await others.highlights().isEmpty)
        let link = try #require(URL(string: "https://example.com/1"))
        await #expect(throws: ServiceError(.unknownHighlight, "")) { try await others.attribution(for: link) }
        await #expect(throws: ServiceError(.unknownHighlight, "")) { try await others.remove(link) }
    }

    @Test("An attribution view shows who shared an item, and the app gets its menu without people and conversations")
    func attribution() async throws {
        try await allowAutomaticSharing()
        let link = try #require(URL(string: "https://example.com/1"))
        try await share("https://example.com/1", from: "Ana", in: "family")
        try await share("https://example.com/1", from: "Bo", in: "friends")
        // What the system's side draws, out of the app's process.
        let attributionView = try await client.send(
            ReadAttribution(link, of: devin.account, for: .everyApp, removeTitle: "Remove Article"))
        #expect(attributionView.summary == "From Bo and Ana")
        #expect(attributionView.attributions.map(\.conversation?.identifier) == ["friends", "family"])
        #expect(attributionView.attributions.map(\.sharer?.avatar) == ["avatars/Bo", "avatars/Ana"])
        #expect(
            attributionView.menu.map(\.title) == ["Reply to The friends", "Reply to The family", "Remove Article"])

        let highlightCenter = HighlightCenter(client, account: devin.account, app: app)
        let supplementalMenu = try await highlightCenter.attribution(for: link, removeTitle: "Remove Item").menu
        #expect(supplementalMenu.map(\.title) == ["Reply", "Reply", "Remove Item"])
        #expect(supplementalMenu.map(\.handle) == attributionView.menu.map(\.handle))
        #expect(supplementalMenu.allSatisfy { $0.conversation == nil })
        await #expect(throws: ServiceError(.malformedRequest, "")) {
            try await highlightCenter.attribution(for: link, removeTitle: "Away with it")
        }
        // The display context feeds the ranking.
        try await highlightCenter.signal(.shown, for: link, context: .detail)
        try await highlightCenter.signal(.viewed, for: link)
        try await share("https://example.com/2")
        let shelf = try await highlightCenter.highlights()
        #expect(shelf.first?.url == link)
        #expect(shelf.map(\.isSuggested) == [true, false])
        try await highlightCenter.remove(link)
        #expect(try await highlightCenter.highlights().map(\.isSuggested) == [false])
    }

    // MARK: Accept share invitations

    @Test("Several invitations are accepted at once, and each has an answer of its own")
    func severalInvitations() async throws {
        let lance = SimulatedPerson("lance")
        var tokens: [InvitationToken] = []
        var collaborations: [CollaborationIdentifier] = []
        for local in ["one", "two", "three"] {
            let metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: local))
            let prepared = try await client.send(PrepareCollaboration(owner: devin.account, metadata: metadata))
            collaborations.append(prepared.collaborationIdentifier)
            tokens.append(.random())
            _ = try await client.send(
                CreateInvitation(to: prepared.collaborationIdentifier, token: tokens[tokens.count - 1]))
        }
        let revoked = try await client.send(ListInvitations(of: collaborations[1])).invitations
        _ = try await client.send(RevokeInvitation(try #require(revoked.first).identifier, of: collaborations[1]))
        var requests: [AcceptInvitation] = []
        for (token, collaboration) in zip(tokens, collaborations) {
            requests.append(
                AcceptInvitation(token, for: lance.account, identity: try lance.identity(in: collaboration)))
        }
        requests.append(AcceptInvitation(.random(), for: lance.account))
        let long = String(repeating: "a", count: 513)
        let results = await client.accept(
            requests + [AcceptInvitation(tokens[1], for: lance.account, displayName: long)])
        #expect(throws: ServiceError(.limitExceeded, "")) { try results.last?.get() }
        let answers = try results.dropLast().map { try $0.get() }
        #expect(answers.map(\.token) == requests.map(\.token))
        #expect(answers.map(\.refusal) == [nil, .revoked, nil, .unknown])
        #expect(answers.map(\.state) == [.in, nil, .in, nil])
        let shares = try await client.send(ListShares(of: lance.account, scope: .shared)).shares
        #expect(Set(shares.map(\.collaborationIdentifier)) == [collaborations[0], collaborations[2]])
    }

    @Test("Invitations are accepted, each with its answer")
    func invitationAcceptance() async throws {
        let lance = SimulatedPerson("lance")
        let prepared = try await client.send(
            PrepareCollaboration(owner: devin.account, metadata: makeMetadata()))
        let collaboration = prepared.collaborationIdentifier
        let shareMetadata = InvitationToken.random()
        _ = try await client.send(CreateInvitation(to: collaboration, token: shareMetadata))

        // The metadata of the share can be read before it is accepted.
        let metadata = try await client.send(ReadInvitation(shareMetadata))
        #expect(metadata.title == makeMetadata().title && metadata.state == .pending)
        #expect(metadata.inviterHandle == makeMetadata().initiatorHandle)

        // The scene delegate is told that the user accepted the share. A device that does not know the collaboration
        // yet accepts first, and comes in with the identity that it derives then.
        let first = try await client.accept([AcceptInvitation(shareMetadata, for: lance.account)]).map { try $0.get() }
        #expect(first.map(\.state) == [.accepted] && first.map(\.collaborationIdentifier) == [collaboration])
        #expect(first.first?.share == nil)
        let accepted = try await client.accept([
            AcceptInvitation(
                shareMetadata, for: lance.account, identity: try lance.identity(in: collaboration),
                displayName: "Lance")
        ]).map { try $0.get() }
        #expect(accepted.map(\.refusal) == [nil] && accepted.map(\.state) == [.in])
        #expect(accepted.first?.share?.collaborationIdentifier == collaboration)
        let sharedStore = try await client.send(ListShares(of: lance.account, scope: .shared))
        #expect(sharedStore.shares.map(\.collaborationIdentifier) == [collaboration])
        let privateStore = try await client.send(ListShares(of: devin.account, scope: .private))
        #expect(privateStore.shares.map(\.collaborationIdentifier) == [collaboration])
        #expect(try await client.send(ListShares(of: lance.account, scope: .private)).shares.isEmpty)
        #expect(try await lance.open(collaboration, client).verdict == .granted)
    }
}
