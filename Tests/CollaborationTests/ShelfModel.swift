import Collaboration
import Core
import Foundation

/// One person's shelf as PROTOCOL.md describes it, written for clarity and not for speed.
struct ShelfModel {
    struct Share {
        var sharer: String
        var conversation: Conversation
        var app: String
        var milliseconds: Int
        var isPinned: Bool
        var knowsSomebody: Bool
        var subtitle: String?
        var image: [UInt8]?

        /// Whether anything shows it at all: a group of strangers does not.
        var counts: Bool { knowsSomebody || !conversation.isGroup }
    }

    struct Item {
        /// The latest share of each conversation.
        var shares: [String: Share] = [:]
        var isHidden = false
        /// In 65,536ths, as they were at the last signal.
        var interest = 0
        var shown = 0
        var lastSignal = 0
        var lastUse = 0
    }

    private static let week = 7 * 24 * 3600 * 1000

    var now = 0
    var items: [String: Item] = [:]
    var everything: Bool?
    var apps: [String: Bool] = [:]
    var conversations: [String: Bool] = [:]
    /// Links to collaborations that have ended.
    var ended: Set<String> = []

    mutating func record(_ url: String, _ share: Share) {
        let before = items[url]?.shares[share.conversation.identifier]
        if let before, before.milliseconds > share.milliseconds { return }
        var share = share
        share.isPinned = before.map { $0.isPinned && $0.app == share.app } ?? false
        items[url, default: Item()].shares[share.conversation.identifier] = share
    }

    /// Automatic sharing has to be allowed somewhere, and refused nowhere.
    func isAutomatic(_ share: Share) -> Bool {
        let said = [everything, apps[share.app], conversations[share.conversation.identifier]].compactMap { $0 }
        return !said.isEmpty && said.allSatisfy { $0 }
    }

    /// The shares that are on the shelf, newest first; with `app` those of that app.
    func shares(_ url: String, for app: String?) -> [Share] {
        guard let item = items[url], !item.isHidden, !ended.contains(url) else { return [] }
        return item.shares.values.filter { share in
            share.counts && (share.isPinned || isAutomatic(share)) && (app == nil || share.app == app)
        }.sorted { $0.milliseconds > $1.milliseconds }
    }

    func isPinned(_ url: String, for app: String?) -> Bool { shares(url, for: app).contains(where: \.isPinned) }

    mutating func note(_ url: String, _ signal: HighlightSignal, _ display: DisplayContext?) {
        var item = items[url] ?? Item()
        item.interest = ShelfModel.rest(item.interest, after: now - item.lastSignal)
        item.shown = ShelfModel.rest(item.shown, after: now - item.lastSignal)
        switch signal {
        case .viewed: item.interest += 131_072
        case .interacted: item.interest += 262_144
        case .shown: item.shown = min(262_144, item.shown + (display == .detail ? 131_072 : 65_536))
        }
        if signal != .shown { item.lastUse = now }
        item.lastSignal = now
        items[url] = item
    }

    /// Halves the weight for each week that has passed, and takes the right part of the next half.
    private static func rest(_ weight: Int, after milliseconds: Int) -> Int {
        var (weight, time) = (weight, milliseconds)
        while time >= week, weight > 0 { (weight, time) = (weight / 2, time - week) }
        return weight == 0 ? 0 : weight - weight * time / (2 * week)
    }

    /// Interacting says most, then viewing, being shown a little and nothing alone; a pin helps. Time takes it away.
    private func likelihood(_ url: String, for app: String?) -> Int {
        guard let item = items[url], let newest = shares(url, for: app).first else { return 0 }
        let interest = ShelfModel.rest(item.interest, after: now - item.lastSignal)
        let isOld = now - newest.milliseconds > 30 * 24 * 3600 * 1000
        if interest < 65_536 || isOld && now - item.lastUse > ShelfModel.week { return 0 }
        let shown = ShelfModel.rest(item.shown, after: now - item.lastSignal)
        return interest + shown + (isPinned(url, for: app) ? 196_608 : 0)
    }

    /// The links in their order, and whether the first one is suggested.
    func order(for app: String?) -> (links: [String], hasSuggestion: Bool) {
        let visible = items.keys.filter { !shares($0, for: app).isEmpty }
        func newest(_ url: String) -> Int { shares(url, for: app)[0].milliseconds }
        let pinned = visible.filter { isPinned($0, for: app) }.sorted { newest($0) > newest($1) }
        var links = pinned + visible.filter { !isPinned($0, for: app) }.sorted { newest($0) > newest($1) }
        let likely = links.filter { likelihood($0, for: app) > 0 }.sorted {
            (likelihood($0, for: app), items[$0]?.lastSignal ?? 0)
                > (likelihood($1, for: app), items[$1]?.lastSignal ?? 0)
        }
        guard let suggestion = likely.first else { return (links, false) }
        links.removeAll { $0 == suggestion }
        return ([suggestion] + links, true)
    }

    /// The app to offer automatic sharing for, when these shares are pinned: the newest whose permission would let
    /// something more appear, now or later.
    func offer(_ shares: [Share]) -> String? {
        shares.sorted { $0.milliseconds > $1.milliseconds }.map(\.app).first { app in
            var asked = self
            asked.apps[app] = true
            // A conversation of which nothing was said yet stands for all that may come.
            let next = Share(
                sharer: "", conversation: Conversation(identifier: "to come"), app: app, milliseconds: 0,
                isPinned: false, knowsSomebody: true)
            return asked.isAutomatic(next) && !isAutomatic(next)
        }
    }

    /// The thumbnails that shares have.
    var images: Set<[UInt8]> { Set(items.values.flatMap { $0.shares.values.compactMap(\.image) }) }
}
