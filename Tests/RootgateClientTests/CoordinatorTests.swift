import Core
import Foundation
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

/// The coordinator and its actions against a live service.
@Suite struct CoordinatorTests {
    private let service: TestService
    private let client: RootgateClient
    private let owner = Account("owner")!

    init() throws {
        service = try TestService()
        client = try service.client()
    }

    /// Handles each action with the closures of the test.
    private final class Handler: CollaborationActionHandler {
        let starting: @Sendable (StartCollaborationAction) -> Void
        let updating: @Sendable (UpdateCollaborationParticipantsAction) -> Void

        init(
            starting: @escaping @Sendable (StartCollaborationAction) -> Void = { _ in },
            updating: @escaping @Sendable (UpdateCollaborationParticipantsAction) -> Void = { _ in }
        ) {
            self.starting = starting
            self.updating = updating
        }

        func collaborationCoordinator(_ coordinator: CollaborationCoordinator, handle action: StartCollaborationAction)
        {
            starting(action)
        }

        func collaborationCoordinator(
            _ coordinator: CollaborationCoordinator, handle action: UpdateCollaborationParticipantsAction
        ) {
            updating(action)
        }
    }

    private var metadata: CollaborationMetadata {
        CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "started"))
    }

    private func leftovers(_ owner: Account) async throws -> Int {
        try await client.send(ListShares(of: owner, scope: .private)).shares.count
            + client.collaborations().items.count
    }

    @Test("A failed start leaves nothing behind")
    func aFailedStartLeavesNothingBehind() async throws {
        let coordinator = CollaborationCoordinator()
        let (preparations, preparation) = AsyncStream<Bool>.makeStream()
        let handler = Handler(starting: { [client] action in
            Task {
                preparation.yield(try await action.prepare(with: client, owner: owner).isNew)
                action.fail()
            }
        })
        coordinator.actionHandler = handler
        await #expect(throws: CollaborationActionFailure.failed) {
            try await coordinator.startCollaboration(with: metadata)
        }
        var iterator = preparations.makeAsyncIterator()
        #expect(await iterator.next() == true)
        #expect(try await leftovers(owner) == 0)
    }

    @Test("An action without an answer fails, and a late preparation is undone")
    func latePreparation() async throws {
        let somewhere = try #require(CollaborationIdentifier("somewhere"))
        let coordinator = CollaborationCoordinator()
        let (ends, end) = AsyncStream<(didCount: Bool, preparation: ServiceError.Code?)>.makeStream()
        let handler = Handler(starting: { [client] action in
            Task {
                // Begun in time, prepared too late.
                async let preparation = code(of: { () async throws(ServiceError) in
                    _ = try await action.prepare(with: client, owner: owner)
                })
                while !action.isComplete { try? await Task.sleep(for: .milliseconds(2)) }
                let didCount = action.fulfill(
                    using: URL(fileURLWithPath: "/"), collaborationIdentifier: somewhere)
                _ = await preparation
                let again = await code(of: { () async throws(ServiceError) in
                    _ = try await action.prepare(with: client, owner: owner)
                })
                end.yield((didCount, again))
            }
        })
        coordinator.actionHandler = handler
        for milliseconds in [0, 1, 2, 5, 50] {
            await #expect(throws: CollaborationActionFailure.deadlineExceeded) {
                try await coordinator.startCollaboration(with: metadata, deadline: .milliseconds(milliseconds))
            }
            var iterator = ends.makeAsyncIterator()
            let outcome = try #require(await iterator.next())
            #expect(!outcome.didCount, "a fulfilment after the deadline counted")
            #expect(outcome.preparation == .cancelled)
            #expect(try await leftovers(owner) == 0)
        }
    }

    @Test("A failed start keeps a collaboration that existed before")
    func aFailedStartOfWhatIsSharedAlreadyKeepsIt() async throws {
        _ = try await client.send(PrepareCollaboration(owner: owner, metadata: metadata))
        let coordinator = CollaborationCoordinator()
        let handler = Handler(starting: { [client] action in
            Task {
                _ = try await action.prepare(with: client, owner: owner)
                action.fail()
            }
        })
        coordinator.actionHandler = handler
        await #expect(throws: CollaborationActionFailure.failed) {
            try await coordinator.startCollaboration(with: metadata)
        }
        #expect(try await leftovers(owner) == 2)
    }

    @Test("Only the first end of an action counts")
    func onlyTheFirstEndOfAnActionCounts() async throws {
        let coordinator = CollaborationCoordinator()
        let counted = Lock<[Bool]>([])
        let handler = Handler(updating: { action in
            counted.withLock { $0 = [action.fulfill(), action.fail(), action.fulfill()] }
        })
        coordinator.actionHandler = handler
        try await coordinator.updateParticipants(of: metadata)
        #expect(counted.withLock { $0 } == [true, false, false])
    }

    @Test("An action without a handler fails")
    func withoutAHandlerAnActionFails() async throws {
        let coordinator = CollaborationCoordinator()
        await #expect(throws: CollaborationActionFailure.noHandler) {
            try await coordinator.startCollaboration(with: metadata)
        }
        coordinator.actionHandler = Handler()
        #expect(coordinator.actionHandler == nil, "the handler was kept alive")
    }

    // MARK: Sharing

    private let people = ["ana", "bo", "cy"].map { SimulatedPerson($0) }

    private func identities(
        in collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> [PersonIdentity] {
        var identities: [PersonIdentity] = []
        for person in people { identities.append(try person.identity(in: collaboration)) }
        return identities
    }

    /// Prepares and fulfills.
    private func prepare(_ action: StartCollaborationAction) {
        Task { [client, owner] in
            let answer = try await action.prepare(with: client, owner: owner)
            action.fulfill(using: answer.url, collaborationIdentifier: answer.collaborationIdentifier)
        }
    }

    /// Adds the people, then ends the action.
    private func add(_ action: UpdateCollaborationParticipantsAction, isFulfilled: Bool) {
        Task { [client] in
            let added = action.addedIdentities.map { NewParticipant($0) }
            let collaboration = try #require(action.collaborationMetadata.collaborationIdentifier)
            _ = try await client.send(AddParticipants(added, to: collaboration))
            if isFulfilled { action.fulfill() } else { action.fail() }
        }
    }

    @Test("Sharing starts the collaboration and then adds the people, with identities that derive from its identifier")
    func sharing() async throws {
        let coordinator = CollaborationCoordinator()
        let handler = Handler(starting: { self.prepare($0) }, updating: { self.add($0, isFulfilled: true) })
        coordinator.actionHandler = handler
        let started = try await coordinator.share(with: metadata, adding: { try identities(in: $0) })
        let listed = try await client.send(ListParticipants(of: started.collaborationIdentifier)).participants
        #expect(try Set(listed.map(\.identity)) == Set(identities(in: started.collaborationIdentifier)))
        for person in people {
            #expect(try await person.open(started.collaborationIdentifier, client).verdict == .granted)
        }
    }

    @Test("The update action's metadata is that of the start with the collaboration's identifier")
    func metadataOfTheUpdate() async throws {
        let coordinator = CollaborationCoordinator()
        let updates = Lock<[UpdateCollaborationParticipantsAction]>([])
        let handler = Handler(
            starting: { self.prepare($0) },
            updating: { action in
                updates.withLock { $0.append(action) }
                action.fulfill()
            })
        coordinator.actionHandler = handler
        let started = try await coordinator.share(with: metadata, adding: { try identities(in: $0) })
        let update = try #require(updates.withLock { $0.count == 1 ? $0.first : nil })
        var expected = metadata
        expected.collaborationIdentifier = started.collaborationIdentifier
        #expect(update.collaborationMetadata == expected)
        #expect(try update.addedIdentities == identities(in: started.collaborationIdentifier))
        #expect(update.removedIdentities.isEmpty)
    }

    @Test("A failed update undoes the start, also when the people were added before")
    func failedUpdate() async throws {
        let coordinator = CollaborationCoordinator()
        for updating: @Sendable (UpdateCollaborationParticipantsAction) -> Void in [
            { $0.fail() }, { self.add($0, isFulfilled: false) },
        ] {
            let handler = Handler(starting: { self.prepare($0) }, updating: updating)
            coordinator.actionHandler = handler
            await #expect(throws: CollaborationActionFailure.failed) {
                try await coordinator.share(with: metadata, adding: { try identities(in: $0) })
            }
            #expect(try await leftovers(owner) == 0)
        }
    }

    @Test("An update without an end undoes the start at its deadline")
    func updateWithoutAnEnd() async throws {
        let coordinator = CollaborationCoordinator()
        let handler = Handler(starting: { self.prepare($0) })
        coordinator.actionHandler = handler
        // The start has the same deadline, and takes a moment.
        await #expect(throws: CollaborationActionFailure.deadlineExceeded) {
            try await coordinator.share(with: metadata, adding: { try identities(in: $0) }, deadline: .seconds(2))
        }
        #expect(try await leftovers(owner) == 0)
    }

    @Test("Recipients that can't be told, and a handler that is gone, undo the start")
    func noRecipients() async throws {
        struct Unreachable: Error {}
        let coordinator = CollaborationCoordinator()
        let handler = Shared<Handler?>(Handler(starting: { self.prepare($0) }))
        coordinator.actionHandler = handler.value
        await #expect(throws: CollaborationActionFailure.failed) {
            try await coordinator.share(with: metadata, adding: { _ in throw Unreachable() })
        }
        #expect(try await leftovers(owner) == 0)
        await #expect(throws: CollaborationActionFailure.noHandler) {
            try await coordinator.share(
                with: metadata,
                adding: { _ in
                    handler.with { $0 = nil }
                    return []
                })
        }
        #expect(try await leftovers(owner) == 0)
    }

    /// Shares what existed before, lets the update fail, and returns who takes part afterwards.
    private func participantsAfterFailedUpdate(
        of collaboration: CollaborationIdentifier
    ) async throws -> [PersonIdentity] {
        let coordinator = CollaborationCoordinator()
        let handler = Handler(starting: { self.prepare($0) }, updating: { self.add($0, isFulfilled: false) })
        coordinator.actionHandler = handler
        await #expect(throws: CollaborationActionFailure.failed) {
            try await coordinator.share(with: metadata, adding: { try identities(in: $0) })
        }
        return try await client.send(ListParticipants(of: collaboration)).participants.map(\.identity)
    }

    @Test("A failed update of what existed before keeps it, and removes only the people who took no part")
    func failedUpdateOfWhatExisted() async throws {
        let collaboration = try await client.send(PrepareCollaboration(owner: owner, metadata: metadata))
            .collaborationIdentifier
        let ana = try people[0].identity(in: collaboration)
        _ = try await client.send(AddParticipants([NewParticipant(ana)], to: collaboration))
        #expect(try await participantsAfterFailedUpdate(of: collaboration) == [ana])
    }

    @Test("The owner's identity is claimed in what existed before when the sharing has succeeded, and not before")
    func ownerIsClaimedLast() async throws {
        let collaboration = try await client.send(PrepareCollaboration(owner: owner, metadata: metadata))
            .collaborationIdentifier
        let (ana, bo) = (try people[0].identity(in: collaboration), try people[1].identity(in: collaboration))
        let coordinator = CollaborationCoordinator()
        func preparing(as identity: PersonIdentity) -> @Sendable (StartCollaborationAction) -> Void {
            { [client, owner] action in
                Task {
                    let answer = try await action.prepare(with: client, owner: owner, ownerIdentity: identity)
                    action.fulfill(using: answer.url, collaborationIdentifier: answer.collaborationIdentifier)
                }
            }
        }
        func listed() async throws -> [PersonIdentity: ParticipantRole] {
            let participants = try await client.send(ListParticipants(of: collaboration)).participants
            return Dictionary(uniqueKeysWithValues: participants.map { ($0.identity, $0.role) })
        }
        // The recipients may contain the owner: he leaves with them.
        let failing = Handler(starting: preparing(as: ana), updating: { self.add($0, isFulfilled: false) })
        coordinator.actionHandler = failing
        await #expect(throws: CollaborationActionFailure.failed) {
            try await coordinator.share(with: metadata, adding: { _ in [ana, bo] })
        }
        #expect(try await listed() == [:], "a failed sharing has left the owner's identity")
        let other = Handler(starting: preparing(as: bo), updating: { self.add($0, isFulfilled: true) })
        coordinator.actionHandler = other
        _ = try await coordinator.share(with: metadata, adding: { _ in [ana] })
        #expect(try await listed() == [bo: .owner, ana: .member])
        // The owner has another identity: the sharing fails, and is undone.
        let refused = Handler(starting: preparing(as: ana), updating: { self.add($0, isFulfilled: true) })
        coordinator.actionHandler = refused
        let cy = try #require(Digest([UInt8](repeating: 7, count: 32)))
        await #expect(throws: CollaborationActionFailure.failed) {
            try await coordinator.share(with: metadata, adding: { _ in [PersonIdentity(rootHash: cy)] })
        }
        await #expect(throws: CollaborationActionFailure.failed) {
            try await coordinator.startCollaboration(with: metadata)
        }
        #expect(try await listed() == [bo: .owner, ana: .member])
        // A new collaboration has its owner at once.
        var fresh = metadata
        fresh.localIdentifier = LocalCollaborationIdentifier(rawValue: "fresh")
        let started = try await coordinator.startCollaboration(with: fresh).collaborationIdentifier
        let owners = try await client.send(ListParticipants(of: started)).participants
        #expect(owners.map(\.identity) == [ana] && owners.map(\.role) == [.owner])
    }

    /// Two options of which one lets people write.
    private func options(selected: String, summary: String? = nil) -> ShareOptions {
        ShareOptions(
            optionsGroups: [
                OptionsPickerGroup(
                    identifier: "access",
                    options: [
                        CollaborationOption(
                            title: "View", identifier: "view", isSelected: selected == "view", effects: [.readOnly]),
                        CollaborationOption(
                            title: "Edit", identifier: "edit", isSelected: selected == "edit", effects: [.readWrite]),
                    ])
            ], summary: summary)
    }

    @Test("A message that is cancelled gives a collaboration that existed before its options back")
    func optionsAreRestored() async throws {
        var shared = metadata
        shared.defaultShareOptions = options(selected: "view", summary: "Viewers")
        let collaboration = try await client.send(PrepareCollaboration(owner: owner, metadata: shared))
            .collaborationIdentifier
        shared.userSelectedShareOptions = options(selected: "edit")
        let seen = Shared<[Permission]>([])
        for (isStarted, isChangedSince) in [(false, false), (true, false), (true, true)] {
            let coordinator = CollaborationCoordinator()
            let handler = Handler(
                starting: { [client, owner] action in
                    Task {
                        let answer = try await action.prepare(with: client, owner: owner)
                        seen.with { $0.append(answer.permission) }
                        guard isStarted else { return action.fail() }
                        return action.fulfill(
                            using: answer.url, collaborationIdentifier: answer.collaborationIdentifier)
                    }
                },
                updating: { [client] action in
                    Task {
                        if isChangedSince {
                            _ = try await client.send(
                                UpdateShareOptions(collaboration, givenSummary: "Somebody else's choice"))
                        }
                        action.fail()
                    }
                })
            coordinator.actionHandler = handler
            await #expect(throws: CollaborationActionFailure.failed) {
                try await coordinator.share(with: shared, adding: { try identities(in: $0) })
            }
            let left = try await client.send(ReadDetails(of: collaboration)).shareOptions
            if isChangedSince {
                #expect(left.selectedIdentifiers == ["edit"] && left.givenSummary == "Somebody else's choice")
            } else {
                #expect(left == shared.defaultShareOptions)
            }
        }
        #expect(seen.value == [.readWrite, .readWrite, .readWrite], "the choice did not count for the action")
    }

    @Test("A new collaboration begins with the options that were chosen")
    func chosenOptionsOfANewStart() async throws {
        var shared = metadata
        shared.defaultShareOptions = options(selected: "view")
        shared.userSelectedShareOptions = options(selected: "edit")
        let coordinator = CollaborationCoordinator()
        let handler = Handler(starting: { self.prepare($0) })
        coordinator.actionHandler = handler
        let started = try await coordinator.startCollaboration(with: shared)
        let details = try await client.send(ReadDetails(of: started.collaborationIdentifier))
        #expect(details.shareOptions == shared.userSelectedShareOptions)
    }

    @Test("Who takes part is no newcomer, whatever is in the set")
    func newcomers() async throws {
        let collaboration = try await client.send(PrepareCollaboration(owner: owner, metadata: metadata))
            .collaborationIdentifier
        let (ana, bo) = (try people[0].identity(in: collaboration), try people[1].identity(in: collaboration))
        _ = try await client.send(AddParticipants([NewParticipant(ana)], to: collaboration))
        // Without the layer: a participant's root hash is taken out, and a stranger's comes in.
        _ = try await client.removeRoots([ana.rootHash], from: collaboration)
        _ = try await client.addRoots([bo.rootHash], to: collaboration)
        #expect(try await participantsAfterFailedUpdate(of: collaboration) == [ana])
    }

    @Test("A start that was prepared for one collaboration can't be fulfilled with another one")
    func otherCollaboration() async throws {
        let somewhere = try #require(CollaborationIdentifier("somewhere"))
        let coordinator = CollaborationCoordinator()
        let counted = Shared<Bool?>(nil)
        let handler = Handler(starting: { [client, owner] action in
            Task {
                let answer = try await action.prepare(with: client, owner: owner)
                let didCount = action.fulfill(using: answer.url, collaborationIdentifier: somewhere)
                counted.with { $0 = didCount }
            }
        })
        coordinator.actionHandler = handler
        await #expect(throws: CollaborationActionFailure.otherCollaboration) {
            try await coordinator.startCollaboration(with: metadata)
        }
        #expect(try await leftovers(owner) == 0)
        #expect(counted.value != true)
    }

    @Test("What was prepared for another owner is undone when the start is fulfilled")
    func twoPreparations() async throws {
        let other = try #require(Account("other"))
        let coordinator = CollaborationCoordinator()
        let handler = Handler(starting: { [client, owner] action in
            Task {
                _ = try await action.prepare(with: client, owner: other)
                let answer = try await action.prepare(with: client, owner: owner)
                action.fulfill(using: answer.url, collaborationIdentifier: answer.collaborationIdentifier)
            }
        })
        coordinator.actionHandler = handler
        let started = try await coordinator.startCollaboration(with: metadata)
        #expect(try await client.send(ListShares(of: other, scope: .private)).shares.isEmpty)
        let kept = try await client.send(ListShares(of: owner, scope: .private)).shares
        #expect(kept.map(\.collaborationIdentifier) == [started.collaborationIdentifier])
    }

    @Test("A failure says so when the service can't be reached to undo it")
    func notUndone() async throws {
        // The timeout bounds how long the undo is tried. On a busy machine a start may take longer: it is repeated.
        let short = try service.client(timeout: .seconds(5))
        let coordinator = CollaborationCoordinator()
        let handler = Handler(starting: { [service, owner] action in
            Task {
                while (try? await action.prepare(with: short, owner: owner)) == nil {}
                service.stop()
                action.fail()
            }
        })
        coordinator.actionHandler = handler
        await #expect(throws: CollaborationActionFailure.notUndone) {
            try await coordinator.startCollaboration(with: metadata)
        }
        try service.start()
        #expect(try await leftovers(owner) == 2)
    }
}
