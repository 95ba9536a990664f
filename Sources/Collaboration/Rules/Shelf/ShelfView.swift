import Core
import Foundation

/// A shelf as one caller sees it: which shares are on it.
struct ShelfView {
    let account: Account
    let scope: ShelfScope
    let consent: Consent
    /// The only app whose shares belong to the view, by fingerprint; `nil`: those of every app.
    private let app: UInt64?
    private let automatic: AutomaticSharing

    init(
        _ account: Account, _ scope: ShelfScope, _ context: RuleContext,
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        self.account = account
        self.scope = scope
        app = scope.app.map { shortNumber(ShelfKeys.short($0, context)) }
        consent = try records.load(Consent.self, at: RecordKeys.consent(account))?.value ?? Consent()
        automatic = AutomaticSharing(consent, context)
    }

    /// Whether the share is of an app that the view is about.
    private func concerns(_ share: ShareHead) -> Bool { app == nil || share.app == app }

    /// Whether the share is on the shelf, unless the item was removed or its collaboration has ended.
    func shows(_ share: ShareHead, in conversation: UInt64) -> Bool {
        share.counts && concerns(share)
            && (share.isPinned || automatic.allows(app: share.app, conversation: conversation))
    }

    /// The error about a link that is not on the shelf, or not for this caller.
    func unknown(_ url: URL) -> ServiceError {
        ServiceError(.unknownHighlight, "\(url.absoluteString) is not on the shelf of \(account)")
    }
}

extension ShelfScope {
    /// The scope that a request's fields say.
    ///
    /// Throws `malformedRequest` when they say none: an omission is never taken for everything.
    init(app: String?, everyApp: Bool?) throws(ServiceError) {
        switch (app, everyApp ?? false) {
        case (let app?, false):
            try checkIdentifier(app, "app")
            self = .app(app)
        case (nil, true):
            self = .everyApp
        case (_?, true):
            throw ServiceError(.malformedRequest, "app and everyApp are both given: a request says one of them")
        case (nil, false):
            throw ServiceError(
                .malformedRequest,
                "app is missing: a request names the app whose items it concerns, or says everyApp: true")
        }
    }
}
