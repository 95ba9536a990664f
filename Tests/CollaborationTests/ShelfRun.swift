@testable import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// Does the same to a shelf and to its model.
struct ShelfRun {
    private let world = World()
    private let account: Account
    private var model = ShelfModel()
    private var generator: SeededGenerator
    private let context: Comment
    /// Links, and the collaborations of this service that some of them lead to.
    private var links: [(link: String, collaboration: CollaborationIdentifier?)] = []
    /// No two shares are of the same moment.
    private var moments: Set<Int> = []
    /// The conversations' handles, by conversation and app, as far as they were told.
    private var handles: [String: ConversationHandle] = [:]

    init(seed: UInt64, _ context: Comment) throws {
        account = try CollaborationTests.account("bo")
        generator = SeededGenerator(seed: seed)
        self.context = context
        links = (0..<6).map { ("https://decks.example/\($0)", nil) }
        for local in ["x", "y"] {
            let collaboration = try world.start(local)
            let link = try #require(world.settings.link(of: collaboration))
            links.append((link.absoluteString, collaboration))
        }
    }

    private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &generator) }

    private mutating func link() -> String { links[below(links.count)].link }

    /// An app, and sometimes everything.
    private mutating func scope() -> (scope: ShelfScope, app: String?) {
        guard below(3) > 0 else { return (.everyApp, nil) }
        let app = "app\(below(3))"
        return (.app(app), app)
    }

    mutating func run(steps: Int) throws {
        for _ in 0..<steps {
            world.now += below(8) == 0 ? Double(below(20 * 86_400)) : 1
            model.now = Int(world.milliseconds)
            switch below(11) {
            case 0..<4: try share()
            case 4: try pin()
            case 5: try below(4) == 0 ? end() : remove()
            case 6, 7: try signal()
            case 8, 9: try consent()
            default: try compare()
            }
        }
        try compare()
    }

    private mutating func share() throws {
        let (link, number) = (link(), below(4))
        let conversation = Conversation(identifier: "c\(number)", name: "Group \(number)", isGroup: number < 2)
        var milliseconds = Int(world.milliseconds) - below(60_000)
        while !moments.insert(milliseconds).inserted { milliseconds -= 1 }
        let image = below(2) == 0 ? png(below(4)) : nil
        let share = ShelfModel.Share(
            sharer: "P\(below(5))", conversation: conversation, app: "app\(below(2))", milliseconds: milliseconds,
            isPinned: false, knowsSomebody: below(3) > 0, subtitle: below(2) == 0 ? "Under it" : nil, image: image)
        let request = RecordShare(
            url: try url(link), title: "At \(milliseconds)", subtitle: share.subtitle,
            thumbnail: image.map { .image($0, .png) }, app: share.app, sharer: Sharer(name: share.sharer),
            conversation: conversation, date: Date(timeIntervalSince1970: Double(milliseconds) / 1000),
            recipients: [ShareRecipient(account, knowsSomebody: share.knowsSomebody)])
        guard !model.ended.contains(link) else {
            #expect(world.code(of: request) == .unknownCollaboration, context)
            return
        }
        try world.send(request)
        model.record(link, share)
    }

    private mutating func pin() throws {
        let (link, isPinned, (scope, app)) = (link(), below(3) > 0, scope())
        let conversation: String? = below(2) == 0 ? nil : "c\(below(4))"
        var places: [String: ShelfModel.Share] = [:]
        if let item = model.items[link], !item.isHidden, !(isPinned && model.ended.contains(link)) {
            let visible = model.shares(link, for: app).map(\.conversation.identifier)
            places = item.shares.filter { name, share in
                guard name == conversation ?? name else { return false }
                // An app acts on what it sees; everybody else pins whatever can appear and unpins anything.
                return app == nil ? share.counts || !isPinned : visible.contains(name)
            }
        }
        var request = PinHighlight(
            try url(link), of: account, for: scope, in: app == nil ? conversation : nil, isPinned: isPinned)
        if app != nil, let conversation {
            guard let handle = handles["\(conversation) \(app ?? "")"] else { return }
            request.handle = handle
        }
        guard !places.isEmpty else {
            #expect(world.code(of: request) == .unknownHighlight, context)
            return
        }
        let answer = try world.send(request)
        let offer = isPinned ? model.offer(Array(places.values)) : nil
        #expect(answer.offersAutomaticSharing == (offer != nil), context)
        #expect(answer.offeredLevel == offer.map { .app($0) }, context)
        #expect(answer.receipt.changed == places.values.filter { $0.isPinned != isPinned }.count, context)
        for place in places.keys { model.items[link]?.shares[place]?.isPinned = isPinned }
    }

    private mutating func remove() throws {
        guard below(4) == 0 else { return }
        let (link, (scope, app)) = (link(), scope())
        // The system removes whatever was shared, an app what it sees; and what was removed, it may remove again.
        let isKnown: Bool
        if app == nil {
            isKnown = model.items[link] != nil
        } else {
            var unhidden = model
            unhidden.items[link]?.isHidden = false
            if model.items[link]?.isHidden == true { unhidden.ended = [] }
            isKnown = !unhidden.shares(link, for: app).isEmpty
        }
        #expect(
            world.code(of: RemoveHighlight(try url(link), of: account, for: scope))
                == (isKnown ? nil : .unknownHighlight), context)
        if isKnown { model.items[link]?.isHidden = true }
    }

    /// Ends a collaboration; its link leads to none from now on.
    private mutating func end() throws {
        guard let place = links.indices.randomElement(using: &generator),
            let collaboration = links[place].collaboration,
            !model.ended.contains(links[place].link)
        else { return }
        let isKnown = model.items[links[place].link] != nil
        let topics = try world.topics(StopSharing(collaboration))
        #expect(topics.contains(.shelf(account)) == isKnown, context)
        try world.send(StopSharing(collaboration))
        model.ended.insert(links[place].link)
    }

    private mutating func signal() throws {
        let (link, (scope, app)) = (link(), scope())
        let isVisible = !model.shares(link, for: app).isEmpty
        let signal = HighlightSignal.allCases[below(3)]
        let display: DisplayContext? = [nil, .summary, .detail][below(3)]
        let request = SignalHighlight(signal, try url(link), of: account, for: scope, context: display)
        #expect(world.code(of: request) == (isVisible ? nil : .unknownHighlight), context)
        if isVisible { model.note(link, signal, display) }
    }

    private mutating func consent() throws {
        let isAllowed: Bool? = [nil, true, true, false][below(4)]
        let level: ConsentLevel
        switch below(5) {
        case 0:
            level = .everything
            model.everything = isAllowed
        case 1, 2:
            let app = "app\(below(2))"
            level = .app(app)
            model.apps[app] = isAllowed
        default:
            let conversation = "c\(below(4))"
            level = .conversation(conversation)
            model.conversations[conversation] = isAllowed
        }
        try world.send(SetConsent(of: account, level, isAllowed: isAllowed))
    }

    /// The whole shelf, one page of it, and what an app has of it, against the model.
    private mutating func compare() throws {
        let shelf = try world.send(ReadShelf(of: account, for: .everyApp))
        try compare(shelf, nil)
        for app in ["app0", "app2"] { try compare(try world.send(ReadShelf(of: account, for: .app(app))), app) }
        let (offset, limit) = (below(10), 1 + below(4))
        let page = try world.send(ReadShelf(of: account, for: .everyApp, limit: limit, offset: offset))
        #expect(page.highlights == Array(shelf.highlights.dropFirst(offset).prefix(limit)), context)
        #expect(page.count == shelf.count && page.version == shelf.version, context)
        // What is stored of thumbnails is what shares have, once each.
        let stored = world.storage.records.values.filter { $0.key[0] == UInt8(ascii: "z") }.map(\.value)
        #expect(Set(stored) == model.images && stored.count == model.images.count, context)
        let counted = try world.storage.records.values.filter { $0.key[0] == UInt8(ascii: "g") }.map { try $0.number() }
        #expect(counted.reduce(0, +) == UInt64(stored.map(\.count).reduce(0, +)), context)
    }

    private mutating func compare(_ shelf: Shelf, _ app: String?) throws {
        let (links, hasSuggestion) = model.order(for: app)
        #expect(shelf.highlights.map(\.url.absoluteString) == links, context)
        #expect(shelf.count == links.count, context)
        for (index, highlight) in shelf.highlights.enumerated() where index < links.count {
            let shares = model.shares(links[index], for: app)
            #expect(highlight.isSuggested == (hasSuggestion && index == 0), context)
            #expect(highlight.isPinned == model.isPinned(links[index], for: app), context)
            #expect(highlight.title == "At \(shares[0].milliseconds)" && highlight.app == shares[0].app, context)
            #expect(highlight.subtitle == shares[0].subtitle, context)
            #expect((highlight.date.timeIntervalSince1970 * 1000).rounded() == Double(shares[0].milliseconds), context)
            #expect(highlight.attributions.map(\.isPinned) == shares.map(\.isPinned), context)
            let isSystem = app == nil
            #expect(highlight.attributions.map(\.sharer?.name) == shares.map { isSystem ? $0.sharer : nil }, context)
            #expect(
                highlight.attributions.map(\.conversation) == shares.map { isSystem ? $0.conversation : nil }, context)
            for (attribution, share) in zip(highlight.attributions, shares) {
                let place = "\(share.conversation.identifier) \(share.app)"
                let known = handles[place]
                #expect(known == nil || known == attribution.handle, context)
                handles[place] = attribution.handle
            }
            try compareThumbnail(of: highlight, shares[0].image, app)
        }
        #expect(Set(handles.values).count == handles.count, context)
    }

    private func compareThumbnail(of highlight: Highlight, _ image: [UInt8]?, _ app: String?) throws {
        guard let image else {
            #expect(highlight.thumbnail == nil, context)
            return
        }
        #expect(highlight.thumbnail == .stored(hash: standIn(image), .png, byteCount: image.count), context)
        let scope: ShelfScope = app.map { .app($0) } ?? .everyApp
        let read = try world.send(ReadThumbnail(standIn(image), of: highlight.url, on: account, for: scope))
        #expect(read.bytes == image && read.type == .png, context)
    }
}

/// An image by its first bytes, different for each number.
func png(_ number: Int, count: Int = 64) -> [UInt8] {
    [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
        + [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: max(0, count - 8 + number % 7))
}
