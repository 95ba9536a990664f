import Collaboration
import Core
import Foundation
import TestSupport
import Testing

@Suite("Links of collaborations that end leave shelves")
struct ShelfEndingTests {
    private let world = World()
    private let bo: Account
    private let deck: CollaborationIdentifier
    private let deckLink: URL

    init() throws {
        bo = try account("bo")
        deck = try world.start(options: .deck)
        deckLink = try #require(try world.send(FindHighlight(deck)).url)
        try world.send(SetConsent(of: bo, .everything, isAllowed: true))
    }

    private func request(_ link: URL, with people: [Account]? = nil) -> RecordShare {
        world.now += 1
        return RecordShare(
            url: link, app: "app", sharer: Sharer(name: "Ana"), conversation: Conversation(identifier: "c"),
            recipients: (people ?? [bo]).map { ShareRecipient($0) })
    }

    @Test("An item whose collaboration ended is not listed, not counted, and unknown", arguments: [true, false])
    func ended(isStopped: Bool) throws {
        try world.send(request(try url("https://decks.example/1")))
        try world.send(request(deckLink))
        try world.send(PinHighlight(deckLink, of: bo, for: .everyApp))
        #expect(try world.send(ReadShelf(of: bo, for: .everyApp)).count == 2)
        if isStopped {
            try world.send(StopSharing(deck))
        } else {
            try world.send(AbandonCollaboration(owner: try account("ana"), localIdentifier: .init(rawValue: "deck")))
        }
        let shelf = try world.send(ReadShelf(of: bo, for: .everyApp))
        #expect(shelf.highlights.map(\.url.lastPathComponent) == ["1"] && shelf.count == 1)
        let requests: [any RuledRequest] = [
            ReadAttribution(deckLink, of: bo, for: .everyApp), PinHighlight(deckLink, of: bo, for: .everyApp),
            SignalHighlight(.viewed, deckLink, of: bo, for: .everyApp),
            PinHighlight(deckLink, of: bo, for: .app("app"), isPinned: false),
        ]
        for request in requests { #expect(world.code(of: request) == .unknownHighlight, "\(request)") }
        #expect(world.code(of: request(deckLink)) == .unknownCollaboration, "sharing it would show nothing")
        #expect(world.code(of: PinHighlight(deckLink, of: bo, for: .everyApp, isPinned: false)) == nil)
        #expect(world.code(of: RemoveHighlight(deckLink, of: bo, for: .everyApp)) == nil)
    }

    @Test("The end of a collaboration is a new version of the shelves that have its link, and of no others")
    func versions() throws {
        let cy = try account("cy")
        try world.send(request(deckLink))
        try world.send(request(try url("https://decks.example/1"), with: [cy]))
        let before = try [bo, cy].map { try world.send(ReadShelf(of: $0, for: .everyApp)).version }
        #expect(try world.topics(StopSharing(deck)).contains(.shelf(bo)))
        #expect(try !world.topics(StopSharing(deck)).contains(.shelf(cy)))
        try world.send(StopSharing(deck))
        let after = try [bo, cy].map { try world.send(ReadShelf(of: $0, for: .everyApp)).version }
        #expect(after[0] > before[0] && after[1] == before[1])
    }

    @Test("Sharing ends when the storage is full, also when the link is on a shelf")
    func fullStorage() throws {
        try world.send(request(deckLink))
        #expect(try world.edit(StopSharing(deck))?.needsSpace == false)
        let abandon = AbandonCollaboration(owner: try account("ana"), localIdentifier: .init(rawValue: "deck"))
        #expect(try world.edit(abandon)?.needsSpace == false)
        // And so is consent taken back, with and without a share.
        #expect(try world.edit(SetConsent(of: bo, .everything, isAllowed: false))?.needsSpace == false)
        let cy = try account("cy")
        try world.send(SetConsent(of: cy, .everything, isAllowed: true))
        #expect(try world.edit(SetConsent(of: cy, .everything, isAllowed: false))?.needsSpace == false)
    }

    @Test("A link that people take for the collaboration's leaves the shelf with it, however it is written")
    func spellings() throws {
        let path = "c/\(deck)"
        let spellings = [
            "http://decks.example/\(path)", "https://me@decks.example/\(path)/page", "https://decks.example./\(path)",
            "https://decks.example//c///\(deck)", "http://decks.example:443/\(path)",
            "https://decks.example:80/\(path)",
        ]
        let others = [
            "https://decks.example:444/\(path)", "https://decks.example/C/\(deck)", "https://decks.example../\(path)",
        ]
        for spelling in spellings {
            let link = try url(spelling)
            #expect(world.code(of: FindHighlight(url: link)) == .unknownCollaboration, "\(link) leads somewhere")
            try world.send(request(link))
        }
        for other in others { try world.send(request(try url(other))) }
        try world.send(StopSharing(deck))
        let left = try world.send(ReadShelf(of: bo, for: .everyApp)).highlights.map(\.url.absoluteString)
        #expect(Set(left) == Set(others))
        for spelling in spellings {
            #expect(world.code(of: request(try url(spelling))) == .unknownCollaboration, "\(spelling)")
        }
    }

    @Test("A share at the moment of the end is decided again")
    func race() throws {
        let edit = try world.edit(request(deckLink))
        try world.send(StopSharing(deck))
        #expect(try world.isStale(edit))
    }

    @Test("A link to a collaboration that was never started can't be shared")
    func neverStarted() throws {
        #expect(world.code(of: request(try url("https://decks.example/c/nothing"))) == .unknownCollaboration)
    }
}
