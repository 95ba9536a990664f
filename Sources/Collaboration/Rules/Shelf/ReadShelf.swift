package import Core

/// A page of a person's shelf, or of what one app has of it: the suggested item, then pinned items, then the others,
/// the newest first among each. With `waitMilliseconds` the answer waits for a version of the shelf above `after`.
public struct ReadShelf: RuledRequest {
    public static let name = "readShelf"
    package static let isQuery = true
    package var follows: Bool { (waitMilliseconds ?? 0) > 0 }
    public typealias Answer = Shelf

    public var account: Account
    /// The app that reads; see `ShelfScope`.
    public var app: String?
    public var everyApp: Bool?
    /// Items in the answer.
    public var limit: Int
    /// Items before the first one of the answer.
    public var offset: Int?
    /// With `waitMilliseconds`: the version that the caller has.
    public var after: UInt64?
    public var waitMilliseconds: Int?

    public init(
        of account: Account, for scope: ShelfScope, limit: Int = 64, offset: Int? = nil, after: UInt64? = nil,
        waitMilliseconds: Int? = nil
    ) {
        self.account = account
        (app, everyApp) = (scope.app, scope.everyApp)
        self.limit = limit
        self.offset = offset
        self.after = after
        self.waitMilliseconds = waitMilliseconds
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        switch try decideEncoded(context, records) {
        case .answer(let json): return .answer(try JSON.decode(Shelf.self, from: json))
        case .wait(let topics, let milliseconds, let json):
            return .wait(topics: topics, milliseconds: milliseconds, answer: try JSON.decode(Shelf.self, from: json))
        case .edit, .note: throw ServiceError(.internalFault, "reading a shelf changes nothing")
        }
    }

    /// Builds the page from the stored JSON of the shares.
    package func decideEncoded(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> EncodedDecision {
        try checkPage(limit, Limits.highlightsPerPageMax)
        try checkRange(offset ?? 0, 0...Limits.shelfOffsetMax, "offset")
        try checkWait(waitMilliseconds)
        let scope = try ShelfScope(app: app, everyApp: everyApp)
        let version = try records.record(RecordKeys.shelf(account))?.version ?? 0
        func shelf(_ count: Int, _ highlights: [UInt8]) -> [UInt8] {
            Array(#"{"count":\#(count),"version":\#(version),"highlights":["#.utf8) + highlights + Array("]}".utf8)
        }
        if let after, let waitMilliseconds, waitMilliseconds > 0, version <= after {
            return .wait(topics: [.shelf(account)], milliseconds: waitMilliseconds, answer: shelf(0, []))
        }
        let view = try ShelfView(account, scope, context, records)
        let ranking = try Ranking(view, context, records)
        let count = ranking.items.count
        let start = min(offset ?? 0, count)
        var highlights: [UInt8] = []
        for index in start..<min(count, start + limit) where highlights.count < Limits.shelfPageBytesMax {
            if index > start { highlights.append(UInt8(ascii: ",")) }
            try records.append(
                ranking.items[index].item, view, isSuggested: ranking.hasSuggestion && index == 0, to: &highlights)
        }
        return .answer(shelf(count, highlights))
    }
}
