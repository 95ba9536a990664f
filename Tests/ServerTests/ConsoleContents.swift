import Core
import Foundation
import Identity
import RootgateClient
import TestSupport
import Testing

/// What the console has to show in tests: a collaboration with people, options and notices, and a shelf with its link
/// and others.
struct ConsoleContents {
    let collaboration: CollaborationIdentifier
    /// The owner's.
    let grant: AccessGrant
    let people: [SimulatedIdentity]
    let client: RootgateClient
    let ana: Account
    let link: URL

    /// `word`: stands in every title, name and text.
    init(_ client: RootgateClient, word name: String) async throws {
        let word = name.isEmpty ? "" : " " + name
        self.client = client
        ana = try #require(Account("ana"))
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "trip"))
        metadata.title = "Trip to the lakes\(word)"
        metadata.initiatorNameComponents = NameComponents(givenName: "Olga\(word)")
        metadata.initiatorHandle = "olga@example.com\(word)"
        metadata.defaultShareOptions = ShareOptions(optionsGroups: [
            OptionsPickerGroup(
                identifier: "permission", title: "Permission\(word)", footer: "The owner can always make changes.",
                options: [
                    CollaborationOption(
                        title: "Everyone can make changes", identifier: "edit", isSelected: true,
                        effects: [.readWrite]),
                    CollaborationOption(
                        title: "Everyone can view", subtitle: "Changes are refused\(word)", identifier: "view",
                        effects: [.readOnly]),
                ]),
            OptionsGroup(
                identifier: "more", title: "More",
                options: [
                    CollaborationOption(
                        title: "Others may invite", identifier: "invite", isSelected: true, effects: [.addParticipants])
                ]),
        ])
        let owner = try #require(Account("olga"))
        let prepared = try await client.send(PrepareCollaboration(owner: owner, metadata: metadata))
        collaboration = prepared.collaborationIdentifier
        link = prepared.url
        let identifier = collaboration
        people = try (0..<4).map { _ in try Person(deviceCount: 5).identity(in: identifier) }
        _ = try await client.send(
            ClaimOwnership(
                of: collaboration, by: owner, as: PersonIdentity(rootHash: people[0].rootHash),
                displayName: "Olga Example\(word)"))
        _ = try await client.send(
            AddParticipants(
                zip(people.dropFirst(), ["Ana Lund", "Bo Chen", "Cyril Osei"]).map { person, name in
                    NewParticipant(PersonIdentity(rootHash: person.rootHash), displayName: "\(name)\(word)")
                }, to: collaboration))
        let challenges = try await client.challenges(2).challenges
        let opened = try await client.open([
            AccessRequest(
                collaboration: collaboration, proof: try people[0].proof(ofDevice: 0, signing: challenges[0])),
            AccessRequest(
                collaboration: collaboration, proof: try people[1].proof(ofDevice: 0, signing: challenges[1])),
        ])
        grant = try #require(opened[0].grant)
        _ = try await client.send(LinkAccount(ana, to: PersonIdentity(rootHash: people[1].rootHash), in: collaboration))
        _ = try await client.send(
            PostNotices([.change(trigger: .edit)], on: collaboration, by: grant))
        _ = try await client.send(
            CustomizeDetails(
                of: collaboration,
                customItems: .set([CustomItem(identifier: "map", title: "Show the map\(word)", subtitle: "4 stops")])))
        try await share(word)
    }

    private func share(_ word: String) async throws {
        for (url, title, picture, sharer, conversation, app) in [
            (link, "Trip to the lakes", Self.picture, "Olga Example", "Hikers", "com.example.files"),
            (link, "Trip to the lakes", Self.picture, "Bo Chen", "Family", "com.example.files"),
            (
                try #require(URL(string: "https://example.com/articles/1")), "Ten huts above the clouds", nil,
                "Cyril Osei", "Hikers", "com.example.reader"
            ),
        ] as [(URL, String, [UInt8]?, String, String, String)] {
            _ = try await client.send(
                RecordShare(
                    url: url, title: "\(title)\(word)", subtitle: "A document\(word)",
                    thumbnail: picture.map { .image($0, .png) }, app: app, sharer: Sharer(name: "\(sharer)\(word)"),
                    conversation: Conversation(
                        identifier: conversation.lowercased(), name: "\(conversation)\(word)", isGroup: true),
                    recipients: [ShareRecipient(ana)]))
        }
        _ = try await client.send(SetConsent(of: ana, .everything, isAllowed: true))
        _ = try await client.send(PinHighlight(link, of: ana, for: .everyApp))
    }

    /// A picture of 2 by 2 pixels.
    static let picture: [UInt8] = Array(
        Data(
            base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGOw"
                + "rr2Rv+IFg16t/5yj2QAsOQZWRdBjSwAAAABJRU5ErkJggg==") ?? Data())

    /// Some requests, more and fewer in turn: proofs, refused ones among them, and changes now and then.
    func visit(_ round: Int) async throws {
        let count = 8 + Int(7 * sin(Double(round) / 25)) + round % 5
        let requests = try await client.challenges(count).challenges.enumerated().map { number, challenge in
            var proof = try people[number % 4].proof(ofDevice: (round + number) % 5, signing: challenge)
            if (round + number) % 9 == 0 { proof.data[0] ^= 1 }
            return AccessRequest(collaboration: collaboration, proof: proof)
        }
        _ = try await client.verify(requests)
        if round % 7 == 0 { try await client.addRoots([Digest.zero], to: collaboration) }
        if round % 7 == 3 { try await client.removeRoots([Digest.zero], from: collaboration) }
    }

    /// A proof of one of the people.
    func proof(of person: Int = 1, device: Int = 1) async throws -> SignedIdentityProof {
        try people[person].proof(ofDevice: device, signing: try await client.challenges(1).challenges[0])
    }
}
