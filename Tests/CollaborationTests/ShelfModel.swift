import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// One person's shelf as PROTOCOL.md describes it, written for clarity and not for speed.
struct ShelfModel {
    struct Share {
        var sharer: String
        var conversation: Conversation
        var app: String
        var milliseconds: Int
        var isPinned: Bool
        var knowsSomebody: Bool
    }

    struct Item {
        /// The latest share of each conversation.
        var shares: [String: Share] = [:]
        var isHidden = false
        var views = 0
        var interactions = 0
        var shown = 0
        var lastSignal = 0
    }

    var items: [String: Item] = [:]
    var refusedApps: Set<String> = []
    var refusedConversations: Set<String> = []
    var refusesEverything = false

    mutating func record(_ url: String, _ share: Share, pinning isPinned: Bool?) {
        let before = items[url]?.shares[share.conversation.identifier]
        if let before, before.milliseconds > share.milliseconds { return }
        var share = share
        share.isPinned = isPinned ?? before?.isPinned ?? false
        items[url, default: Item()].shares[share.conversation.identifier] = share
    }

    /// The shares that count, newest first.
    func shares(_ url: String) -> [Share] {
        guard let item = items[url], !item.isHidden else { return [] }
        return item.shares.values.filter { share in
            let isRefused =
                refusesEverything || refusedApps.contains(share.app)
                || refusedConversations.contains(share.conversation.identifier)
            return (share.knowsSomebody || !share.conversation.isGroup) && (share.isPinned || !isRefused)
        }.sorted { $0.milliseconds > $1.milliseconds }
    }

    func isPinned(_ url: String) -> Bool { shares(url).contains(where: \.isPinned) }

    /// Interacting says most, then viewing, being shown a little and nothing alone; a pin helps.
    private func likelihood(_ url: String) -> Int {
        guard let item = items[url], item.views + item.interactions > 0 else { return 0 }
        return 4 * item.interactions + 2 * item.views + min(item.shown, 4) + (isPinned(url) ? 3 : 0)
    }

    /// The links in their order, and whether the first one is suggested.
    var order: (links: [String], hasSuggestion: Bool) {
        let visible = items.keys.filter { !shares($0).isEmpty }
        func newest(_ url: String) -> Int { shares(url)[0].milliseconds }
        let pinned = visible.filter { isPinned($0) }.sorted { newest($0) > newest($1) }
        var links = pinned + visible.filter { !isPinned($0) }.sorted { newest($0) > newest($1) }
        let likely = links.filter { likelihood($0) > 0 }.sorted {
            (likelihood($0), items[$0]?.lastSignal ?? 0) > (likelihood($1), items[$1]?.lastSignal ?? 0)
        }
        guard let suggestion = likely.first else { return (links, false) }
        links.removeAll { $0 == suggestion }
        return ([suggestion] + links, true)
    }
}

/// Does the same to a shelf and to its model.
struct ShelfRun {
    private let world = World()
    private let account: Account
    private var model = ShelfModel()
    private var generator: SeededGenerator
    private let context: Comment
    /// No two shares are of the same moment.
    private var moments: Set<Int> = []

    init(seed: UInt64, _ context: Comment) throws {
        account = try CollaborationTests.account("bo")
        generator = SeededGenerator(seed: seed)
        self.context = context
    }

    private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &generator) }

    mutating func run(steps: Int) throws {
        for _ in 0..<steps {
            world.now += 1
            switch below(10) {
            case 0..<4: try share()
            case 4: try pin()
            case 5: try remove()
            case 6, 7: try signal()
            case 8: try consent()
            default: try compare()
            }
        }
        try compare()
    }

    private mutating func link() -> String { "https://decks.example/\(below(8))" }

    private mutating func share() throws {
        let (link, number) = (link(), below(4))
        let conversation = Conversation(identifier: "c\(number)", name: "Group \(number)", isGroup: number < 2)
        var milliseconds = Int(world.milliseconds) - below(60_000)
        while !moments.insert(milliseconds).inserted { milliseconds -= 1 }
        let share = ShelfModel.Share(
            sharer: "P\(below(5))", conversation: conversation, app: "app\(below(2))", milliseconds: milliseconds,
            isPinned: false, knowsSomebody: below(3) > 0)
        let isPinned: Bool? = [nil, nil, nil, true, false][below(5)]
        try world.send(
            RecordShare(
                url: try url(link), title: "At \(milliseconds)", app: share.app, sharer: Sharer(name: share.sharer),
                conversation: conversation, date: Date(timeIntervalSince1970: Double(milliseconds) / 1000),
                isPinned: isPinned, recipients: [ShareRecipient(account, knowsSomebody: share.knowsSomebody)]))
        model.record(link, share, pinning: isPinned)
    }

    private mutating func pin() throws {
        let (link, isPinned) = (link(), below(3) > 0)
        let conversation: String? = below(2) == 0 ? nil : "c\(below(4))"
        let places = (model.items[link]?.shares.keys.filter { $0 == conversation ?? $0 }) ?? []
        let request = PinHighlight(try url(link), of: account, in: conversation, isPinned: isPinned)
        guard model.items[link]?.isHidden != true else { return }
        #expect(world.code(of: request) == (places.isEmpty ? .unknownHighlight : nil), context)
        for place in places { model.items[link]?.shares[place]?.isPinned = isPinned }
    }

    private mutating func remove() throws {
        guard below(4) == 0 else { return }
        let link = link()
        let isKnown = !model.shares(link).isEmpty || model.items[link]?.isHidden == true
        #expect(
            world.code(of: RemoveHighlight(try url(link), of: account)) == (isKnown ? nil : .unknownHighlight), context)
        if isKnown { model.items[link]?.isHidden = true }
    }

    private mutating func signal() throws {
        let link = link()
        let isVisible = !model.shares(link).isEmpty
        let signal = HighlightSignal.allCases[below(3)]
        let display: DisplayContext? = [nil, .summary, .detail][below(3)]
        let request = SignalHighlight(signal, try url(link), of: account, context: display)
        #expect(world.code(of: request) == (isVisible ? nil : .unknownHighlight), context)
        guard isVisible else { return }
        var item = model.items[link] ?? ShelfModel.Item()
        switch signal {
        case .viewed: item.views += 1
        case .interacted: item.interactions += 1
        case .shown: item.shown += display == .detail ? 2 : 1
        }
        item.lastSignal = Int(world.milliseconds)
        model.items[link] = item
    }

    private mutating func consent() throws {
        let isAllowed: Bool? = [nil, true, false][below(3)]
        func change(_ refused: inout Set<String>, _ name: String) {
            if isAllowed == false { refused.insert(name) } else { refused.remove(name) }
        }
        let level: ConsentLevel
        switch below(5) {
        case 0:
            level = .everything
            model.refusesEverything = isAllowed == false
        case 1, 2:
            let app = "app\(below(2))"
            level = .app(app)
            change(&model.refusedApps, app)
        default:
            let conversation = "c\(below(4))"
            level = .conversation(conversation)
            change(&model.refusedConversations, conversation)
        }
        try world.send(SetConsent(of: account, level, isAllowed: isAllowed))
    }

    /// The whole shelf, and one page of it, against the model.
    private mutating func compare() throws {
        let shelf = try world.send(ReadShelf(of: account))
        let (links, hasSuggestion) = model.order
        #expect(shelf.highlights.map(\.url.absoluteString) == links, context)
        #expect(shelf.count == links.count, context)
        for (index, highlight) in shelf.highlights.enumerated() where index < links.count {
            let shares = model.shares(links[index])
            #expect(highlight.isSuggested == (hasSuggestion && index == 0), context)
            #expect(highlight.isPinned == model.isPinned(links[index]), context)
            #expect(highlight.attributions.map(\.sharer.name) == shares.map(\.sharer), context)
            #expect(highlight.attributions.map(\.conversation) == shares.map(\.conversation), context)
            #expect(highlight.attributions.map(\.isPinned) == shares.map(\.isPinned), context)
            #expect(highlight.title == "At \(shares[0].milliseconds)" && highlight.app == shares[0].app, context)
            #expect((highlight.date.timeIntervalSince1970 * 1000).rounded() == Double(shares[0].milliseconds), context)
        }
        let (offset, limit) = (below(10), 1 + below(4))
        let page = try world.send(ReadShelf(of: account, limit: limit, offset: offset))
        #expect(page.highlights == Array(shelf.highlights.dropFirst(offset).prefix(limit)), context)
        #expect(page.count == shelf.count && page.version == shelf.version, context)
    }
}
