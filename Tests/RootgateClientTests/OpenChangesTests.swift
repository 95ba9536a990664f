import Core
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Transport
import Wire

/// Stands between a client and a service, and answers some requests of the layer in the service's place.
private final class Relay: Sendable {
    /// What the client hears instead of the service's answer.
    enum Fault: Sendable {
        /// The service has carried the request out, and the answer is an error.
        case made(ServiceError.Code)
        /// The service has carried the request out, and the answer can't be read.
        case garbled
        /// The service has carried the request out, and the connection ends before the answer.
        case lost
        /// The service never gets the request, and the answer is an error.
        case kept(ServiceError.Code)
    }

    private let acceptor: Acceptor
    /// Requests by name, in their order.
    private let asked = Shared<[String]>([])

    /// `fault` says what goes wrong with a request; `nil`: nothing. `number`: 1 for the first request of that name.
    init(_ service: Endpoint, _ fault: @escaping @Sendable (_ name: String, _ number: Int) -> Fault?) throws {
        let asked = asked
        acceptor = try Acceptor { connection in
            let client = RawPeer(descriptor: connection)
            guard let peer = try? RawPeer(service) else { return true }
            while Relay.pass(from: client, to: peer, asked, fault) {}
            return true
        }
    }

    var endpoint: Endpoint { acceptor.endpoint }

    /// How often a request of that name came.
    func count(of name: String) -> Int { asked.value.filter { $0 == name }.count }

    /// Passes one request and its answer on. False when a connection has ended.
    private static func pass(
        from client: RawPeer, to service: RawPeer, _ asked: Shared<[String]>,
        _ fault: (String, Int) -> Fault?
    ) -> Bool {
        guard let request = frame(from: client) else { return false }
        let operation = UInt16(request[6]) | UInt16(request[7]) << 8
        let identifier = (8..<16).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64(request[$1]) }
        var found: Fault?
        if operation == Wire.Operation.collaborate.rawValue {
            let start = Limits.frameHeaderBytes + 17
            let name = String(decoding: request[start...].prefix(Int(request[start - 1])), as: UTF8.self)
            let number = asked.with { asked in
                asked.append(name)
                return asked.filter { $0 == name }.count
            }
            found = fault(name, number)
        }
        if case .kept(let code) = found {
            return client.send(error(code, operation, identifier))
        }
        guard service.send(request), let answer = frame(from: service) else { return false }
        switch found {
        case .made(let code): return client.send(error(code, operation, identifier))
        case .lost: return false
        case .garbled:
            var bytes: [UInt8] = []
            FrameWriter.append(.answer, operation, requestID: identifier, to: &bytes) { $0 += Array("{}".utf8) }
            return client.send(bytes)
        case .kept, nil: return client.send(answer)
        }
    }

    private static func error(_ code: ServiceError.Code, _ operation: UInt16, _ identifier: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        FrameWriter.appendError(
            ServiceError(code, "the disk"), operation: operation, requestID: identifier, to: &bytes)
        return bytes
    }

    /// The next frame; `nil` when the connection has ended.
    private static func frame(from peer: RawPeer) -> [UInt8]? {
        let header = peer.receive(Limits.frameHeaderBytes)
        guard header.count == Limits.frameHeaderBytes else { return nil }
        let length = header[..<4].reversed().reduce(0) { $0 << 8 | Int($1) }
        let body = peer.receive(length)
        return body.count == length ? header + body : nil
    }
}

/// An action whose requests get answers that leave open whether a change was made: what may have been made is undone,
/// or the failure says that it may be left.
@Suite("Actions and changes that may have been made")
struct OpenChangesTests {
    private let service: TestService
    private let client: RootgateClient
    private let owner = Account("owner")!

    init() throws {
        service = try TestService()
        client = try service.client()
    }

    /// Prepares and fulfills, or fails when preparing fails.
    private final class Handler: CollaborationActionHandler {
        private let client: RootgateClient
        private let owner: Account
        private let ownerIdentity: PersonIdentity?

        init(_ client: RootgateClient, _ owner: Account, _ ownerIdentity: PersonIdentity?) {
            self.client = client
            self.owner = owner
            self.ownerIdentity = ownerIdentity
        }

        func collaborationCoordinator(_ coordinator: CollaborationCoordinator, handle action: StartCollaborationAction)
        {
            Task { [client, owner, ownerIdentity] in
                do throws(ServiceError) {
                    let answer = try await action.prepare(with: client, owner: owner, ownerIdentity: ownerIdentity)
                    action.fulfill(using: answer.url, collaborationIdentifier: answer.collaborationIdentifier)
                } catch {
                    action.fail()
                }
            }
        }

        func collaborationCoordinator(
            _ coordinator: CollaborationCoordinator, handle action: UpdateCollaborationParticipantsAction
        ) {
            action.fulfill()
        }
    }

    private var metadata: CollaborationMetadata {
        CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "started"))
    }

    /// How sharing through the relay fails; `nil`: it does not.
    private func failure(
        of metadata: CollaborationMetadata, as ownerIdentity: PersonIdentity? = nil, through relay: Relay
    ) async throws -> CollaborationActionFailure? {
        let relayed = try RootgateClient(relay.endpoint, configuration: .init(requestTimeout: patience))
        defer { relayed.close() }
        let coordinator = CollaborationCoordinator()
        let handler = Handler(relayed, owner, ownerIdentity)
        coordinator.actionHandler = handler
        do throws(CollaborationActionFailure) {
            _ = try await coordinator.share(with: metadata, adding: { _ in [] }, deadline: patience)
            return nil
        } catch {
            return error
        }
    }

    private func leftovers() async throws -> Int {
        try await client.send(ListShares(of: owner, scope: .private)).shares.count
            + client.collaborations().items.count
    }

    /// An error that the service answers although it has made the change; `nil`: something that can't be read.
    typealias Ending = ServiceError.Code?

    private static let codes: [Ending] = [
        .storageFull, .storageFailed, .storageDamaged, .internalFault, nil,
    ]

    private static func made(_ code: Ending) -> Relay.Fault {
        code.map { Relay.Fault.made($0) } ?? .garbled
    }

    // MARK: Options

    private func options(selected: String) -> ShareOptions {
        ShareOptions(optionsGroups: [
            OptionsPickerGroup(
                identifier: "access",
                options: [
                    CollaborationOption(
                        title: "View", identifier: "view", isSelected: selected == "view", effects: [.readOnly]),
                    CollaborationOption(
                        title: "Edit", identifier: "edit", isSelected: selected == "edit", effects: [.readWrite]),
                ])
        ])
    }

    /// Shares content that was shared before with "view", and now with "edit". Returns how that fails, and which option
    /// is selected afterwards.
    private func choosing(through relay: Relay) async throws -> (CollaborationActionFailure?, selected: [String]) {
        var shared = metadata
        shared.defaultShareOptions = options(selected: "view")
        let collaboration = try await client.send(PrepareCollaboration(owner: owner, metadata: shared))
            .collaborationIdentifier
        shared.userSelectedShareOptions = options(selected: "edit")
        let failure = try await failure(of: shared, through: relay)
        let left = try await client.send(ReadDetails(of: collaboration)).shareOptions
        return (failure, Array(left.selectedIdentifiers))
    }

    @Test("A choice that may have been made is taken back", arguments: OpenChangesTests.codes)
    func madeChoice(code: Ending) async throws {
        let relay = try Relay(service.endpoint) { name, number in
            name == "prepare" && number == 2 ? OpenChangesTests.made(code) : nil
        }
        let (failure, selected) = try await choosing(through: relay)
        #expect(failure == .failed && selected == ["view"])
        #expect(relay.count(of: "prepare") >= 2, "nothing was chosen")
    }

    @Test("A choice whose repetition gets no better answer is taken back", arguments: OpenChangesTests.codes)
    func madeChoiceRepeated(code: Ending) async throws {
        let relay = try Relay(service.endpoint) { name, number in
            name == "prepare" && number >= 2 ? OpenChangesTests.made(code) : nil
        }
        let (failure, selected) = try await choosing(through: relay)
        #expect(failure == .failed && selected == ["view"])
    }

    @Test("A choice that the service gets only by its repetition is taken back")
    func lateChoice() async throws {
        let relay = try Relay(service.endpoint) { name, number in
            name == "prepare" && number == 2 ? .kept(.storageFailed) : nil
        }
        let (failure, selected) = try await choosing(through: relay)
        #expect(failure == .failed && selected == ["view"])
        #expect(relay.count(of: "prepare") == 3, "the choice was not repeated once")
    }

    @Test("A choice whose connection was lost, and whose repetition finds the service busy, is taken back")
    func lostChoice() async throws {
        let relay = try Relay(service.endpoint) { name, number in
            guard name == "prepare" else { return nil }
            return number == 2 ? .lost : number == 3 ? .kept(.busy) : nil
        }
        let (failure, selected) = try await choosing(through: relay)
        #expect(failure == .failed && selected == ["view"])
    }

    @Test("A choice that may still be made is a failure that was not undone")
    func openChoice() async throws {
        let relay = try Relay(service.endpoint) { name, number in
            name == "prepare" && number >= 2 ? .kept(.storageFailed) : nil
        }
        let (failure, selected) = try await choosing(through: relay)
        #expect(failure == .notUndone && selected == ["view"])
    }

    @Test("A choice that stays because nothing can be changed is a failure that was not undone")
    func stayingChoice() async throws {
        let relay = try Relay(service.endpoint) { name, number in
            if name == "updateShareOptions" { return .kept(.storageFailed) }
            return name == "prepare" && number == 2 ? .made(.storageFailed) : nil
        }
        let (failure, selected) = try await choosing(through: relay)
        #expect(failure == .notUndone && selected == ["edit"])
    }

    @Test("A choice that a full storage refuses twice was not made, and there is nothing to undo")
    func refusedChoice() async throws {
        let relay = try Relay(service.endpoint) { name, number in
            name == "prepare" && number >= 2 ? .kept(.storageFull) : nil
        }
        let (failure, selected) = try await choosing(through: relay)
        #expect(failure == .failed && selected == ["view"])
    }

    // MARK: Starts

    @Test("A start that may have been made is removed", arguments: OpenChangesTests.codes)
    func madeStart(code: Ending) async throws {
        let relay = try Relay(service.endpoint) { name, number in
            name == "prepare" && number == 1 ? OpenChangesTests.made(code) : nil
        }
        #expect(try await failure(of: metadata, through: relay) == .failed)
        #expect(try await leftovers() == 0)
        #expect(relay.count(of: "prepare") == 2, "the start was not repeated once")
    }

    @Test("A start of which nothing is known is a failure that was not undone")
    func openStart() async throws {
        let relay = try Relay(service.endpoint) { name, _ in name == "prepare" ? .made(.storageFailed) : nil }
        #expect(try await failure(of: metadata, through: relay) == .notUndone)
        #expect(try await leftovers() == 2)
    }

    @Test("A start that a full storage refuses twice was not made, and there is nothing to undo")
    func refusedStart() async throws {
        let relay = try Relay(service.endpoint) { name, _ in name == "prepare" ? .kept(.storageFull) : nil }
        #expect(try await failure(of: metadata, through: relay) == .failed)
        #expect(try await leftovers() == 0)
    }

    @Test("A start that may have been made and existed before stays")
    func madeStartOfWhatExisted() async throws {
        _ = try await client.send(PrepareCollaboration(owner: owner, metadata: metadata))
        let relay = try Relay(service.endpoint) { name, number in
            name == "prepare" && number == 1 ? .made(.storageFailed) : nil
        }
        #expect(try await failure(of: metadata, through: relay) == .failed)
        #expect(try await leftovers() == 2)
    }

    // MARK: Claims

    private var ana: PersonIdentity {
        get throws { PersonIdentity(rootHash: try #require(Digest([UInt8](repeating: 7, count: 32)))) }
    }

    /// Shares content that was shared before, as ana. Returns how that fails, and who takes part afterwards.
    private func claiming(
        through relay: Relay
    ) async throws -> (CollaborationActionFailure?, people: [PersonIdentity]) {
        let collaboration = try await client.send(PrepareCollaboration(owner: owner, metadata: metadata))
            .collaborationIdentifier
        let failure = try await failure(of: metadata, as: try ana, through: relay)
        let people = try await client.send(ListParticipants(of: collaboration)).participants
        return (failure, people.map(\.identity))
    }

    @Test("A claim that was made behind an error succeeds by its repetition", arguments: OpenChangesTests.codes)
    func madeClaim(code: Ending) async throws {
        let relay = try Relay(service.endpoint) { name, number in
            name == "claimOwnership" && number == 1 ? OpenChangesTests.made(code) : nil
        }
        let (failure, people) = try await claiming(through: relay)
        #expect(try failure == nil && people == [ana])
    }

    @Test("A claim of which nothing is known is a failure that was not undone")
    func openClaim() async throws {
        let relay = try Relay(service.endpoint) { name, _ in name == "claimOwnership" ? .made(.storageFailed) : nil }
        let (failure, people) = try await claiming(through: relay)
        #expect(try failure == .notUndone && people == [ana])
    }

    @Test("A claim that a full storage refuses twice was not made")
    func refusedClaim() async throws {
        let relay = try Relay(service.endpoint) { name, _ in name == "claimOwnership" ? .kept(.storageFull) : nil }
        let (failure, people) = try await claiming(through: relay)
        #expect(failure == .failed && people.isEmpty)
    }

    @Test("A new collaboration whose owner's claim is open is removed, or the failure says that it was not undone")
    func claimOfANewStart() async throws {
        let removing = try Relay(service.endpoint) { name, _ in
            name == "claimOwnership" ? .made(.storageFailed) : nil
        }
        #expect(try await failure(of: metadata, as: try ana, through: removing) == .failed)
        #expect(try await leftovers() == 0)
        let keeping = try Relay(service.endpoint) { name, _ in
            ["claimOwnership", "abandon"].contains(name) ? .kept(.storageFailed) : nil
        }
        #expect(try await failure(of: metadata, as: try ana, through: keeping) == .notUndone)
        #expect(try await leftovers() == 2)
    }
}
