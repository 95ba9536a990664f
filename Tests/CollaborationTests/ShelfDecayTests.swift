@testable import Collaboration
import Core
import Foundation
import TestSupport
import Testing

@Suite("Signals lose weight with time")
struct ShelfDecayTests {
    private let world = World()
    private let bo: Account
    private let week = 7.0 * 86_400

    init() throws {
        bo = try account("bo")
        try world.send(SetConsent(of: bo, .everything, isAllowed: true))
    }

    private func link(_ number: Int) throws -> URL { try url("https://decks.example/\(number)") }

    private func share(_ number: Int) throws {
        try world.send(
            RecordShare(
                url: try link(number), app: "app", sharer: Sharer(name: "Ana"),
                conversation: Conversation(identifier: "c"), date: world.now + Double(number),
                recipients: [ShareRecipient(bo)]))
    }

    private func signal(_ signal: HighlightSignal, _ number: Int, _ context: DisplayContext? = nil) throws {
        try world.send(SignalHighlight(signal, try link(number), of: bo, for: .everyApp, context: context))
    }

    private var suggested: Int? {
        get throws {
            let first = try world.send(ReadShelf(of: bo, for: .everyApp)).highlights.first { $0.isSuggested }
            return first.flatMap { Int($0.url.lastPathComponent) }
        }
    }

    @Test("A weight is halved by each half-life, and falls evenly in between")
    func weights() {
        let day: UInt64 = 24 * 3600 * 1000
        let shared: UInt64 = 1_000_000_000_000
        var signals = Signals()
        signals.note(.interacted, nil, at: shared)
        func score(_ days: Double, isPinned: Bool = false) -> UInt64 {
            signals.score(isPinned: isPinned, shared: shared, now: shared + UInt64(days * Double(day)))
        }
        #expect(score(0) == 4 * 65_536)
        #expect(score(3.5) == 3 * 65_536)
        #expect(score(7) == 2 * 65_536)
        #expect(score(10.5) == 3 * 32_768)
        #expect(score(14) == 65_536)
        #expect(score(14, isPinned: true) == 4 * 65_536)
        #expect(signals.score(isPinned: true, shared: shared, now: shared + 14 * day + 20_000) == 0, "less than 1")
        #expect(score(100_000, isPinned: true) == 0)
        signals.note(.shown, .detail, at: shared + 7 * day)
        #expect(score(7) == 4 * 65_536, "two are left of the interaction")
        for _ in 0..<9 { signals.note(.shown, .detail, at: shared + 7 * day) }
        #expect(score(7) == 6 * 65_536, "being shown adds at most 4")
        signals.note(.viewed, nil, at: shared + 6 * day)
        #expect(score(7) == 8 * 65_536, "a clock that went back takes nothing")
        #expect(signals.bytes.withRawBytes { Signals($0)?.bytes } == signals.bytes)
    }

    @Test("Any number of signals at once stays within its field")
    func manySignals() {
        var signals = Signals()
        for _ in 0..<40_000 { signals.note(.interacted, nil, at: 1) }
        #expect(signals.interest == 1 << 32)
        #expect(signals.score(isPinned: true, shared: 1, now: UInt64(9e15)) == 0)
        #expect(signals.score(isPinned: true, shared: .max, now: 1) == (1 << 32) + 3 * 65_536)
    }

    @Test("What was used lately is suggested before what was used more, but long ago")
    func lately() throws {
        for number in 1...2 { try share(number) }
        for _ in 0..<3 { try signal(.interacted, 1) }
        world.now += 2 * week
        try signal(.viewed, 2)
        #expect(try suggested == 1, "3 are left of 12, against 2")
        world.now += 60
        try signal(.interacted, 2)
        #expect(try suggested == 2)
    }

    @Test("An item is suggested no longer when nobody cared for it in weeks")
    func forgotten() throws {
        try share(1)
        try signal(.viewed, 1)
        world.now += week - 1
        #expect(try suggested == 1)
        world.now += 30
        #expect(try suggested == nil, "less than half of a view is left")
        try signal(.shown, 1, .detail)
        #expect(try suggested == nil, "being shown is not being wanted")
        try signal(.viewed, 1)
        #expect(try suggested == 1)
    }

    @Test("An item that was shared a month ago is suggested only after a signal of this week")
    func stale() throws {
        try share(1)
        world.now += 20 * 86_400
        for _ in 0..<20 { try signal(.interacted, 1) }
        world.now += 10 * 86_400 - 10
        #expect(try suggested == 1, "the share is not a month old")
        world.now += 20
        #expect(try suggested == nil)
        try signal(.viewed, 1)
        #expect(try suggested == 1)
        world.now += week + 1
        #expect(try suggested == nil)
        try share(1)
        #expect(try suggested == 1, "shared again")
    }
}
