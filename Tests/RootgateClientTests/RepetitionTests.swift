import Core
import Foundation
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

/// Requests of the layer that come again under their mutation identifier, and other requests that come under it.
@Suite struct RepetitionTests {
    private let service: TestService
    private let client: RootgateClient
    private let owner = Account("owner")!
    private let conflict = ServiceError(.mutationConflict, "")

    init() throws {
        service = try TestService()
        client = try service.client()
    }

    private func start(_ name: String = "deck") async throws -> CollaborationIdentifier {
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: name))
        metadata.title = name
        return try await client.send(PrepareCollaboration(owner: owner, metadata: metadata)).collaborationIdentifier
    }

    private func person(_ number: UInt8) -> PersonIdentity {
        PersonIdentity(rootHash: Digest(Array(repeating: number, count: 32))!)
    }

    private func adding(_ number: UInt8, to collaboration: CollaborationIdentifier) -> AddParticipants {
        AddParticipants([NewParticipant(person(number))], to: collaboration)
    }

    private func people(of collaboration: CollaborationIdentifier) async throws -> [PersonIdentity] {
        try await client.send(ListParticipants(of: collaboration)).participants.map(\.identity)
    }

    @Test("A repetition gives nobody access who has lost it, also when the first request has changed nothing")
    func repetitionOfNothing() async throws {
        let collaboration = try await start()
        let bo = Account("bo")!
        _ = try await client.send(adding(1, to: collaboration))
        let token = InvitationToken.random()
        _ = try await client.send(CreateInvitation(to: collaboration, token: token))
        _ = try await client.send(AcceptInvitation(token, for: bo))
        _ = try await client.send(SetConsent(of: bo, .everything, isAllowed: true))
        let options = ShareOptions(optionsGroups: [
            OptionsGroup(
                identifier: "more",
                options: [CollaborationOption(title: "Write", identifier: "write", effects: [.readWrite])])
        ])
        _ = try await client.send(UpdateShareOptions(collaboration, selectedOptions: ["write"], replacing: options))
        let writer = ParticipantChange(person(1), permission: .set(.readWrite))
        _ = try await client.send(UpdateParticipant(writer, in: collaboration))
        let adding = adding(1, to: collaboration)
        let updating = UpdateParticipants(of: collaboration, adding: [NewParticipant(person(1))])
        let changing = UpdateParticipant(writer, in: collaboration)
        let selecting = UpdateShareOptions(collaboration, selectedOptions: ["write"])
        let consenting = SetConsent(of: bo, .everything, isAllowed: true)
        let accepting = AcceptInvitation(token, for: bo)
        let identifiers = (0..<6).map { _ in MutationIdentifier.random() }
        func send() async throws -> [Int] {
            [
                try await client.send(adding, identifier: identifiers[0]).changed,
                try await client.send(updating, identifier: identifiers[1]).changed,
                try await client.send(changing, identifier: identifiers[2]).changed,
                try await client.send(selecting, identifier: identifiers[3]).changed,
                try await client.send(consenting, identifier: identifiers[4]).changed,
            ]
        }
        #expect(try await send() == [0, 0, 0, 0, 0])
        #expect(try await client.send(accepting, identifier: identifiers[5]).state == .accepted)
        // All of it is taken back, and all requests come again.
        let reader = ParticipantChange(person(1), permission: .set(.readOnly))
        _ = try await client.send(UpdateParticipant(reader, in: collaboration))
        _ = try await client.send(UpdateShareOptions(collaboration, selectedOptions: []))
        _ = try await client.send(SetConsent(of: bo, .everything, isAllowed: false))
        _ = try await client.send(WithdrawAcceptance(token, for: bo))
        #expect(try await send() == [0, 0, 0, 0, 0])
        await #expect(throws: conflict) { try await client.send(accepting, identifier: identifiers[5]) }
        let listed = try await client.send(ListParticipants(of: collaboration)).participants
        #expect(listed.map(\.permission) == [.readOnly])
        #expect(try await client.send(ReadDetails(of: collaboration)).shareOptions.selectedIdentifiers.isEmpty)
        #expect(try await client.send(ReadConsent(of: bo)).everything == false)
        #expect(try await client.send(ReadInvitation(token)).state == .pending)
        _ = try await client.send(RemoveParticipants([person(1)], from: collaboration))
        #expect(try await send() == [0, 0, 0, 0, 0])
        #expect(try await people(of: collaboration).isEmpty)
    }

    @Test("Another request under a used identifier is a conflict and changes nothing")
    func otherRequest() async throws {
        let collaboration = try await start()
        let identifier = MutationIdentifier.random()
        _ = try await client.send(adding(1, to: collaboration), identifier: identifier)
        await #expect(throws: conflict) {
            try await client.send(RemoveParticipants([person(1)], from: collaboration), identifier: identifier)
        }
        await #expect(throws: conflict) {
            try await client.send(StopSharing(collaboration), identifier: identifier)
        }
        #expect(try await people(of: collaboration) == [person(1)])
    }

    @Test("Another field under a used identifier is a conflict and changes nothing")
    func otherFields() async throws {
        let collaboration = try await start()
        let identifier = MutationIdentifier.random()
        let first = try await client.send(adding(1, to: collaboration), identifier: identifier)
        for other in [adding(2, to: collaboration), AddParticipants([], to: collaboration)] {
            await #expect(throws: conflict) { try await client.send(other, identifier: identifier) }
        }
        let again = try await client.send(adding(1, to: collaboration), identifier: identifier)
        #expect(again == ChangeReceipt(sequence: first.sequence, changed: 0))
        #expect(try await people(of: collaboration) == [person(1)])
    }

    @Test("The text of a conflict names the identifier that the client chose")
    func textOfAConflict() async throws {
        let collaboration = try await start()
        let identifier = MutationIdentifier.random()
        _ = try await client.send(adding(1, to: collaboration), identifier: identifier)
        do throws(ServiceError) {
            _ = try await client.send(adding(2, to: collaboration), identifier: identifier)
            Issue.record("there is no conflict")
        } catch {
            #expect(error.reason.contains(identifier.description))
        }
    }

    @Test("One identifier for several collaborations and accounts changes each of them")
    func otherSubject() async throws {
        let constant = MutationIdentifier(7)
        let (first, second) = (try await start("one"), try await start("two"))
        for collaboration in [first, second] {
            #expect(try await client.send(adding(1, to: collaboration), identifier: constant).changed == 1)
            #expect(try await people(of: collaboration) == [person(1)])
        }
        for name in ["ana", "ben"] {
            let account = try #require(Account(name))
            let refusal = SetConsent(of: account, .everything, isAllowed: false)
            #expect(try await client.send(refusal, identifier: constant).changed == 1)
            #expect(try await client.send(ReadConsent(of: account)).everything == false)
        }
        // An account's name may be a collaboration's.
        let account = try #require(Account(first.description))
        let refusal = SetConsent(of: account, .everything, isAllowed: false)
        #expect(try await client.send(refusal, identifier: constant).changed == 1)
    }

    @Test("A mutation of the sets and a request of the layer may have the same identifier")
    func mutationOfTheSets() async throws {
        let collaboration = try await start()
        let identifier = MutationIdentifier.random()
        let bare = try #require(CollaborationIdentifier("bare"))
        try await client.apply(Mutation(identifier: identifier, .createCollaboration(bare, .challenge)))
        #expect(try await client.send(adding(1, to: collaboration), identifier: identifier).changed == 1)
        try await client.apply(Mutation(identifier: .random(), .dropCollaboration(bare)))
    }

    @Test("A restart forgets neither the repetitions nor the conflicts")
    func restart() async throws {
        let collaboration = try await start()
        let identifier = MutationIdentifier.random()
        let first = try await client.send(adding(1, to: collaboration), identifier: identifier)
        try service.restart()
        let again = try await client.send(adding(1, to: collaboration), identifier: identifier)
        #expect(again == ChangeReceipt(sequence: first.sequence, changed: 0))
        await #expect(throws: conflict) {
            try await client.send(adding(2, to: collaboration), identifier: identifier)
        }
    }

    @Test("Of two contents that come at the same time on many connections one is applied, and the other is a conflict")
    func concurrentContents() async throws {
        let collaboration = try await start()
        let clients = try (0..<8).map { _ in try service.client() }
        for round in UInt8(0)..<20 {
            let identifier = MutationIdentifier.random()
            let outcomes = await withTaskGroup(of: (UInt8, Result<ChangeReceipt, ServiceError>).self) { group in
                for (index, client) in clients.enumerated() {
                    let number = 2 * round + UInt8(index % 2)
                    let request = adding(number, to: collaboration)
                    group.addTask {
                        do throws(ServiceError) {
                            return (number, .success(try await client.send(request, identifier: identifier)))
                        } catch {
                            return (number, .failure(error))
                        }
                    }
                }
                return await group.reduce(into: [UInt8: [Result<ChangeReceipt, ServiceError>]]()) {
                    $0[$1.0, default: []].append($1.1)
                }
            }
            let receipts = outcomes.mapValues { $0.compactMap { try? $0.get() } }
            let winners = receipts.filter { !$0.value.isEmpty }
            #expect(winners.count == 1)
            let winner = try #require(winners.first)
            #expect(winner.value.count == 4)
            #expect(Set(winner.value.map(\.sequence)).count == 1)
            #expect(winner.value.map(\.changed).sorted() == [0, 0, 0, 1])
            let refused = outcomes.first { $0.key != winner.key }?.value ?? []
            #expect(refused.count == 4 && refused.allSatisfy { $0 == .failure(conflict) })
            #expect(try await people(of: collaboration).count == Int(round) + 1)
        }
    }

    @Test("A request that changed nothing is remembered: it stays without effect, and its identifier is used")
    func nothingIsRemembered() async throws {
        let collaboration = try await start()
        let identifier = MutationIdentifier.random()
        let removal = RemoveParticipants([person(1)], from: collaboration)
        let first = try await client.send(removal, identifier: identifier)
        #expect(first.sequence != nil && first.changed == 0)
        #expect(await code(adding(1, to: collaboration), identifier) == .mutationConflict)
        _ = try await client.send(adding(1, to: collaboration))
        #expect(try await client.send(removal, identifier: identifier) == first)
        #expect(try await people(of: collaboration) == [person(1)])
        // Starting again without another choice.
        let again = PrepareCollaboration(
            owner: owner, metadata: CollaborationMetadata(localIdentifier: .init(rawValue: "deck")))
        let known = try await client.send(again, identifier: identifier)
        #expect(!known.isNew && known.sequence != nil)
        #expect(try await client.send(again, identifier: identifier) == known)
        _ = try await client.send(StopSharing(collaboration))
        #expect(await code(again, identifier) == .mutationConflict, "the repetition has started a collaboration")
        #expect(try await client.send(ListShares(of: owner, scope: .private)).shares.isEmpty)
    }

    /// The code of the error; `nil` when there is none.
    private func code(_ request: some RuledRequest, _ identifier: MutationIdentifier) async -> ServiceError.Code? {
        do throws(ServiceError) {
            _ = try await client.send(request, identifier: identifier)
            return nil
        } catch {
            return error.code
        }
    }

    @Test("Accepting and inviting again tell how things stand, and nothing else comes under their identifiers")
    func repeatedInvitations() async throws {
        let collaboration = try await start()
        let (bo, token) = (try #require(Account("bo")), InvitationToken.random())
        let (made, accepted) = (MutationIdentifier.random(), MutationIdentifier.random())
        let create = CreateInvitation(to: collaboration, token: token)
        let accept = AcceptInvitation(token, for: bo, identity: person(1))
        _ = try await client.send(create)
        #expect(try await client.send(create, identifier: made).state == .pending)
        let other = CreateInvitation(to: collaboration, token: .random(), role: .administrator)
        #expect(await code(other, made) == .mutationConflict)
        _ = try await client.send(accept)
        #expect(try await client.send(accept, identifier: accepted).state == .in)
        #expect(try await client.send(create, identifier: made).state == .completed)
        let second = try await start("second")
        let stranger = CreateInvitation(to: second, token: .random())
        _ = try await client.send(stranger)
        let reused = AcceptInvitation(stranger.token, for: bo, identity: person(2))
        #expect(await code(reused, accepted) == .mutationConflict)
        _ = try await client.send(RemoveParticipants([person(1)], from: collaboration))
        #expect(try await client.send(accept, identifier: accepted).refusal == .conflict)
        // An acceptance without an identity, which is there already when it comes under the identifier.
        let (open, waiting) = (CreateInvitation(to: second, token: .random()), MutationIdentifier.random())
        _ = try await client.send(open)
        let early = AcceptInvitation(open.token, for: bo)
        _ = try await client.send(early)
        for _ in 1...2 { #expect(try await client.send(early, identifier: waiting).state == .accepted) }
        _ = try await client.send(WithdrawAcceptance(open.token, for: bo))
        #expect(await code(early, waiting) == .mutationConflict, "the repetition has accepted once more")
    }

    @Test("In a full storage a request that changes nothing and gives nothing is answered, and not remembered")
    func fullStorage() async throws {
        let directory = ScratchDirectory()
        let metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        let prepare = PrepareCollaboration(owner: owner, metadata: metadata)
        let collaboration = try await fill(directory, prepare)
        // The same data with a limit that is smaller than they are.
        let service = try TestService(directory: directory) {
            $0.storageBytesMax = 1 << 20
            $0.storageReserveBytes = 1 << 20
        }
        let client = try service.client()
        let gone = try await client.send(RemoveParticipants([person(9)], from: collaboration))
        #expect(gone.sequence == nil && gone.changed == 0)
        let known = try await client.send(prepare)
        #expect(known.collaborationIdentifier == collaboration && known.sequence == nil)
        // What could give access back is not answered without being remembered.
        do throws(ServiceError) {
            _ = try await client.send(adding(1, to: collaboration))
            Issue.record("an addition was not remembered")
        } catch {
            #expect(error.code == .storageFull)
        }
        #expect(try await client.send(RemoveParticipants([person(1)], from: collaboration)).changed == 1)
    }

    /// Makes a collaboration with one participant, and some MB of other data.
    private func fill(
        _ directory: ScratchDirectory, _ prepare: PrepareCollaboration
    ) async throws -> CollaborationIdentifier {
        let service = try TestService(directory: directory)
        let client = try service.client()
        let collaboration = try await client.send(prepare).collaborationIdentifier
        _ = try await client.send(adding(1, to: collaboration))
        let bulk = try #require(CollaborationIdentifier("bulk"))
        _ = try await client.createCollaboration(bulk)
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<3 {
            let roots = (0..<Limits.rootsPerRequestMax).map { _ in generator.digest() }
            try await client.addRoots(roots, to: bulk)
        }
        return collaboration
    }
}
