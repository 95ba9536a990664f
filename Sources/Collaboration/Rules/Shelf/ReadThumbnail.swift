public import Core
public import Foundation

/// Reads a stored thumbnail of an item of the shelf, by its SHA-256.
public struct ReadThumbnail: RuledRequest {
    public static let name = "readThumbnail"
    package static let isQuery = true
    public typealias Answer = StoredImage

    public var account: Account
    /// The app that reads; see `ShelfScope`.
    public var app: String?
    public var everyApp: Bool?
    public var url: URL
    /// As the item has it.
    public var hash: Digest

    public init(_ hash: Digest, of url: URL, on account: Account, for scope: ShelfScope) {
        self.account = account
        (app, everyApp) = (scope.app, scope.everyApp)
        self.url = url
        self.hash = hash
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLink(url, "url")
        let view = try ShelfView(account, try ShelfScope(app: app, everyApp: everyApp), context, records)
        let shares = try records.shares(of: url, view, context)
        guard shares.contains(where: { $0.thumbnail == hash }) else {
            throw ServiceError(.unknownHighlight, "\(url.absoluteString) has no such thumbnail")
        }
        guard let bytes = try records.record(RecordKeys.thumbnail(hash))?.value, let type = ImageType(of: bytes) else {
            throw ServiceError(.storageDamaged, "a thumbnail is missing")
        }
        return .answer(StoredImage(bytes: bytes, type: type))
    }
}
