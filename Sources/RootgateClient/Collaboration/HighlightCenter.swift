public import Core
public import Foundation
import Synchronization

/// What a device does about identity: it has a key for every collaboration, and signs with it. On Apple's systems that
/// is the system itself; in tests and load runs a simulated device.
public protocol IdentityDevice: Sendable {
    /// The proof that this device belongs to its person, with a signature over `data`.
    func signedIdentityProof(
        in collaboration: CollaborationIdentifier, signing data: [UInt8]
    ) async throws(ServiceError) -> SignedIdentityProof
}

/// What a notice is posted for.
public protocol HighlightNotice: Sendable {
    var highlight: CollaborationHighlight { get }
    var event: HighlightEvent { get }
}

/// The content changed, or was commented on. Apple: `SWHighlightChangeEvent`.
public struct HighlightChangeEvent: HighlightNotice {
    public let highlight: CollaborationHighlight
    public let event: HighlightEvent

    public init(highlight: CollaborationHighlight, trigger: HighlightEvent.Change) {
        self.highlight = highlight
        event = .change(trigger: trigger)
    }
}

/// Somebody came or went. Apple: `SWHighlightMembershipEvent`.
public struct HighlightMembershipEvent: HighlightNotice {
    public let highlight: CollaborationHighlight
    public let event: HighlightEvent

    public init(
        highlight: CollaborationHighlight, trigger: HighlightEvent.Membership, person: PersonIdentity? = nil
    ) {
        self.highlight = highlight
        event = .membership(trigger: trigger, person: person)
    }
}

/// Somebody was mentioned. Apple: `SWHighlightMentionEvent`.
public struct HighlightMentionEvent: HighlightNotice {
    public let highlight: CollaborationHighlight
    public let event: HighlightEvent

    public init(highlight: CollaborationHighlight, mentionedPersonIdentity: PersonIdentity) {
        self.highlight = highlight
        event = .mention(person: mentionedPersonIdentity)
    }
}

/// The content was created, deleted, renamed or moved. Apple: `SWHighlightPersistenceEvent`.
public struct HighlightPersistenceEvent: HighlightNotice {
    public let highlight: CollaborationHighlight
    public let event: HighlightEvent

    public init(highlight: CollaborationHighlight, trigger: HighlightEvent.Persistence) {
        self.highlight = highlight
        event = .persistence(trigger: trigger)
    }
}

/// Who wants to know when a shelf has changed. Apple: `SWHighlightCenterDelegate`.
public protocol HighlightCenterDelegate: AnyObject, Sendable {
    /// The shelf is another one now; `difference` leads from the links that it had to those that it has.
    func highlightCenterHighlightsDidChange(
        _ center: HighlightCenter, highlights: [Highlight], difference: CollectionDifference<URL>)
}

/// What one person sees of what was shared: the shelf, and the doors behind it. Apple: `SWHighlightCenter`.
public final class HighlightCenter: Sendable {
    private struct State {
        weak var delegate: (any HighlightCenterDelegate)?
        var watching: Task<Void, Never>?
        var grants: [CollaborationIdentifier: AccessGrant] = [:]
    }

    public let account: Account
    private let client: RootgateClient
    private let device: (any IdentityDevice)?
    private let state = Mutex(State())

    /// `device`: who proves the person's identity; without it no proof can be given and no notice posted.
    public init(_ client: RootgateClient, account: Account, device: (any IdentityDevice)? = nil) {
        self.client = client
        self.account = account
        self.device = device
    }

    deinit {
        state.withLock { $0.watching }?.cancel()
    }

    // MARK: The shelf

    /// The first items of the shelf: the suggested one, those that are pinned, the newest.
    public func highlights(limit: Int = 64, offset: Int = 0) async throws(ServiceError) -> [Highlight] {
        try await client.send(ReadShelf(of: account, limit: limit, offset: offset)).highlights
    }

    /// What an attribution view shows of an item.
    public func attribution(for url: URL, removeTitle: String? = nil) async throws(ServiceError) -> AttributionDetails {
        try await client.send(ReadAttribution(url, of: account, removeTitle: removeTitle))
    }

    /// Who is told when the shelf has changed; not kept alive. Setting it begins to watch, `nil` ends that.
    public var delegate: (any HighlightCenterDelegate)? {
        get { state.withLock { $0.delegate } }
        set {
            state.withLock { state in
                state.delegate = newValue
                state.watching?.cancel()
                state.watching = newValue == nil ? nil : watch()
            }
        }
    }

    private func watch() -> Task<Void, Never> {
        let (client, account) = (client, account)
        return Task { [weak self] in
            var known: (version: UInt64, links: [URL])?
            while !Task.isCancelled {
                do throws(ServiceError) {
                    var query = ReadShelf(of: account, limit: 64)
                    if let known { (query.after, query.waitMilliseconds) = (known.version, 20_000) }
                    let shelf = try await client.send(query, waiting: .seconds(20))
                    guard shelf.version > known?.version ?? 0 || known == nil else { continue }
                    let links = shelf.highlights.map(\.url)
                    if let known, let self {
                        self.delegate?.highlightCenterHighlightsDidChange(
                            self, highlights: shelf.highlights, difference: links.difference(from: known.links))
                    }
                    known = (shelf.version, links)
                } catch {
                    // Lost for now: what changed meanwhile shows in the next difference.
                    try? await Task.sleep(for: .milliseconds(200))
                }
                if self == nil { return }
            }
        }
    }

    // MARK: Collaborations

    /// The collaboration of that identifier.
    public func collaborationHighlight(
        forIdentifier identifier: CollaborationIdentifier
    ) async throws(ServiceError) -> CollaborationHighlight {
        try await client.send(FindHighlight(identifier))
    }

    /// The collaboration that a universal link leads to.
    public func collaborationHighlight(for url: URL) async throws(ServiceError) -> CollaborationHighlight {
        try await client.send(FindHighlight(url: url))
    }

    /// The device's proof for a collaboration, with a signature over `data`.
    ///
    /// Throws `notPermitted` when there is no device.
    public func signedIdentityProof(
        for highlight: CollaborationHighlight, using data: [UInt8]
    ) async throws(ServiceError) -> SignedIdentityProof {
        guard let device else { throw ServiceError(.notPermitted, "there is no device to give a proof") }
        return try await device.signedIdentityProof(in: highlight.collaborationIdentifier, signing: data)
    }

    /// Opens a collaboration: gets a challenge, has the device sign it, and shows the proof at the gate. The grant is
    /// kept for notices.
    @discardableResult
    public func open(_ highlight: CollaborationHighlight) async throws(ServiceError) -> OpenDecision {
        guard let challenge = try await client.challenges(1).challenges.first else {
            throw ServiceError(.malformedAnswer, "the service gave no challenge")
        }
        let proof = try await signedIdentityProof(for: highlight, using: challenge)
        let decision = try await client.open(proof, in: highlight.collaborationIdentifier)
        state.withLock { $0.grants[highlight.collaborationIdentifier] = decision.grant }
        return decision
    }

    /// Tells the other participants of something.
    ///
    /// Throws `grantRefused` when the device may not open the collaboration (any more).
    @discardableResult
    public func postNotice(for notice: some HighlightNotice) async throws(ServiceError) -> ChangeReceipt {
        let collaboration = notice.highlight.collaborationIdentifier
        return try await withGrant(for: notice.highlight) { grant throws(ServiceError) in
            try await self.client.send(PostNotices([notice.event], on: collaboration, by: grant))
        }
    }

    /// Takes what was posted until now out of this person's feed.
    @discardableResult
    public func clearNotices(for highlight: CollaborationHighlight) async throws(ServiceError) -> ChangeReceipt {
        try await withGrant(for: highlight) { grant throws(ServiceError) in
            try await self.client.send(ClearNotices(of: highlight.collaborationIdentifier, by: grant))
        }
    }

    /// Does something with a grant; with a fresh one when that which was kept is worth nothing any more.
    private func withGrant<Answer>(
        for highlight: CollaborationHighlight, _ body: (AccessGrant) async throws(ServiceError) -> Answer
    ) async throws(ServiceError) -> Answer {
        if let kept = state.withLock({ $0.grants[highlight.collaborationIdentifier] }) {
            do throws(ServiceError) {
                return try await body(kept)
            } catch {
                guard error.code == .grantRefused else { throw error }
            }
        }
        let decision = try await open(highlight)
        guard let grant = decision.grant else {
            throw ServiceError(.grantRefused, "the device may not open the collaboration: \(decision.verdict.name)")
        }
        return try await body(grant)
    }
}
