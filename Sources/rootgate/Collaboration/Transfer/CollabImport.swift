import Core
import Foundation
import Hashing
import RootgateClient

/// Makes a collaboration as a file says, by the requests that every backend may send.
///
/// Each request has an identifier that follows from the file. So the same import again repeats what was done, which
/// changes nothing, and goes on behind it. Nobody gets more than the file says at any moment: the collaboration begins
/// without anybody, and people are added with their roles and permissions.
struct CollabImport {
    /// What was made, and what was not.
    struct Summary {
        var url: URL?
        var participants = 0
        var roots = 0
        var shares = 0
        /// Shares of other links, which were left out.
        var foreignShares = 0
        /// Whether an earlier run has begun it.
        var isRepeat = false
        /// People whose root hashes were not in the set: they are not let in.
        var leftOut: [PersonIdentity] = []
        /// People who were linked to an account. A link needs a proof of the person first.
        var unlinked: [(person: PersonIdentity, account: Account)] = []
    }

    private let client: RootgateClient
    private let file: TransferFile
    private let patience: Duration

    /// Participants of one request. Their names, each of whose bytes may be escaped, fit into a request.
    private static let participantsPerRequest = 128
    /// How often the same file may be imported anew after its collaboration was ended, while the service remembers it.
    private static let attemptsMax = 64

    init(_ file: TransferFile, by client: RootgateClient, patience: Duration) {
        self.client = client
        self.file = file
        self.patience = patience
    }

    /// Makes a collaboration of root hashes only. Throws `UsageError` when there is one of that name.
    func makeSet(_ set: TransferredSet) async throws -> Summary {
        let policy = set.nonceWindowSeconds.map { ProofPolicy.deviceNonce(windowSeconds: $0) } ?? .challenge
        let created = try await apply(Mutation(.createCollaboration(set.collaboration, policy)))
        guard created.changed > 0 || created.isRepeat else { throw CollabImport.exists(set.collaboration) }
        var summary = Summary()
        do {
            for roots in file.roots.parts(of: Limits.rootsPerRequestMax) {
                _ = try await apply(Mutation(.addRoots(set.collaboration, roots)))
                summary.roots += roots.count
            }
        } catch {
            complain(
                "the collaboration was made with \(summary.roots) of \(file.roots.count) root hashes: rootgate collab "
                    + "drop removes it, and rootgate roots import adds the rest")
            throw error
        }
        return summary
    }

    /// Makes a collaboration of the layer. Throws when there is one of that identifier, unless an earlier run of the
    /// same import has made it.
    func make(_ settings: TransferredCollaboration) async throws -> Summary {
        let start = settings.start
        let details = CustomizeDetails(
            of: settings.collaboration, customItems: settings.customItems.isEmpty ? .keep : .set(settings.customItems),
            manageButtonTitle: settings.manageButtonTitle.map { .set($0) } ?? .keep)
        try check(start, details)
        try await checkRoles(settings)
        var steps = ImportSteps(file.end.sha256)
        let begun = try await begin(start, &steps)
        var summary = Summary(url: begun.answer.url, isRepeat: steps.isRepeat)
        do {
            if details != CustomizeDetails(of: settings.collaboration) { try await send(details, steps.next()) }
            try await addPeople(settings, begun, &steps, &summary)
            for share in file.shares { try await add(share, settings, begun.answer.url, &steps, &summary) }
        } catch {
            complain(
                "the import is not whole: \(summary.participants) of \(file.participants.count) participants were "
                    + "added. The same command again goes on, and rootgate collab stop ends the collaboration")
            throw error
        }
        return summary
    }

    /// Throws what the service would refuse of the file, before it is asked.
    private func check(_ start: PrepareCollaborationAs, _ details: CustomizeDetails) throws {
        do throws(ServiceError) {
            try start.checkFields()
            try details.checkFields()
        } catch {
            throw UsageError(ofFile: "the file's collaboration is refused: \(error.reason)")
        }
    }

    /// Throws `roleMissing` unless the requests that follow may be sent, as far as that can be seen without a change.
    private func checkRoles(_ settings: TransferredCollaboration) async throws {
        do throws(ServiceError) {
            _ = try await client.send(FindHighlight(settings.collaboration))
        } catch {
            guard error.code == .unknownCollaboration else { throw error }
        }
        guard let share = file.shares.first else { return }
        _ = try await client.send(ReadConsent(of: share.account))
    }

    /// The start of this import's collaboration.
    private struct Begun {
        let request: PrepareCollaborationAs
        let identifier: MutationIdentifier
        let answer: PrepareCollaborationAs.Answer
    }

    /// Starts the collaboration. A start that the service remembers, and whose collaboration has ended since, gets
    /// other identifiers.
    private func begin(
        _ start: PrepareCollaborationAs, _ steps: inout ImportSteps
    ) async throws -> Begun {
        for _ in 0..<CollabImport.attemptsMax {
            do throws(ServiceError) {
                let before = try? await client.send(FindHighlight(start.collaboration))
                let identifier = steps.next()
                let answer = try await client.whileBusy(patience) { client throws(ServiceError) in
                    try await client.send(start, identifier: identifier)
                }
                steps.isRepeat = before != nil
                return Begun(request: start, identifier: identifier, answer: answer)
            } catch {
                switch error.code {
                case .mutationConflict: steps.beginAnew()
                case .collaborationExists: throw CollabImport.exists(start.collaboration)
                default: throw error
                }
            }
        }
        throw UsageError(
            "the service remembers \(CollabImport.attemptsMax) imports of this file whose collaborations have ended: "
                + "export it anew")
    }

    /// Sends the start again. Throws unless the collaboration is the one that this import has started: it may have been
    /// ended, and another one started in its place, while a request waited.
    private func confirm(_ begun: Begun) async throws {
        var isSame = false
        do throws(ServiceError) {
            let answer = try await client.whileBusy(patience) { client throws(ServiceError) in
                try await client.send(begun.request, identifier: begun.identifier)
            }
            isSame = answer.sequence == begun.answer.sequence
        } catch {
            guard error.code == .mutationConflict else { throw error }
        }
        guard isSame else { throw UsageError("the collaboration was ended during the import") }
    }

    private static func exists(_ collaboration: CollaborationIdentifier) -> UsageError {
        UsageError(
            ofFile:
                "there is a collaboration \(collaboration.description.escapingControls), and an import changes none: "
                + "end it first, after an export")
    }

    // MARK: People

    private func addPeople(
        _ settings: TransferredCollaboration, _ begun: Begun, _ steps: inout ImportSteps, _ summary: inout Summary
    ) async throws {
        let people = file.participants.filter(\.isInSet)
        summary.leftOut = file.participants.filter { !$0.isInSet }.map(\.identity)
        if let owner = people.first(where: { $0.role == .owner }) {
            try await send(
                ClaimOwnership(
                    of: settings.collaboration, by: settings.owner, as: owner.identity, displayName: owner.displayName),
                steps.next())
            if owner.displayName == nil, settings.initiatorName != nil {
                // The claim has named the owner as the initiator.
                try await send(
                    UpdateParticipant(
                        ParticipantChange(owner.identity, displayName: .clear), in: settings.collaboration),
                    steps.next())
            }
            summary.participants += 1
        }
        for part in people.filter({ $0.role != .owner }).parts(of: CollabImport.participantsPerRequest) {
            let added = part.map {
                NewParticipant($0.identity, displayName: $0.displayName, role: $0.role, permission: $0.permission)
            }
            try await confirm(begun)
            try await send(AddParticipants(added, to: settings.collaboration), steps.next())
            summary.participants += part.count
        }
        for roots in file.roots.parts(of: Limits.rootsPerRequestMax) {
            try await confirm(begun)
            _ = try await apply(Mutation(identifier: steps.next(), .addRoots(settings.collaboration, roots)))
            summary.roots += roots.count
        }
        summary.unlinked = people.compactMap { person in person.account.map { (person.identity, $0) } }
    }

    /// Puts a share on somebody's shelf. Shares of links that are not the collaboration's are left out, and counted.
    private func add(
        _ share: TransferredShare, _ settings: TransferredCollaboration, _ link: URL, _ steps: inout ImportSteps,
        _ summary: inout Summary
    ) async throws {
        let (sharing, pinning) = (steps.next(), steps.next())
        let place = share.url.absoluteString.dropFirst(settings.url.absoluteString.count)
        guard share.url.leads(to: settings.url), let url = URL(string: link.absoluteString + place) else {
            summary.foreignShares += 1
            return
        }
        try await send(
            RecordShare(
                url: url, title: share.title, subtitle: share.subtitle, thumbnail: share.thumbnail, app: share.app,
                sharer: share.sharer, conversation: share.conversation, date: share.date,
                recipients: [ShareRecipient(share.account)]), sharing)
        summary.shares += 1
        guard share.isPinned else { return }
        do {
            try await send(
                PinHighlight(url, of: share.account, for: .everyApp, in: share.conversation.identifier), pinning)
        } catch let error as ServiceError where error.code == .mutationConflict {
            // An earlier run has pinned it, and the person has taken the pin away since.
        }
    }

    // MARK: Sending

    @discardableResult
    private func send<Request: CollaborationRequest>(
        _ request: Request, _ identifier: MutationIdentifier
    ) async throws -> Request.Answer {
        try await client.whileBusy(patience) { client throws(ServiceError) in
            try await client.send(request, identifier: identifier)
        }
    }

    private func apply(_ mutation: Mutation) async throws -> MutationReceipt {
        try await client.whileBusy(patience) { client throws(ServiceError) in try await client.apply(mutation) }
    }
}

/// The identifiers of an import's requests, which follow from its file.
private struct ImportSteps {
    private let file: Digest
    private var attempt = 0
    private var step = 0
    /// Whether the collaboration was there before the start was sent.
    var isRepeat = false

    init(_ file: Digest) {
        self.file = file
    }

    /// Goes on with identifiers that no request before has had.
    mutating func beginAnew() {
        attempt += 1
        step = 0
    }

    /// The identifier of the next request.
    mutating func next() -> MutationIdentifier {
        step += 1
        let hash = SHA256.hash(Array("rootgate collab import \(file) \(attempt) \(step)".utf8))
        return MutationIdentifier(hash.bytes.prefix(16).reduce(0) { $0 << 8 | UInt128($1) })
    }
}

extension TransferredCollaboration {
    /// The request that starts it.
    fileprivate var start: PrepareCollaborationAs {
        var metadata = CollaborationMetadata(localIdentifier: localIdentifier)
        metadata.title = title
        metadata.initiatorHandle = initiatorHandle
        metadata.defaultShareOptions = shareOptions
        metadata.defaultPermission = defaultPermission
        return PrepareCollaborationAs(
            collaboration, owner: owner, metadata: metadata, ownerName: initiatorName,
            nonceWindowSeconds: nonceWindowSeconds, creationDate: creationDate)
    }
}

extension Array {
    /// The elements in parts of at most so many.
    fileprivate func parts(of count: Int) -> [[Element]] {
        stride(from: 0, to: self.count, by: count).map { Array(self[$0..<Swift.min($0 + count, self.count)]) }
    }
}
