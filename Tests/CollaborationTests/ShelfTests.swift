import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// A world with a shelf of the account "bo".
private struct Bench {
    let world = World()
    let bo: Account

    init() throws {
        bo = try account("bo")
    }

    func link(_ number: Int) throws -> URL { try url("https://decks.example/\(number)") }

    /// Shares link `number` some seconds from now.
    @discardableResult
    func share(
        _ number: Int, by sharer: String = "Ana", in conversation: String = "c", app: String = "app",
        at seconds: Double = 0, isGroup: Bool = false, knows: Bool = true, isPinned: Bool? = nil, title: String? = nil
    ) throws -> ChangeReceipt {
        try world.send(
            RecordShare(
                url: try link(number), title: title, app: app, sharer: Sharer(name: sharer),
                conversation: Conversation(identifier: conversation, isGroup: isGroup), date: world.now + seconds,
                isPinned: isPinned, recipients: [ShareRecipient(bo, knowsSomebody: knows)]))
    }

    var shelf: Shelf { get throws { try world.send(ReadShelf(of: bo)) } }

    /// The first item of the shelf.
    var first: Highlight { get throws { try #require(try shelf.highlights.first) } }

    /// The numbers of the links on the shelf.
    var numbers: [Int] {
        get throws { try shelf.highlights.map { Int($0.url.lastPathComponent) ?? -1 } }
    }

    func attribution(_ number: Int, removeTitle: String? = nil) throws -> AttributionDetails {
        try world.send(ReadAttribution(try link(number), of: bo, removeTitle: removeTitle))
    }
}

@Suite("What is on a shelf")
struct ShelfTests {
    private let bench: Bench
    private var world: World { bench.world }

    init() throws {
        bench = try Bench()
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
        try world.send(PinHighlight(try bench.link(2), of: bench.bo))
        try world.send(PinHighlight(try bench.link(3), of: bench.bo))
        #expect(try bench.numbers == [3, 2, 5, 4, 1])
        try world.send(SignalHighlight(.shown, try bench.link(1), of: bench.bo, context: .detail))
        #expect(try bench.numbers == [3, 2, 5, 4, 1], "being shown alone says nothing")
        try world.send(SignalHighlight(.viewed, try bench.link(1), of: bench.bo))
        #expect(try bench.numbers == [1, 3, 2, 5, 4])
        #expect(try bench.shelf.highlights.map(\.isSuggested) == [true, false, false, false, false])
        for _ in 0..<2 { try world.send(SignalHighlight(.interacted, try bench.link(4), of: bench.bo)) }
        #expect(try bench.numbers == [4, 3, 2, 5, 1])
    }

    @Test("Being shown in detail counts twice")
    func detail() throws {
        for number in 1...2 {
            try bench.share(number, at: Double(number))
            world.now += 1
            try world.send(SignalHighlight(.viewed, try bench.link(number), of: bench.bo))
        }
        #expect(try bench.numbers.first == 2, "the later signal decides")
        try world.send(SignalHighlight(.shown, try bench.link(1), of: bench.bo, context: .detail))
        try world.send(SignalHighlight(.shown, try bench.link(2), of: bench.bo, context: .summary))
        #expect(try bench.numbers.first == 1)
    }

    @Test("A link that is shared again in a conversation is one item with the latest share")
    func again() throws {
        try bench.share(1, by: "Ana", at: 1, title: "Old")
        try bench.share(2, at: 2)
        try bench.share(1, by: "Bea", at: 3, title: "New")
        #expect(try bench.numbers == [1, 2])
        let item = try bench.first
        #expect(item.attributions.map(\.sharer.name) == ["Bea"])
        #expect(item.title == "New" && item.date == world.now + 3)
    }

    @Test("A share that arrives late changes nothing, not even a pin")
    func late() throws {
        try bench.share(1, by: "Ana", at: 10)
        let records = world.storage.records
        #expect(try bench.share(1, by: "Bea", at: 9, isPinned: true) == ChangeReceipt(sequence: nil, changed: 0))
        #expect(world.storage.records == records)
        #expect(try bench.share(1, by: "Cy", at: 10).changed == 1, "at the same moment, the last one counts")
        #expect(try bench.first.attributions.map(\.sharer.name) == ["Cy"])
    }

    @Test("A pin stays when the link is shared again, unless the share says otherwise")
    func pinStays() throws {
        try bench.share(1, at: 1, isPinned: true)
        try bench.share(1, at: 2)
        #expect(try bench.first.isPinned)
        try bench.share(1, at: 3, isPinned: false)
        #expect(try !bench.first.isPinned)
    }

    @Test("A link in several conversations is one item with an attribution for each, newest first")
    func conversations() throws {
        try bench.share(1, by: "Ana", in: "a", at: 1)
        try bench.share(1, by: "Bea", in: "b", at: 3)
        try bench.share(1, by: "Cy", in: "c", at: 2)
        #expect(try bench.shelf.count == 1)
        #expect(try bench.first.attributions.map(\.conversation.identifier) == ["b", "c", "a"])
        try world.send(PinHighlight(try bench.link(1), of: bench.bo, in: "c"))
        #expect(try bench.first.attributions.map(\.isPinned) == [false, true, false])
        #expect(try bench.first.isPinned)
        try world.send(PinHighlight(try bench.link(1), of: bench.bo))
        #expect(try bench.first.attributions.allSatisfy(\.isPinned))
        try world.send(PinHighlight(try bench.link(1), of: bench.bo, isPinned: false))
        #expect(try !bench.first.isPinned)
    }

    @Test("A group in which the person knows nobody does not count, a conversation of two does")
    func groups() throws {
        try bench.share(1, in: "g", isGroup: true, knows: false)
        try bench.share(2, in: "h", isGroup: true, knows: true)
        try bench.share(3, in: "d", isGroup: false, knows: false)
        #expect(try Set(bench.numbers) == [2, 3])
        let request = SignalHighlight(.viewed, try bench.link(1), of: bench.bo)
        #expect(world.code(of: request) == .unknownHighlight)
        try bench.share(1, in: "d", at: 5)
        let item = try bench.first
        #expect(item.attributions.map(\.conversation.identifier) == ["d"])
    }

    @Test("An item that was removed stays removed, whoever shares or pins it again")
    func hidden() throws {
        try bench.share(1, in: "a")
        try bench.share(2)
        try world.send(RemoveHighlight(try bench.link(1), of: bench.bo))
        #expect(try bench.numbers == [2])
        try bench.share(1, in: "b", at: 60, isPinned: true)
        _ = world.code(of: PinHighlight(try bench.link(1), of: bench.bo))
        #expect(try bench.numbers == [2])
        #expect(world.code(of: SignalHighlight(.viewed, try bench.link(1), of: bench.bo)) == .unknownHighlight)
        #expect(world.code(of: ReadAttribution(try bench.link(1), of: bench.bo)) == .unknownHighlight)
    }

    @Test("Removing an item again is harmless, and removing one that was never shared is unknown-highlight")
    func removeAgain() throws {
        try bench.share(1)
        #expect(try world.send(RemoveHighlight(try bench.link(1), of: bench.bo)).changed == 1)
        #expect(
            try world.send(RemoveHighlight(try bench.link(1), of: bench.bo))
                == ChangeReceipt(sequence: nil, changed: 0))
        #expect(world.code(of: RemoveHighlight(try bench.link(2), of: bench.bo)) == .unknownHighlight)
    }

    @Test("What one person does to a shelf changes nobody else's")
    func others() throws {
        let (cy, link) = (try account("cy"), try bench.link(1))
        let request = RecordShare(
            url: link, app: "app", sharer: Sharer(name: "Ana"), conversation: Conversation(identifier: "c"),
            recipients: [ShareRecipient(bench.bo), ShareRecipient(cy), ShareRecipient(bench.bo, knowsSomebody: false)])
        #expect(try world.topics(request) == [.shelf(bench.bo), .shelf(cy)])
        #expect(try world.send(request).changed == 2)
        let version = try world.send(ReadShelf(of: cy)).version
        try world.send(PinHighlight(link, of: bench.bo))
        try world.send(RemoveHighlight(link, of: bench.bo))
        try world.send(SetConsent(of: bench.bo, .everything, isAllowed: false))
        let shelf = try world.send(ReadShelf(of: cy))
        #expect(shelf.highlights.map(\.isPinned) == [false] && shelf.version == version)
        #expect(try bench.shelf.version == world.storage.sequence)
    }

    @Test("Pages begin at their offset and have the number of all items")
    func paging() throws {
        for number in 1...7 { try bench.share(number, at: Double(number)) }
        func page(_ limit: Int, _ offset: Int?) throws -> [Int] {
            let shelf = try world.send(ReadShelf(of: bench.bo, limit: limit, offset: offset))
            #expect(shelf.count == 7)
            return shelf.highlights.map { Int($0.url.lastPathComponent) ?? -1 }
        }
        #expect(try page(3, nil) == [7, 6, 5])
        #expect(try page(3, 3) == [4, 3, 2])
        #expect(try page(3, 6) == [1])
        #expect(try page(3, 7) == [])
        #expect(try page(3, .max) == [])
        #expect(try page(3, -2) == [7, 6, 5])
        #expect(world.code(of: ReadShelf(of: bench.bo, limit: 0)) == .malformedRequest)
        #expect(world.code(of: ReadShelf(of: bench.bo, limit: Limits.highlightsPerPageMax + 1)) == .limitExceeded)
    }

    @Test("Reading a shelf that is no newer than the caller's waits for a change of that shelf")
    func waiting() throws {
        try bench.share(1)
        let version = try bench.shelf.version
        func waits(_ after: UInt64?, _ milliseconds: Int?) throws -> Bool {
            let request = ReadShelf(of: bench.bo, after: after, waitMilliseconds: milliseconds)
            guard case .wait(let topics, let time, let shelf) = try world.decide(request) else { return false }
            #expect(topics == [.shelf(bench.bo)] && shelf.version == version)
            #expect(time == min(milliseconds ?? 0, Limits.followMillisecondsMax))
            return true
        }
        #expect(try waits(version, 100))
        #expect(try waits(version, 100_000))
        #expect(try !waits(version - 1, 100))
        #expect(try !waits(version, nil) && !waits(version, 0) && !waits(nil, 100))
        try world.send(SignalHighlight(.viewed, try bench.link(1), of: bench.bo))
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
            ({ $0.sharer.avatar = text(2048) }, nil), ({ $0.sharer.avatar = text(2049) }, .limitExceeded),
            ({ $0.conversation.name = text(513) }, .limitExceeded),
            ({ $0.recipients = tooMany }, .limitExceeded), ({ $0.recipients.removeAll() }, nil),
            ({ $0.conversation.identifier = "" }, .malformedRequest),
            ({ $0.conversation.identifier = text(129) }, .malformedRequest),
            ({ $0.app = "" }, .malformedRequest), ({ $0.app = "a\nb" }, .malformedRequest),
        ] {
            #expect(world.code(of: try request(change)) == code)
        }
    }

    @Test("A page of long items ends before its limit, and the pages together are the shelf")
    func longPages() throws {
        let picture = String(repeating: "p", count: Limits.linkBytesMax)
        for number in 0..<Limits.highlightsPerPageMax {
            for conversation in 0..<Limits.attributionsPerItemMax {
                try world.send(
                    RecordShare(
                        url: try bench.link(number), app: "app", sharer: Sharer(name: "Ana", avatar: picture),
                        conversation: Conversation(identifier: "c\(conversation)"), date: world.now + Double(number),
                        recipients: [ShareRecipient(bench.bo)]))
            }
        }
        var links: [URL] = []
        var pages = 0
        while true {
            let page = try world.send(ReadShelf(of: bench.bo, offset: links.count))
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
            #expect(item.attributions.first?.conversation.identifier == "d\(number)")
            #expect(item.attributions.count == min(number + 1, Limits.attributionsPerItemMax))
            let pin = PinHighlight(try bench.link(1), of: bench.bo, in: "d\(number)")
            #expect(try world.send(pin).receipt.changed == 1)
        }
    }
}

@Suite("Consent to what is shared")
struct ConsentTests {
    private let bench: Bench
    private var world: World { bench.world }

    init() throws {
        bench = try Bench()
    }

    private func set(_ level: ConsentLevel, _ isAllowed: Bool?) throws {
        try world.send(SetConsent(of: bench.bo, level, isAllowed: isAllowed))
    }

    @Test("A refusal of everything, an app or a conversation hides its items until it is allowed again")
    func levels() throws {
        try bench.share(1, in: "c1", app: "a1", at: 4)
        try bench.share(2, in: "c1", app: "a2", at: 3)
        try bench.share(3, in: "c2", app: "a1", at: 2)
        try bench.share(4, in: "c2", app: "a2", at: 1)
        #expect(try bench.numbers == [1, 2, 3, 4])
        for (level, left) in [
            (ConsentLevel.app("a1"), [2, 4]), (.conversation("c2"), [1, 2]), (.everything, []),
            (.app("x"), [1, 2, 3, 4]),
        ] {
            try set(level, false)
            #expect(try bench.numbers == left, "\(level)")
            try set(level, true)
            #expect(try bench.numbers == [1, 2, 3, 4])
            try set(level, false)
            try set(level, nil)
            #expect(try bench.numbers == [1, 2, 3, 4])
        }
    }

    @Test("An item shows when all three levels allow it: a refusal at one is not outweighed by the others")
    func allThree() throws {
        try bench.share(1, in: "c", app: "a")
        let levels: [ConsentLevel] = [.everything, .app("a"), .conversation("c")]
        for refused in levels.indices {
            for (index, level) in levels.enumerated() { try set(level, index != refused) }
            #expect(try bench.numbers == [])
        }
        for level in levels { try set(level, true) }
        #expect(try bench.numbers == [1])
    }

    @Test("Only the conversations that are allowed are attributed")
    func attributions() throws {
        try bench.share(1, in: "c1", at: 1)
        try bench.share(1, in: "c2", at: 2)
        try set(.conversation("c2"), false)
        let item = try bench.first
        #expect(item.attributions.map(\.conversation.identifier) == ["c1"])
        #expect(item.date == world.now + 1)
    }

    @Test("A pin is consent, at every level")
    func pins() throws {
        try bench.share(1, in: "c", app: "a")
        try bench.share(2, in: "c", app: "a", at: 1)
        try world.send(PinHighlight(try bench.link(1), of: bench.bo))
        for level in [ConsentLevel.everything, .app("a"), .conversation("c")] {
            try set(level, false)
            #expect(try bench.numbers == [1])
        }
        try world.send(PinHighlight(try bench.link(2), of: bench.bo))
        #expect(try bench.numbers == [2, 1], "also of what did not show")
        try world.send(PinHighlight(try bench.link(1), of: bench.bo, isPinned: false))
        #expect(try bench.numbers == [2])
    }

    @Test("Consent can be read, and setting it again changes nothing")
    func reading() throws {
        #expect(try world.send(ReadConsent(of: bench.bo)) == Consent())
        try set(.app("a"), false)
        try set(.conversation("c"), true)
        try set(.everything, true)
        let consent = try world.send(ReadConsent(of: bench.bo))
        #expect(consent.everything == true && consent.apps == ["a": false] && consent.conversations == ["c": true])
        #expect(consent.allows(app: "b", conversation: "c") && !consent.allows(app: "a", conversation: "c"))
        let again = SetConsent(of: bench.bo, .app("a"), isAllowed: false)
        #expect(try world.send(again) == ChangeReceipt(sequence: nil, changed: 0))
        for level in [ConsentLevel.app("a"), .conversation("c"), .everything] { try set(level, nil) }
        #expect(try world.send(ReadConsent(of: bench.bo)) == Consent())
        for level in [ConsentLevel.app(""), .conversation("a\u{1}")] {
            #expect(world.code(of: SetConsent(of: bench.bo, level, isAllowed: true)) == .malformedRequest)
        }
    }

    @Test("Automatic sharing is offered when a pinned item would not show by itself, or consent was never set")
    func offers() throws {
        try bench.share(1, in: "c", app: "a")
        func offers(isPinned: Bool = true) throws -> Bool {
            try world.send(PinHighlight(try bench.link(1), of: bench.bo, isPinned: isPinned)).offersAutomaticSharing
        }
        #expect(try offers(), "nothing was said")
        #expect(try !offers(isPinned: false))
        try set(.everything, true)
        #expect(try !offers(), "it shows by itself")
        #expect(try !offers())
        for level in [ConsentLevel.app("a"), .conversation("c"), .everything] {
            try set(level, false)
            #expect(try offers(), "\(level)")
            #expect(try !offers(isPinned: false))
            try set(level, true)
        }
        try set(.app("b"), false)
        #expect(try !offers(), "another app does not matter")
    }

    @Test("Only what was shared with the person can be pinned")
    func unknownPins() throws {
        try bench.share(1, in: "c")
        #expect(world.code(of: PinHighlight(try bench.link(2), of: bench.bo)) == .unknownHighlight)
        #expect(world.code(of: PinHighlight(try bench.link(1), of: bench.bo, in: "d")) == .unknownHighlight)
        #expect(world.code(of: PinHighlight(try bench.link(1), of: try account("cy"))) == .unknownHighlight)
        let first = try world.send(PinHighlight(try bench.link(1), of: bench.bo, in: "c"))
        #expect(first.receipt.changed == 1)
        let second = try world.send(PinHighlight(try bench.link(1), of: bench.bo, in: "c"))
        #expect(second.receipt == ChangeReceipt(sequence: nil, changed: 0))
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
        #expect(details.attributions.map(\.sharer.name) == ["Bea", "Ana"])
        #expect(details.menu.map(\.title) == ["Reply to Team", "Reply to Ana", "Remove"])
        #expect(details.menu.map(\.kind) == [.reply, .reply, .remove])
        #expect(details.menu.map(\.conversation) == ["b", "a", nil])
    }

    @Test("The title for removing must contain the word, in whatever case")
    func removeTitle() throws {
        try bench.share(1)
        for title in ["Remove from Decks", "remove", "Please REMOVE it"] {
            #expect(try bench.attribution(1, removeTitle: title).menu.last?.title == title)
        }
        for title in ["", "Hide", "Re move", "Delete"] {
            let error = world.error(of: ReadAttribution(try bench.link(1), of: bench.bo, removeTitle: title))
            #expect(error?.code == .malformedRequest && error?.reason.contains("Remove") == true)
        }
        let long = "Remove " + String(repeating: "a", count: Limits.textBytesMax)
        #expect(
            world.code(of: ReadAttribution(try bench.link(1), of: bench.bo, removeTitle: long)) == .limitExceeded)
    }

    @Test("What is not on the shelf has no attribution")
    func unknown() throws {
        try bench.share(1)
        #expect(world.code(of: ReadAttribution(try bench.link(2), of: bench.bo)) == .unknownHighlight)
        try world.send(SetConsent(of: bench.bo, .everything, isAllowed: false))
        #expect(world.code(of: ReadAttribution(try bench.link(1), of: bench.bo)) == .unknownHighlight)
        try world.send(PinHighlight(try bench.link(1), of: bench.bo))
        #expect(try bench.attribution(1).isPinned)
    }
}
