public import Core
public import Foundation

/// An object that a `HighlightCenter` calls when the shelf has changed. Apple: `SWHighlightCenterDelegate`.
public protocol HighlightCenterDelegate: AnyObject, Sendable {
    /// The shelf has changed. Applying `difference` to the earlier links gives the present ones.
    func highlightCenterHighlightsDidChange(
        _ center: HighlightCenter, highlights: [Highlight], difference: CollectionDifference<URL>)
}

/// What was shared with one person and opens in one app: the shelf, and the collaborations behind its items. Apple:
/// `SWHighlightCenter`. The center belongs to the app, so it tells neither who shared an item nor in which
/// conversation: that is for the system's side, which draws attribution.
public final class HighlightCenter: Sendable {
    private struct State {
        weak var delegate: (any HighlightCenterDelegate)?
        var watching: Task<Void, Never>?
        var grants = KeptGrants()
    }

    /// The account whose shelf it is.
    public let account: Account
    /// The bundle identifier of the app whose shelf it is.
    public let app: String
    /// The language of the texts, a tag of BCP 47; `nil`: English.
    public let language: String?
    private let client: RootgateClient
    private let device: (any IdentityDevice)?
    private let state = Lock(State())

    /// `device` proves the person's identity. Without it no proof can be made and no notice can be posted.
    public init(
        _ client: RootgateClient, account: Account, app: String, device: (any IdentityDevice)? = nil,
        language: String? = nil
    ) {
        self.client = client
        self.account = account
        self.app = app
        self.device = device
        self.language = language
    }

    deinit {
        state.withLock { $0.watching }?.cancel()
    }

    // MARK: The shelf

    /// A page of the app's shelf: the suggested item first, then pinned items, then the others, the newest first.
    public func highlights(limit: Int = 64, offset: Int = 0) async throws(ServiceError) -> [Highlight] {
        try await client.send(ReadShelf(of: account, for: .app(app), limit: limit, offset: offset)).highlights
    }

    /// The picture of an item for a rich preview, when the service has stored it; `nil` when there is none, or only a
    /// link to it.
    public func thumbnail(of highlight: Highlight) async throws(ServiceError) -> StoredImage? {
        guard case .stored(let hash, _, _)? = highlight.thumbnail else { return nil }
        return try await client.send(ReadThumbnail(hash, of: highlight.url, on: account, for: .app(app)))
    }

    /// What an app knows of an item's attribution: handles of conversations, and the menu.
    public func attribution(for url: URL, removeTitle: String? = nil) async throws(ServiceError) -> AttributionDetails {
        try await client.send(
            ReadAttribution(url, of: account, for: .app(app), removeTitle: removeTitle, language: language))
    }

    /// Records that the person viewed or used an item, or how it was shown. The suggestion is computed from it.
    @discardableResult
    public func signal(
        _ signal: HighlightSignal, for url: URL, context: DisplayContext? = nil
    ) async throws(ServiceError) -> ChangeReceipt {
        try await client.send(SignalHighlight(signal, url, of: account, for: .app(app), context: context))
    }

    /// Removes an item from the shelf from now on.
    @discardableResult
    public func remove(_ url: URL) async throws(ServiceError) -> ChangeReceipt {
        try await client.send(RemoveHighlight(url, of: account, for: .app(app)))
    }

    /// Called when the shelf has changed; held weakly. The center watches the shelf while a delegate is set.
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
        let (client, account, app) = (client, account, app)
        return Task { [weak self] in
            var known: (version: UInt64, links: [URL])?
            var pause = Duration.milliseconds(200)
            while !Task.isCancelled {
                do throws(ServiceError) {
                    var query = ReadShelf(of: account, for: .app(app), limit: 64)
                    if let known { (query.after, query.waitMilliseconds) = (known.version, 20_000) }
                    let shelf = try await client.send(query, waiting: .seconds(20))
                    pause = .milliseconds(200)
                    guard shelf.version > known?.version ?? 0 || known == nil else { continue }
                    let links = shelf.highlights.map(\.url)
                    if let known, let self {
                        self.delegate?.highlightCenterHighlightsDidChange(
                            self, highlights: shelf.highlights, difference: links.difference(from: known.links))
                    }
                    known = (shelf.version, links)
                } catch {
                    // The connection is lost for now. The next difference includes what has changed meanwhile.
                    try? await Task.sleep(for: pause)
                    pause = min(pause * 2, .seconds(10))
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

    /// Opens a collaboration: gets a challenge, lets the device sign it, and sends the proof to the service. The center
    /// keeps the grant for posting notices.
    @discardableResult
    public func open(_ highlight: CollaborationHighlight) async throws(ServiceError) -> OpenDecision {
        let proof = try await signedIdentityProof(for: highlight, using: try await client.challenge())
        let decision = try await client.open(proof, in: highlight.collaborationIdentifier)
        state.withLock { $0.grants[highlight.collaborationIdentifier] = decision.grant }
        return decision
    }

    /// Posts a notice for the other participants.
    ///
    /// Throws `grantRefused` when the device may not open the collaboration.
    @discardableResult
    public func postNotice(for notice: some HighlightNotice) async throws(ServiceError) -> ChangeReceipt {
        let collaboration = notice.highlight.collaborationIdentifier
        return try await withGrant(for: notice.highlight) { grant throws(ServiceError) in
            try await self.client.send(PostNotices([notice.event], on: collaboration, by: grant))
        }
    }

    /// Clears this participant's feed of everything that was posted until now. Other views still show it.
    @discardableResult
    public func clearNotices(for highlight: CollaborationHighlight) async throws(ServiceError) -> ChangeReceipt {
        try await withGrant(for: highlight) { grant throws(ServiceError) in
            try await self.client.send(ClearNotices(of: highlight.collaborationIdentifier, by: grant))
        }
    }

    /// Calls `body` with the kept grant. Opens the collaboration for a new grant when there is none, or when the kept
    /// one is refused; then calls `body` with the new grant.
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
