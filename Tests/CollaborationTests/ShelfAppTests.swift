import Collaboration
import Core
import Foundation
import TestSupport
import Testing

@Suite("What an app has of a shelf")
struct ShelfAppTests {
    private let world = World()
    private let bo: Account

    init() throws {
        bo = try account("bo")
        try world.send(SetConsent(of: bo, .everything, isAllowed: true))
        try share(1, "mine", in: "c")
        try share(2, "other", in: "c")
        try share(3, "mine", in: "c")
        try share(3, "other", in: "d")
    }

    private func link(_ number: Int) throws -> URL { try url("https://decks.example/\(number)") }

    private func share(_ number: Int, _ app: String, in conversation: String) throws {
        world.now += 1
        try world.send(
            RecordShare(
                url: try link(number), title: "By \(app)", app: app, sharer: Sharer(name: "Ana"),
                conversation: Conversation(identifier: conversation), recipients: [ShareRecipient(bo)]))
    }

    /// The requests about a shelf, each with what the fields say.
    private func requests(_ app: String?, _ everyApp: Bool?, _ number: Int) throws -> [any RuledRequest] {
        let (link, scope) = (try link(number), ShelfScope.everyApp)
        var shelf = ReadShelf(of: bo, for: scope)
        (shelf.app, shelf.everyApp) = (app, everyApp)
        var attribution = ReadAttribution(link, of: bo, for: scope)
        (attribution.app, attribution.everyApp) = (app, everyApp)
        var thumbnail = ReadThumbnail(.zero, of: link, on: bo, for: scope)
        (thumbnail.app, thumbnail.everyApp) = (app, everyApp)
        var pin = PinHighlight(link, of: bo, for: scope)
        (pin.app, pin.everyApp) = (app, everyApp)
        var signal = SignalHighlight(.viewed, link, of: bo, for: scope)
        (signal.app, signal.everyApp) = (app, everyApp)
        var removal = RemoveHighlight(link, of: bo, for: scope)
        (removal.app, removal.everyApp) = (app, everyApp)
        return [shelf, attribution, thumbnail, pin, signal, removal]
    }

    @Test("A request that says neither app nor everyApp is malformed, and so is one that says both")
    func scopes() throws {
        for (app, everyApp) in [(nil, nil), (nil, false), ("mine", true), ("", nil), ("a\nb", nil)]
            as [(String?, Bool?)]
        {
            for request in try requests(app, everyApp, 1) {
                #expect(world.code(of: request) == .malformedRequest, "\(request) with \(app ?? "-")")
            }
        }
        for request in try requests("mine", false, 1) { #expect(world.code(of: request) != .malformedRequest) }
    }

    @Test("An app has its own items and shares, and no others")
    func ownItems() throws {
        let mine = try world.send(ReadShelf(of: bo, for: .app("mine")))
        #expect(try mine.highlights.map(\.url) == [link(3), link(1)] && mine.count == 2)
        #expect(mine.highlights.allSatisfy { $0.app == "mine" && $0.attributions.count == 1 })
        #expect(mine.highlights[0].title == "By mine", "the other app's share of the same link is newer")
        #expect(try world.send(ReadShelf(of: bo, for: .app("none"))).count == 0)
        #expect(try world.send(ReadShelf(of: bo, for: .everyApp)).count == 3)
    }

    @Test("What is another app's is unknown to an app, whatever it asks")
    func foreignItems() throws {
        let before = try world.send(ReadShelf(of: bo, for: .everyApp))
        for request in try requests("mine", nil, 2) where !(request is ReadShelf) {
            #expect(world.code(of: request) == .unknownHighlight, "\(request)")
        }
        #expect(try world.send(ReadShelf(of: bo, for: .everyApp)) == before)
    }

    @Test("An app pins and unpins only what it sees, so that it gives itself no consent")
    func pinsOfApps() throws {
        try world.send(PinHighlight(try link(3), of: bo, for: .app("mine")))
        let attributions = try world.send(ReadAttribution(try link(3), of: bo, for: .everyApp)).attributions
        #expect(attributions.map(\.isPinned) == [false, true], "only its own share")
        try world.send(SetConsent(of: bo, .app("mine"), isAllowed: false))
        for isPinned in [true, false] {
            let request = PinHighlight(try link(1), of: bo, for: .app("mine"), isPinned: isPinned)
            #expect(world.code(of: request) == .unknownHighlight)
        }
        #expect(try world.send(ReadShelf(of: bo, for: .app("mine"))).highlights.map(\.url) == [try link(3)])
        try world.send(PinHighlight(try link(3), of: bo, for: .app("mine"), isPinned: false))
        #expect(try world.send(ReadShelf(of: bo, for: .app("mine"))).count == 0)
    }

    @Test("An app names a conversation by its handle, and by nothing else")
    func pinByHandle() throws {
        try share(1, "mine", in: "d")
        let seen = try world.send(ReadAttribution(try link(1), of: bo, for: .app("mine"))).attributions
        var pin = PinHighlight(try link(1), of: bo, for: .app("mine"))
        pin.handle = seen[1].handle
        #expect(try world.send(pin).receipt.changed == 1)
        let pinned = try world.send(ReadAttribution(try link(1), of: bo, for: .everyApp)).attributions
        #expect(pinned.map(\.isPinned) == [false, true] && pinned[1].conversation?.identifier == "c")
        pin.handle = ConversationHandle(bytes: [UInt8](repeating: 7, count: 16))
        #expect(world.code(of: pin) == .unknownHighlight)
        pin.handle = nil
        pin.conversation = "c"
        #expect(world.code(of: pin) == .malformedRequest)
        (pin.app, pin.everyApp, pin.handle) = (nil, true, seen[1].handle)
        #expect(world.code(of: pin) == .malformedRequest, "a conversation is named once")
    }

    @Test("Two apps have different handles of one conversation, and an app has one")
    func handlesOfApps() throws {
        try share(4, "mine", in: "c")
        try share(2, "mine", in: "d")
        func handles(_ number: Int, _ app: String) throws -> [ConversationHandle] {
            try world.send(ReadAttribution(try link(number), of: bo, for: .app(app))).attributions.map(\.handle)
        }
        #expect(try handles(1, "mine") == handles(4, "mine"), "both in c")
        #expect(try handles(1, "mine") != handles(2, "other"), "both in c")
        #expect(try handles(2, "mine") != handles(3, "other"), "both in d")
    }

    @Test("An app removes only what it sees, and does not learn what else was shared")
    func removalByApp() throws {
        func code(_ number: Int) throws -> ServiceError.Code? {
            world.code(of: RemoveHighlight(try link(number), of: bo, for: .app("mine")))
        }
        try world.send(SetConsent(of: bo, .everything, isAllowed: false))
        #expect(try code(1) == .unknownHighlight && code(9) == .unknownHighlight)
        try world.send(SetConsent(of: bo, .everything, isAllowed: true))
        #expect(
            try world.send(ReadShelf(of: bo, for: .app("mine"))).highlights.map(\.url) == [try link(3), try link(1)])
        #expect(try code(1) == nil)
        #expect(try world.send(ReadShelf(of: bo, for: .app("mine"))).highlights.map(\.url) == [try link(3)])
        #expect(try code(1) == nil && code(2) == .unknownHighlight, "the same again changes nothing")
    }

    @Test("A pin is for the app that opened the link then, and for no app that opens it later")
    func pinOfAnotherApp() throws {
        try world.send(SetConsent(of: bo, .everything, isAllowed: nil))
        try world.send(SetConsent(of: bo, .app("evil"), isAllowed: false))
        func pinned(_ app: String) throws -> [Bool] {
            try world.send(ReadShelf(of: bo, for: .app(app))).highlights.map(\.isPinned)
        }
        try world.send(PinHighlight(try link(1), of: bo, for: .everyApp))
        #expect(try pinned("mine") == [true])
        world.now += 1
        try share(1, "mine", in: "c")
        #expect(try pinned("mine") == [true], "the same app keeps the pin")
        world.now += 1
        try share(1, "evil", in: "c")
        #expect(try pinned("evil").isEmpty && pinned("mine").isEmpty)
    }

    @Test("An app's suggestion is among its own items")
    func suggestionOfApp() throws {
        for _ in 0..<3 { try world.send(SignalHighlight(.interacted, try link(2), of: bo, for: .app("other"))) }
        try world.send(SignalHighlight(.viewed, try link(1), of: bo, for: .app("mine")))
        let mine = try world.send(ReadShelf(of: bo, for: .app("mine"))).highlights
        #expect(try mine.map(\.isSuggested) == [true, false] && mine[0].url == link(1))
    }
}
