@testable import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// A world with a shelf of the account "bo".
private struct Bench {
    let world = World()
    let bo: Account

    /// `isAllowed`: whether automatic sharing is on, for everything.
    init(isAllowed: Bool = true) throws {
        bo = try account("bo")
        if isAllowed { try world.send(SetConsent(of: bo, .everything, isAllowed: true)) }
    }

    func link(_ number: Int) throws -> URL { try url("https://decks.example/\(number)") }

    /// Shares link `number` some seconds from now.
    @discardableResult
    func share(
        _ number: Int, by sharer: String = "Ana", in conversation: String = "c", app: String = "app",
        at seconds: Double = 0, isGroup: Bool = false, knows: Bool = true, title: String? = nil,
        thumbnail: Thumbnail? = nil
    ) throws -> ChangeReceipt {
        try world.send(
            RecordShare(
                url: try link(number), title: title, thumbnail: thumbnail, app: app, sharer: Sharer(name: sharer),
                conversation: Conversation(identifier: conversation, isGroup: isGroup), date: world.now + seconds,
                recipients: [ShareRecipient(bo, knowsSomebody: knows)]))
    }

    /// Pins link `number` in all conversations.
    func pin(_ number: Int) throws {
        try world.send(PinHighlight(try link(number), of: bo, for: .everyApp))
    }

    /// The whole shelf, as the system's side sees it.
    var shelf: Shelf { get throws { try world.send(ReadShelf(of: bo, for: .everyApp)) } }

    /// The numbers of the links that an app has.
    func numbers(for app: String) throws -> [Int] {
        try world.send(ReadShelf(of: bo, for: .app(app))).highlights.map { Int($0.url.lastPathComponent) ?? -1 }
    }

    /// The first item of the shelf.
    var first: Highlight { get throws { try #require(try shelf.highlights.first) } }

    /// The numbers of the links on the shelf.
    var numbers: [Int] {
        get throws { try shelf.highlights.map { Int($0.url.lastPathComponent) ?? -1 } }
    }

    func attribution(_ number: Int, removeTitle: String? = nil) throws -> AttributionDetails {
        try world.send(ReadAttribution(try link(number), of: bo, for: .everyApp, removeTitle: removeTitle))
    }
}

@Suite("What is on a shelf")
struct ShelfTests {
    private let bench: Bench
    private var world: World { bench.world }

    init() throws {
        bench = try Bench()
    }

    @Test("An item counts in so many conversations, the newest, and in not one more")
    func mostConversations() throws {
        let most = Limits.conversationsPerItemMax
        for number in 0...most { try bench.share(1, in: "c\(number)", at: Double(number)) }
        let item = ShelfKeys.item(try bench.link(1), world.context)
        let heads = try world.storage.shareHeads(of: item, bench.bo) { _, _ in true }
        #expect(heads.count == most)
        // The oldest one is left out.
        let oldest = try #require(heads.last)
        #expect(oldest.head.milliseconds == world.milliseconds + 1000)
    }

    @Test("Shelves are in the order of the protocol, whatever was done to them")
    func order() throws {
        for iteration in 0..<40 {
            var run = try ShelfRun(seed: runSeed &+ UInt64(iteration), "seed \(runSeed), iteration \(iteration)")
            try run.run(steps: 80)
        }
    }

    @Test("The suggested item comes first, then pinned ones, then the rest, the newest first")
    func ranking() throws {
        for number in 1...5 { try bench.share(number, at: Double(number)) }
        #expect(try bench.numbers == [5, 4, 3, 2, 1])
        #expect(try bench.shelf.highlights.allSatisfy { !$0.isSuggested })
        try world.send(PinHighlight(try bench.link(2), of: bench.bo, for: .everyApp))
        try world.send(PinHighlight(try bench.link(3), of: bench.bo, for: .everyApp))
        #expect(try bench.numbers == [3, 2, 5, 4, 1])
        try world.send(SignalHighlight(.shown, try bench.link(1), of: bench.bo, for: .everyApp, context: .detail))
        #expect(try bench.numbers == [3, 2, 5, 4, 1], "being shown alone says nothing")
        try world.send(SignalHighlight(.viewed, try bench.link(1), of: bench.bo, for: .everyApp))
        #expect(try bench.numbers == [1, 3, 2, 5, 4])
        #expect(try bench.shelf.highlights.map(\.isSuggested) == [true, false, false, false, false])
        for _ in 0..<2 { try world.send(SignalHighlight(.interacted, try bench.link(4), of: bench.bo, for: .everyApp)) }
        #expect(try bench.numbers == [4, 3, 2, 5, 1])
    }

    @Test("Being shown in detail counts twice")
    func detail() throws {
        for number in 1...2 {
            try bench.share(number, at: Double(number))
            world.now += 1
            try world.send(SignalHighlight(.viewed, try bench.link(number), of: bench.bo, for: .everyApp))
        }
        #expect(try bench.numbers.first == 2, "the later signal decides")
        try world.send(SignalHighlight(.shown, try bench.link(1), of: bench.bo, for: .everyApp, context: .detail))
        try world.send(SignalHighlight(.shown, try bench.link(2), of: bench.bo, for: .everyApp, context: .summary))
        #expect(try bench.numbers.first == 1)
    }

    @Test("A link that is shared again in a conversation is one item with the latest share")
    func again() throws {
        try bench.share(1, by: "Ana", at: 1, title: "Old")
        try bench.share(2, at: 2)
        try bench.share(1, by: "Bea", at: 3, title: "New")
        #expect(try bench.numbers == [1, 2])
        let item = try bench.first
        #expect(item.attributions.map(\.sharer?.name) == ["Bea"])
        #expect(item.title == "New" && item.date == world.now + 3)
    }

    @Test("A share that arrives late changes nothing, not even a pin")
    func late() throws {
        try bench.share(1, by: "Ana", at: 10)
        let records = world.storage.records
        #expect(try bench.share(1, by: "Bea", at: 9).changed == 0)
        #expect(world.storage.records == records)
        #expect(try bench.share(1, by: "Cy", at: 10).changed == 1, "at the same moment, the last one counts")
        #expect(try bench.first.attributions.map(\.sharer?.name) == ["Cy"])
    }

    @Test("A pin stays when the link is shared again, and nobody who shares pins for others")
    func pinStays() throws {
        try bench.share(1, at: 1)
        try bench.pin(1)
        try bench.share(1, at: 2)
        #expect(try bench.first.isPinned)
        let share = #"{"url":"https://a.example","app":"a","sharer":{"name":"A"},"conversation":{"identifier":"c","#
        let rest = #""isGroup":false},"recipients":[],"isPinned":true}"#
        #expect(throws: ServiceError(.malformedRequest, "")) {
            try JSON.decodeStrictly(RecordShare.self, from: Array((share + rest).utf8))
        }
    }

    @Test("A link in several conversations is one item with an attribution for each, newest first")
    func conversations() throws {
        try bench.share(1, by: "Ana", in: "a", at: 1)
        try bench.share(1, by: "Bea", in: "b", at: 3)
        try bench.share(1, by: "Cy", in: "c", at: 2)
        #expect(try bench.shelf.count == 1)
        #expect(try bench.first.attributions.map(\.conversation?.identifier) == ["b", "c", "a"])
        try world.send(PinHighlight(try bench.link(1), of: bench.bo, for: .everyApp, in: "c"))
        #expect(try bench.first.attributions.map(\.isPinned) == [false, true, false])
        #expect(try bench.first.isPinned)
        try world.send(PinHighlight(try bench.link(1), of: bench.bo, for: .everyApp))
        #expect(try bench.first.attributions.allSatisfy(\.isPinned))
        try world.send(PinHighlight(try bench.link(1), of: bench.bo, for: .everyApp, isPinned: false))
        #expect(try !bench.first.isPinned)
    }

    @Test("A group in which the person knows nobody does not count, a conversation of two does")
    func groups() throws {
        try bench.share(1, in: "g", isGroup: true, knows: false)
        try bench.share(2, in: "h", isGroup: true, knows: true)
        try bench.share(3, in: "d", isGroup: false, knows: false)
        #expect(try Set(bench.numbers) == [2, 3])
        let request = SignalHighlight(.viewed, try bench.link(1), of: bench.bo, for: .everyApp)
        #expect(world.code(of: request) == .unknownHighlight)
        try bench.share(1, in: "d", at: 5)
        let item = try bench.first
        #expect(item.attributions.map(\.conversation?.identifier) == ["d"])
    }

    @Test("An item that was removed stays removed, whoever shares or pins it again")
    func hidden() throws {
        try bench.share(1, in: "a")
        try bench.share(2)
        try world.send(RemoveHighlight(try bench.link(1), of: bench.bo, for: .everyApp))
        #expect(try bench.numbers == [2])
        try bench.share(1, in: "b", at: 60)
        #expect(world.code(of: PinHighlight(try bench.link(1), of: bench.bo, for: .everyApp)) == .unknownHighlight)
        #expect(try bench.numbers == [2])
        #expect(
            world.code(of: SignalHighlight(.viewed, try bench.link(1), of: bench.bo, for: .everyApp))
                == .unknownHighlight)
        #expect(world.code(of: ReadAttribution(try bench.link(1), of: bench.bo, for: .everyApp)) == .unknownHighlight)
    }

    @Test("Removing an item again is harmless, and removing one that was never shared is unknown-highlight")
    func removeAgain() throws {
        try bench.share(1)
        #expect(try world.send(RemoveHighlight(try bench.link(1), of: bench.bo, for: .everyApp)).changed == 1)
        #expect(
            try world.send(RemoveHighlight(try bench.link(1), of: bench.bo, for: .everyApp))
                == ChangeReceipt(sequence: world.storage.sequence, changed: 0))
        #expect(world.code(of: RemoveHighlight(try bench.link(2), of: bench.bo, for: .everyApp)) == .unknownHighlight)
    }

    @Test("What one person does to a shelf changes nobody else's")
    func others() throws {
        let (cy, link) = (try account("cy"), try bench.link(1))
        let request = RecordShare(
            url: link, app: "app", sharer: Sharer(name: "Ana"), conversation: Conversation(identifier: "c"),
            recipients: [ShareRecipient(bench.bo), ShareRecipient(cy), ShareRecipient(bench.bo)])
        var other = request
        other.recipients[2].knowsSomebody = false
        #expect(world.error(of: other)?.reason.contains("recipients[2]") == true)
        #expect(world.code(of: other) == .malformedRequest)
        try world.send(SetConsent(of: cy, .app("app"), isAllowed: true))
        #expect(try world.topics(request) == [.shelf(bench.bo), .shelf(cy)])
        #expect(try world.send(request).changed == 2)
        let version = try world.send(ReadShelf(of: cy, for: .everyApp)).version
        try world.send(PinHighlight(link, of: bench.bo, for: .everyApp))
        try world.send(RemoveHighlight(link, of: bench.bo, for: .everyApp))
        try world.send(SetConsent(of: bench.bo, .everything, isAllowed: false))
        let shelf = try world.send(ReadShelf(of: cy, for: .everyApp))
        #expect(shelf.highlights.map(\.isPinned) == [false] && shelf.version == version)
        #expect(try bench.shelf.version == world.storage.sequence)
    }

    @Test("Pages begin at their offset and have the number of all items")
    func paging() throws {
        for number in 1...7 { try bench.share(number, at: Double(number)) }
        func page(_ limit: Int, _ offset: Int?) throws -> [Int] {
            let shelf = try world.send(ReadShelf(of: bench.bo, for: .everyApp, limit: limit, offset: offset))
            #expect(shelf.count == 7)
            return shelf.highlights.map { Int($0.url.lastPathComponent) ?? -1 }
        }
        #expect(try page(3, nil) == [7, 6, 5])
        #expect(try page(3, 3) == [4, 3, 2])
        #expect(try page(3, 6) == [1])
        #expect(try page(3, 7) == [])
        #expect(try page(3, Limits.shelfOffsetMax) == [])
        #expect(world.code(of: ReadShelf(of: bench.bo, for: .everyApp, limit: 0)) == .malformedRequest)
        #expect(
            world.code(of: ReadShelf(of: bench.bo, for: .everyApp, limit: Limits.highlightsPerPageMax + 1))
                == .limitExceeded)
    }

    @Test("Reading a shelf that is no newer than the caller's waits for a change of that shelf")
    func waiting() throws {
        try bench.share(1)
        let version = try bench.shelf.version
        func waits(_ after: UInt64?, _ milliseconds: Int?) throws -> Bool {
            let request = ReadShelf(of: bench.bo, for: .everyApp, after: after, waitMilliseconds: milliseconds)
            guard case .wait(let topics, let time, let shelf) = try world.decide(request) else { return false }
            #expect(topics == [.shelf(bench.bo)] && shelf.version == version)
            #expect(time == milliseconds)
            return true
        }
        #expect(try waits(version, 100))
        #expect(try waits(version, 60_000))
        #expect(try !waits(version - 1, 100))
        #expect(try !waits(version, nil) && !waits(version, 0) && !waits(nil, 100))
        try world.send(SignalHighlight(.viewed, try bench.link(1), of: bench.bo, for: .everyApp))
        #expect(try !waits(version, 100))
    }

    @Test("Links, texts and recipients over their limits are refused, and invalid names are malformed")
    func limits() throws {
        func request(_ change: (inout RecordShare) -> Void) throws -> RecordShare {
            var share = RecordShare(
                url: try bench.link(1), app: "app", sharer: Sharer(name: "Ana"),
                conversation: Conversation(identifier: "c"), recipients: [ShareRecipient(bench.bo)])
            change(&share)
            return share
        }
        func text(_ count: Int) -> String { String(repeating: "a", count: count) }
        let longest = try url("https://a.example/" + text(Limits.linkBytesMax - 18))
        let longer = try url(longest.absoluteString + "a")
        let tooMany = try (0...Limits.recipientsPerShareMax).map { ShareRecipient(try account("\($0)")) }
        for (change, code): ((inout RecordShare) -> Void, ServiceError.Code?) in [
            ({ $0.url = longest }, nil), ({ $0.url = longer }, .limitExceeded),
            ({ $0.title = text(512) }, nil), ({ $0.title = text(513) }, .limitExceeded),
            ({ $0.sharer.name = text(513) }, .limitExceeded),
            ({ $0.sharer.avatar = text(512) }, nil), ({ $0.sharer.avatar = text(513) }, .limitExceeded),
            ({ $0.sharer.avatar = "https://a.example/bo.png" }, nil),
            ({ $0.sharer.avatar = "javascript:alert(1)" }, .malformedRequest),
            ({ $0.sharer.avatar = " data:image/png;base64,AA" }, .malformedRequest),
            ({ $0.conversation.name = text(513) }, .limitExceeded),
            ({ $0.recipients = tooMany }, .limitExceeded), ({ $0.recipients.removeAll() }, nil),
            ({ $0.conversation.identifier = "" }, .malformedRequest),
            ({ $0.conversation.identifier = text(129) }, .malformedRequest),
            ({ $0.app = "" }, .malformedRequest), ({ $0.app = "a\nb" }, .malformedRequest),
            ({ $0.app = "a\u{9b}b" }, .malformedRequest),
            ({ $0.conversation.identifier = "\u{202e}c" }, .malformedRequest),
        ] {
            #expect(world.code(of: try request(change)) == code)
        }
    }

    @Test("A page of long items ends before its limit, and the pages together are the shelf")
    func longPages() throws {
        let picture = String(repeating: "p", count: Limits.textBytesMax)
        for number in 0..<Limits.highlightsPerPageMax {
            for conversation in 0..<Limits.attributionsPerItemMax {
                try world.send(
                    RecordShare(
                        url: try bench.link(number), app: "app", sharer: Sharer(name: picture, avatar: picture),
                        conversation: Conversation(identifier: "c\(conversation)", name: picture),
                        date: world.now + Double(number),
                        recipients: [ShareRecipient(bench.bo)]))
            }
        }
        var links: [URL] = []
        var pages = 0
        while true {
            let page = try world.send(ReadShelf(of: bench.bo, for: .everyApp, offset: links.count))
            #expect(page.count == Limits.highlightsPerPageMax)
            if page.highlights.isEmpty { break }
            links += page.highlights.map(\.url)
            pages += 1
        }
        #expect(pages > 1)
        #expect(links == (try (0..<Limits.highlightsPerPageMax).reversed().map { try bench.link($0) }))
    }

    @Test("The moment of a share comes back to the millisecond")
    func moments() throws {
        var generator = SeededGenerator(seed: runSeed)
        for number in 0..<300 {
            let milliseconds = Int.random(in: 0...1_760_000_000_000, using: &generator)
            let date = Date(timeIntervalSince1970: Double(milliseconds) / 1000)
            try world.send(
                RecordShare(
                    url: try bench.link(number), app: "app", sharer: Sharer(name: "Ana"),
                    conversation: Conversation(identifier: "\(number)"), date: date,
                    recipients: [ShareRecipient(bench.bo)]))
            let attribution = try #require(try bench.attribution(number).attributions.first)
            let known = (attribution.date.timeIntervalSince1970 * 1000).rounded()
            #expect(known == Double(milliseconds), "seed \(runSeed)")
        }
    }

    @Test("An item in more conversations than one read covers is on the shelf if only one of them counts")
    func manyConversations() throws {
        for number in 0..<300 { try bench.share(1, in: "g\(number)", isGroup: true, knows: false) }
        #expect(try bench.shelf.count == 0)
        for number in 0..<20 {
            try bench.share(1, in: "d\(number)", at: Double(number))
            let item = try bench.first
            #expect(item.date == world.now + Double(number))
            #expect(item.attributions.first?.conversation?.identifier == "d\(number)")
            #expect(item.attributions.count == min(number + 1, Limits.attributionsPerItemMax))
            let pin = PinHighlight(try bench.link(1), of: bench.bo, for: .everyApp, in: "d\(number)")
            #expect(try world.send(pin).receipt.changed == 1)
        }
    }
}

@Suite("Consent to what is shared")
struct ConsentTests {
    private let bench: Bench
    private var world: World { bench.world }
    private static let everyLevel: [ConsentLevel] = [.everything, .app("a"), .conversation("c")]

    init() throws {
        bench = try Bench(isAllowed: false)
    }

    private func set(_ level: ConsentLevel, _ isAllowed: Bool?) throws {
        try world.send(SetConsent(of: bench.bo, level, isAllowed: isAllowed))
    }

    private func pin(_ number: Int, for scope: ShelfScope = .everyApp, isPinned: Bool = true) throws
        -> PinHighlight.Answer
    {
        try world.send(PinHighlight(try bench.link(number), of: bench.bo, for: scope, isPinned: isPinned))
    }

    @Test("Nothing is on a shelf by itself before automatic sharing was allowed at some level")
    func asks() throws {
        try bench.share(1, in: "c", app: "a")
        try bench.share(2, in: "d", app: "b", at: -1)
        #expect(try bench.numbers == [], "nothing was said")
        #expect(try bench.numbers(for: "a") == [])
        #expect(world.code(of: ReadAttribution(try bench.link(1), of: bench.bo, for: .everyApp)) == .unknownHighlight)
        for level in Self.everyLevel {
            try set(level, true)
            #expect(try bench.numbers == (level == .everything ? [1, 2] : [1]), "\(level)")
            try set(level, nil)
            #expect(try bench.numbers == [], "\(level)")
        }
    }

    @Test("What a pin alone brought onto the shelf leaves with the pin")
    func pinsAlone() throws {
        try bench.share(1, in: "c", app: "a")
        try bench.share(2, in: "c", app: "a", at: 1)
        #expect(try pin(1).receipt.changed == 1)
        #expect(try bench.numbers == [1], "the pin is consent to that item, not to the others")
        #expect(try bench.attribution(1).isPinned)
        _ = try pin(1, isPinned: false)
        #expect(try bench.numbers == [])
    }

    @Test("A pin in one conversation brings no other conversation onto the shelf")
    func pinInOne() throws {
        try bench.share(1, by: "Ana", in: "c", at: 1)
        try bench.share(1, by: "Bea", in: "d", at: 2)
        try world.send(PinHighlight(try bench.link(1), of: bench.bo, for: .everyApp, in: "c"))
        #expect(try bench.first.attributions.map(\.sharer?.name) == ["Ana"])
        #expect(try bench.attribution(1).summary == "From Ana")
    }

    @Test("A refusal of everything, an app or a conversation hides its items until it is allowed again")
    func levels() throws {
        try bench.share(1, in: "c1", app: "a1", at: 4)
        try bench.share(2, in: "c1", app: "a2", at: 3)
        try bench.share(3, in: "c2", app: "a1", at: 2)
        try bench.share(4, in: "c2", app: "a2", at: 1)
        try set(.everything, true)
        #expect(try bench.numbers == [1, 2, 3, 4])
        for (level, left) in [
            (ConsentLevel.app("a1"), [2, 4]), (.conversation("c2"), [1, 2]), (.app("x"), [1, 2, 3, 4]),
            (.everything, []),
        ] {
            try set(level, false)
            #expect(try bench.numbers == left, "\(level)")
            try set(level, true)
            #expect(try bench.numbers == [1, 2, 3, 4])
        }
    }

    @Test("An allowed level is not outweighed by silence, and never outweighs a refusal")
    func allThree() throws {
        try bench.share(1, in: "c", app: "a")
        for refused in Self.everyLevel.indices {
            for (index, level) in Self.everyLevel.enumerated() { try set(level, index != refused) }
            #expect(try bench.numbers == [])
            for (index, level) in Self.everyLevel.enumerated() where index != refused { try set(level, nil) }
            #expect(try bench.numbers == [])
        }
        for level in Self.everyLevel { try set(level, true) }
        #expect(try bench.numbers == [1])
    }

    @Test("Only the conversations that are allowed are attributed")
    func attributions() throws {
        try set(.everything, true)
        try bench.share(1, in: "c1", at: 1)
        try bench.share(1, in: "c2", at: 2)
        try set(.conversation("c2"), false)
        let item = try bench.first
        #expect(item.attributions.map(\.conversation?.identifier) == ["c1"])
        #expect(item.date == world.now + 1)
    }

    @Test("A pin is consent, whatever was refused")
    func pins() throws {
        try bench.share(1, in: "c", app: "a")
        try bench.share(2, in: "c", app: "a", at: 1)
        _ = try pin(1)
        for level in Self.everyLevel {
            try set(level, false)
            #expect(try bench.numbers == [1])
        }
        _ = try pin(2)
        #expect(try bench.numbers == [2, 1], "also of what was not on the shelf")
        _ = try pin(1, isPinned: false)
        #expect(try bench.numbers == [2])
    }

    @Test("Consent can be read, and setting it again changes nothing")
    func reading() throws {
        #expect(try world.send(ReadConsent(of: bench.bo)) == Consent())
        #expect(!Consent().allows(app: "a", conversation: "c"))
        try set(.app("a"), false)
        try set(.conversation("c"), true)
        try set(.everything, true)
        let consent = try world.send(ReadConsent(of: bench.bo))
        #expect(consent.everything == true && consent.apps == ["a": false] && consent.conversations == ["c": true])
        #expect(consent.allows(app: "b", conversation: "c") && !consent.allows(app: "a", conversation: "c"))
        let again = SetConsent(of: bench.bo, .app("a"), isAllowed: false)
        #expect(try world.send(again) == ChangeReceipt(sequence: world.storage.sequence, changed: 0))
        for level in [ConsentLevel.app("a"), .conversation("c"), .everything] { try set(level, nil) }
        #expect(try world.send(ReadConsent(of: bench.bo)) == Consent())
        for level in [ConsentLevel.app(""), .conversation("a\u{1}")] {
            #expect(world.code(of: SetConsent(of: bench.bo, level, isAllowed: true)) == .malformedRequest)
        }
    }

    @Test("Consent is read and set only by a request that says everyApp")
    func consentOfApps() throws {
        var (reading, setting) = (ReadConsent(of: bench.bo), SetConsent(of: bench.bo, .app("a"), isAllowed: true))
        (reading.everyApp, setting.everyApp) = (false, false)
        #expect(world.code(of: reading) == .malformedRequest)
        #expect(world.code(of: setting) == .malformedRequest)
        var silent = SetConsent(of: bench.bo, .app("a"), isAllowed: true)
        silent.isAllowed = .keep
        #expect(world.error(of: silent)?.reason.contains("isAllowed is missing") == true)
    }

    @Test("Automatic sharing is offered for the pinned item's app, when allowing it would let something more appear")
    func offers() throws {
        try bench.share(1, in: "c", app: "a")
        func offered(isPinned: Bool = true) throws -> ConsentLevel? {
            let answer = try pin(1, isPinned: isPinned)
            #expect(answer.offersAutomaticSharing == (answer.offeredLevel != nil))
            return answer.offeredLevel
        }
        #expect(try offered() == .app("a"), "nothing was said")
        #expect(try offered() == .app("a"), "it is pinned already, and still nothing was said")
        #expect(try offered(isPinned: false) == nil)
        try set(.app("b"), true)
        try set(.conversation("c"), true)
        #expect(try offered() == .app("a"), "other conversations of the app")
        try set(.app("a"), true)
        #expect(try offered() == nil, "it is on")
        try set(.conversation("c"), false)
        #expect(try offered() == nil, "it is on for the app")
        try set(.app("a"), false)
        #expect(try offered() == .app("a"), "refused, so allowing would change it")
        try set(.everything, true)
        #expect(try offered() == .app("a"), "refused in this app")
        try set(.app("a"), nil)
        #expect(try offered() == nil, "everything is on")
        try set(.everything, false)
        #expect(try offered() == nil, "allowing the app would change nothing")
    }

    @Test("With several apps the newest one is offered for which it matters")
    func offerOfTwo() throws {
        try bench.share(1, in: "c", app: "a", at: 2)
        try bench.share(1, in: "d", app: "b", at: 1)
        #expect(try pin(1).offeredLevel == .app("a"))
        try set(.app("a"), true)
        #expect(try pin(1).offeredLevel == .app("b"))
    }

    @Test("Only what was shared with the person, and can appear, can be pinned")
    func unknownPins() throws {
        try bench.share(1, in: "c")
        try bench.share(2, in: "g", isGroup: true, knows: false)
        func code(_ number: Int, in conversation: String? = nil, isPinned: Bool = true) throws -> ServiceError.Code? {
            world.code(
                of: PinHighlight(
                    try bench.link(number), of: bench.bo, for: .everyApp, in: conversation, isPinned: isPinned))
        }
        #expect(try code(3) == .unknownHighlight)
        #expect(try code(1, in: "d") == .unknownHighlight)
        #expect(try code(2) == .unknownHighlight, "a group of strangers: it would not appear")
        #expect(
            world.code(of: PinHighlight(try bench.link(1), of: try account("cy"), for: .everyApp)) == .unknownHighlight)
        #expect(try code(2, isPinned: false) == nil, "unpinning always gets through")
        let first = try world.send(PinHighlight(try bench.link(1), of: bench.bo, for: .everyApp, in: "c"))
        #expect(first.receipt.changed == 1)
        let second = try world.send(PinHighlight(try bench.link(1), of: bench.bo, for: .everyApp, in: "c"))
        #expect(second.receipt.changed == 0)
    }

    @Test("What was shared can be removed before anything shows it, and then no pin and no consent brings it")
    func removeUnseen() throws {
        try bench.share(1, in: "g", isGroup: true, knows: false)
        #expect(try world.send(RemoveHighlight(try bench.link(1), of: bench.bo, for: .everyApp)).changed == 1)
        try bench.share(1, in: "c", at: 1)
        try set(.everything, true)
        #expect(try bench.numbers == [])
        #expect(world.code(of: PinHighlight(try bench.link(1), of: bench.bo, for: .everyApp)) == .unknownHighlight)
    }

    @Test("Unpinning works when the storage is full, and so does removing an item that had a signal")
    func fullStorage() throws {
        try bench.share(1)
        try bench.pin(1)
        try world.send(SignalHighlight(.viewed, try bench.link(1), of: bench.bo, for: .everyApp))
        let unpin = PinHighlight(try bench.link(1), of: bench.bo, for: .everyApp, isPinned: false)
        #expect(try world.edit(unpin)?.needsSpace == false)
        #expect(try world.edit(RemoveHighlight(try bench.link(1), of: bench.bo, for: .everyApp))?.needsSpace == false)
    }

    @Test("What is not on the shelf takes no signal")
    func unseenSignals() throws {
        try bench.share(1)
        for signal in HighlightSignal.allCases {
            #expect(
                world.code(of: SignalHighlight(signal, try bench.link(1), of: bench.bo, for: .everyApp))
                    == .unknownHighlight)
        }
    }
}

@Suite("Attribution of an item")
struct AttributionTests {
    private let bench: Bench
    private var world: World { bench.world }

    init() throws {
        bench = try Bench()
    }

    @Test("The summary names one or two sharers, and counts more, each once and the latest first")
    func summary() throws {
        try bench.share(1, by: "Ana", in: "a", at: 1)
        #expect(try bench.attribution(1).summary == "From Ana")
        try bench.share(1, by: "Bea", in: "b", at: 2)
        #expect(try bench.attribution(1).summary == "From Bea and Ana")
        try bench.share(1, by: "Ana", in: "c", at: 3)
        #expect(try bench.attribution(1).summary == "From Ana and Bea")
        try bench.share(1, by: "Cy", in: "d", at: 0)
        #expect(try bench.attribution(1).summary == "From Ana and 2 others")
        for number in 1...20 { try bench.share(1, by: "P\(number)", in: "p\(number)", at: -Double(number)) }
        let details = try bench.attribution(1)
        #expect(details.summary == "From Ana and 22 others", "also those whose attribution is not told")
        #expect(details.attributions.count == Limits.attributionsPerItemMax)
    }

    @Test("The menu replies to each conversation, by its name or the sharer's, and removes")
    func menu() throws {
        try bench.share(1, by: "Ana", in: "a", at: 1)
        try world.send(
            RecordShare(
                url: try bench.link(1), app: "app", sharer: Sharer(name: "Bea"),
                conversation: Conversation(identifier: "b", name: "Team"), date: world.now + 2,
                recipients: [ShareRecipient(bench.bo)]))
        let details = try bench.attribution(1)
        #expect(details.url == (try bench.link(1)) && !details.isPinned)
        #expect(details.attributions.map(\.sharer?.name) == ["Bea", "Ana"])
        #expect(details.menu.map(\.title) == ["Reply to Team", "Reply to Ana", "Remove"])
        #expect(details.menu.map(\.kind) == [.reply, .reply, .remove])
        #expect(details.menu.map(\.conversation) == ["b", "a", nil])
        #expect(details.menu.map(\.handle) == details.attributions.map(\.handle) + [nil])
    }

    @Test("An app gets handles in place of people and conversations")
    func handles() throws {
        try bench.share(1, by: "Ana", in: "secret", at: 1)
        try bench.share(1, by: "Bea", in: "d", at: 2)
        try bench.share(2, by: "Ana", in: "secret", at: 3)
        let request = ReadAttribution(try bench.link(1), of: bench.bo, for: .app("app"), removeTitle: "Remove it")
        let details = try world.send(request)
        #expect(details.summary == nil)
        #expect(details.menu.map(\.title) == ["Reply", "Reply", "Remove it"])
        #expect(details.menu.allSatisfy { $0.conversation == nil })
        #expect(details.attributions.allSatisfy { $0.sharer == nil && $0.conversation == nil })
        let shelf = try world.send(ReadShelf(of: bench.bo, for: .app("app")))
        for json in [try JSON.encode(details), try JSON.encode(shelf)] {
            let text = String(decoding: json, as: UTF8.self)
            for word in ["secret", "Ana", "Bea", "From", "sharer", "conversation"] {
                #expect(!text.contains(word), "\(text) tells \(word)")
            }
        }
        // The system's side finds the conversations of the handles.
        let told = try bench.attribution(1).attributions
        #expect(details.attributions.map(\.handle) == told.map(\.handle))
        #expect(told.map(\.conversation?.identifier) == ["d", "secret"])
        #expect(try bench.attribution(2).attributions.map(\.handle) == [told[1].handle], "one handle a conversation")
    }

    @Test("A conversation has another handle for every account, and none that follows from its name")
    func handlesOfOthers() throws {
        let others = try (0..<20).map { try account("a\($0)") }
        try world.send(
            RecordShare(
                url: try bench.link(1), app: "app", sharer: Sharer(name: "Ana"),
                conversation: Conversation(identifier: "c"), recipients: others.map { ShareRecipient($0) }))
        for other in others { try world.send(PinHighlight(try bench.link(1), of: other, for: .everyApp)) }
        let handles = try others.map { other in
            try world.send(ReadAttribution(try bench.link(1), of: other, for: .everyApp)).attributions[0].handle
        }
        #expect(Set(handles).count == handles.count)
        let (first, second) = (World(), World())
        second.random = .seeded(2)
        let request = RecordShare(
            url: try bench.link(1), app: "app", sharer: Sharer(name: "Ana"),
            conversation: Conversation(identifier: "c"), recipients: [ShareRecipient(bench.bo)])
        let twins = try [first, second].map { world in
            try world.send(request)
            try world.send(PinHighlight(try bench.link(1), of: bench.bo, for: .everyApp))
            return try world.send(ReadShelf(of: bench.bo, for: .everyApp)).highlights[0].attributions[0].handle
        }
        #expect(twins[0] != twins[1])
    }

    @Test("The title for removing must contain the word, in whatever case")
    func removeTitle() throws {
        try bench.share(1)
        for title in ["Remove from Decks", "remove", "Please REMOVE it"] {
            #expect(try bench.attribution(1, removeTitle: title).menu.last?.title == title)
        }
        for title in ["", "Hide", "Re move", "Delete"] {
            let error = world.error(
                of: ReadAttribution(try bench.link(1), of: bench.bo, for: .everyApp, removeTitle: title))
            #expect(error?.code == .malformedRequest && error?.reason.contains("Remove") == true)
        }
        let long = "Remove " + String(repeating: "a", count: Limits.textBytesMax)
        #expect(
            world.code(of: ReadAttribution(try bench.link(1), of: bench.bo, for: .everyApp, removeTitle: long))
                == .limitExceeded)
    }

    @Test("What is not on the shelf has no attribution")
    func unknown() throws {
        try bench.share(1)
        #expect(world.code(of: ReadAttribution(try bench.link(2), of: bench.bo, for: .everyApp)) == .unknownHighlight)
        try world.send(SetConsent(of: bench.bo, .everything, isAllowed: false))
        #expect(world.code(of: ReadAttribution(try bench.link(1), of: bench.bo, for: .everyApp)) == .unknownHighlight)
        try world.send(PinHighlight(try bench.link(1), of: bench.bo, for: .everyApp))
        #expect(try bench.attribution(1).isPinned)
    }
}
