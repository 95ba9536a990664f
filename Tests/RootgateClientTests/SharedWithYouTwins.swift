import Core
import Foundation
import Hashing
import RootgateClient
import ServiceTestSupport
import Synchronization
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
        metadata.initiatorNameComponents = NameComponents(givenName: "Devin")

        var permission = OptionsPickerGroup(
            identifier: "permission",
            options: [
                CollaborationOption(
                    title: "Everyone can make changes", identifier: "change", permission: .readWrite),
                CollaborationOption(
                    title: "Only invited people can view", identifier: "view", permission: .readOnly),
            ])
        permission.options[0].isSelected = true
        permission.title = "Permissions"
        var additionalOptions = OptionsGroup(
            identifier: "additional",
            options: [
                CollaborationOption(title: "Allow mentions", identifier: "mentions", isSelected: true),
                CollaborationOption(
                    title: "Allow comments", subtitle: "Readers may comment too", identifier: "comments",
                    requiredOptionsIdentifiers: ["mentions"]),
            ])
        additionalOptions.title = "Additional Settings"
        let optionsGroups: [any CollaborationOptionsGroup] = [permission, additionalOptions]
        metadata.defaultShareOptions = ShareOptions(optionsGroups: optionsGroups)
        return metadata
    }

    @Test("Metadata and share options are made as in the article")
    func metadataAndShareOptions() throws {
        let metadata = makeMetadata()
        #expect(metadata.defaultShareOptions?.summary == "Everyone can make changes")
        #expect(metadata.defaultShareOptions?.permission == .readWrite)
        #expect(metadata.defaultShareOptions?.selectedIdentifiers == ["change", "mentions"])
        #expect(metadata.initiatorNameComponents?.formatted == "Devin")
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
                == "Content Title\nEveryone can make changes\nhttps://example.com/collab/1")
    }

    // MARK: Coordinate the collaboration

    /// The app's handler, as the article has it.
    private final class AppDelegate: CollaborationActionHandler {
        let apiController: RootgateClient
        let owner: SimulatedPerson

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
            guard let identifier = action.collaborationMetadata.collaborationIdentifier else {
                action.fail()
                return
            }
            let added = action.addedIdentities.map { NewParticipant($0) }
            Task {
                do {
                    _ = try await apiController.send(AddParticipants(added, to: identifier))
                    _ = try await apiController.send(RemoveParticipants(action.removedIdentities, from: identifier))
                    action.fulfill()
                } catch {
                    action.fail()
                }
            }
        }
    }

    @Test("A coordinator starts a collaboration")
    func coordinatorStart() async throws {
        let collaborationCoordinator = CollaborationCoordinator()
        let appDelegate = AppDelegate(client, devin)
        collaborationCoordinator.actionHandler = appDelegate
        var metadata = makeMetadata()
        metadata.userSelectedShareOptions = try metadata.defaultShareOptions?.selecting(["view", "mentions"])
        let started = try await collaborationCoordinator.startCollaboration(with: metadata)
        #expect(
            started.url.absoluteString == "\(TestService.linkBase)/\(started.collaborationIdentifier)")
        let highlightCenter = HighlightCenter(client, account: devin.account)
        let highlight = try await highlightCenter.collaborationHighlight(for: started.url)
        #expect(highlight.collaborationIdentifier == started.collaborationIdentifier)
        #expect(highlight.title == "Content Title")
        #expect(highlight.summary == "Only invited people can view")
        // The same device shares it once more.
        let again = try await collaborationCoordinator.startCollaboration(with: metadata)
        #expect(again == started)
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
        let highlightCenter = HighlightCenter(client, account: participant.account, device: participant.device(2))
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
                [NewParticipant(author, displayName: "Devin"), NewParticipant(mentioned, displayName: "Lance")],
                to: collaboration))

        let highlightCenter = HighlightCenter(client, account: devin.account, device: devin.device())
        let highlight = try await highlightCenter.collaborationHighlight(forIdentifier: collaboration)
        let editEvent = HighlightChangeEvent(highlight: highlight, trigger: .edit)
        try await highlightCenter.postNotice(for: editEvent)
        let mentionEvent = HighlightMentionEvent(highlight: highlight, mentionedPersonIdentity: mentioned)
        try await highlightCenter.postNotice(for: mentionEvent)
        let moveEvent = HighlightPersistenceEvent(highlight: highlight, trigger: .moved)
        try await highlightCenter.postNotice(for: moveEvent)
        let membershipEvent = HighlightMembershipEvent(
            highlight: highlight, trigger: .addedCollaborator, person: mentioned)
        try await highlightCenter.postNotice(for: membershipEvent)

        let everybody = try await client.send(ReadNotices(.collaboration(collaboration)))
        #expect(
            everybody.notices.map(\.sentence) == [
                "Devin edited “Content Title”", "Devin moved “Content Title”",
                "Devin added Lance to “Content Title”",
            ])
        let his = try await client.send(ReadNotices(.participant(mentioned, of: collaboration)))
        #expect(
            his.notices.map(\.sentence) == [
                "Devin edited “Content Title”", "Devin mentioned you in “Content Title”",
                "Devin moved “Content Title”", "Devin added you to “Content Title”",
            ])

        let hisCenter = HighlightCenter(client, account: lance.account, device: lance.device())
        try await hisCenter.clearNotices(for: highlight)
        #expect(try await client.send(ReadNotices(.participant(mentioned, of: collaboration))).notices.isEmpty)
        #expect(try await client.send(ReadNotices(.collaboration(collaboration))).notices.count == 3)
    }

    // MARK: Enumerate the highlights

    private final class ContentViewController: HighlightCenterDelegate {
        let changes = Mutex<[[URL]]>([])

        func highlightCenterHighlightsDidChange(
            _ highlightCenter: HighlightCenter, highlights: [Highlight], difference: CollectionDifference<URL>
        ) {
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
                url: #require(URL(string: link)), title: "About \(link.suffix(1))", app: "com.example.app",
                sharer: Sharer(name: name, avatar: "avatars/\(name)"),
                conversation: Conversation(identifier: conversation, name: "The \(conversation)"),
                recipients: [ShareRecipient(devin.account)]))
    }

    @Test("The shelf lists its highlights and reports changes")
    func shelfEnumeration() async throws {
        let highlightCenter = HighlightCenter(client, account: devin.account)
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
    }

    @Test("An attribution view shows who shared an item")
    func attribution() async throws {
        let link = try #require(URL(string: "https://example.com/1"))
        try await share("https://example.com/1", from: "Ana", in: "family")
        try await share("https://example.com/1", from: "Bo", in: "friends")
        let highlightCenter = HighlightCenter(client, account: devin.account)
        let attributionView = try await highlightCenter.attribution(for: link, removeTitle: "Remove Article")
        #expect(attributionView.summary == "From Bo and Ana")
        #expect(attributionView.attributions.map(\.conversation.identifier) == ["friends", "family"])
        #expect(attributionView.attributions.map(\.sharer.avatar) == ["avatars/Bo", "avatars/Ana"])
        #expect(
            attributionView.menu.map(\.title) == ["Reply to The friends", "Reply to The family", "Remove Article"])
        await #expect(throws: ServiceError(.malformedRequest, "")) {
            try await highlightCenter.attribution(for: link, removeTitle: "Away with it")
        }
        // The display context feeds the ranking.
        _ = try await client.send(SignalHighlight(.shown, link, of: devin.account, context: .detail))
        _ = try await client.send(SignalHighlight(.viewed, link, of: devin.account))
        try await share("https://example.com/2")
        let shelf = try await highlightCenter.highlights()
        #expect(shelf.first?.url == link)
        #expect(shelf.map(\.isSuggested) == [true, false])
    }

    // MARK: Accept share invitations

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
        let first = try await client.accept([AcceptInvitation(shareMetadata, for: lance.account)])
        #expect(first.map(\.state) == [.accepted] && first.map(\.collaborationIdentifier) == [collaboration])
        #expect(first.first?.share == nil)
        let accepted = try await client.accept([
            AcceptInvitation(
                shareMetadata, for: lance.account, identity: try lance.identity(in: collaboration),
                displayName: "Lance")
        ])
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
