import Core
import Foundation

// The records of a shelf, under `h account 0`:
//
//     item (16) 0000000000000000     what the person did with the item: hidden (1), zero (3), shown (4), interest (8),
//                                    last signal (8), last view or interaction (8)
//     item (16) conversation (8)     the latest share in a conversation: time (8), flags (1: 1 pinned, 2 group, 4 knows
//                                    somebody, 8 thumbnail, 16 collaboration), zero (7), app (8); then what ranking
//                                    does not read: handle (16), the thumbnail's hash (32, with flag 8), the
//                                    collaboration (1 for its length, its name, with flag 16), and the share as JSON
//                                    members: length (2) and those of the item, those of the people
//
// Item, conversation and app are the first bytes of the SHA-256 of the link, the conversation's identifier and the
// app's. Numbers are little-endian, times are in milliseconds, and shown and interest in 65,536ths. Ranking a shelf
// reads the packed bytes only; a page joins the stored JSON members.

/// What a person did with an item. Interest and being shown lose weight with time.
struct Signals {
    static let byteCount = 32
    /// The weight of 1.
    static let unit: UInt64 = 65_536
    /// After this time half of a weight is left.
    static let halfLifeMilliseconds: UInt64 = 7 * 24 * 3600 * 1000
    /// An item that was not shared for so long is suggested only after a view or an interaction within one half-life.
    static let staleMilliseconds: UInt64 = 30 * 24 * 3600 * 1000
    /// Being shown adds at most 4.
    private static let shownMax = 4 * unit
    /// Enough for 16,384 interactions at once. Half-life and weight multiply to less than 2^63.
    private static let interestMax: UInt64 = 1 << 32

    var isHidden = false
    private(set) var shown: UInt64 = 0
    private(set) var interest: UInt64 = 0
    private(set) var lastMilliseconds: UInt64 = 0
    private(set) var freshMilliseconds: UInt64 = 0

    init() {}

    init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard let hidden = reader.byte(), reader.bytes(3) != nil, let shown: UInt32 = reader.integer(),
            let interest: UInt64 = reader.integer(), let last: UInt64 = reader.integer(),
            let fresh: UInt64 = reader.integer(), hidden <= 1, shown <= Signals.shownMax,
            interest <= Signals.interestMax
        else { return nil }
        isHidden = hidden == 1
        (self.shown, self.interest) = (UInt64(shown), interest)
        (lastMilliseconds, freshMilliseconds) = (last, fresh)
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = [isHidden ? 1 : 0, 0, 0, 0]
        bytes.appendInteger(UInt32(shown))
        for number in [interest, lastMilliseconds, freshMilliseconds] { bytes.appendInteger(number) }
        precondition(bytes.count == Signals.byteCount, "signals are not as long as their layout")
        return bytes
    }

    /// What is left of a weight after a time. It halves with each half-life and falls linearly in between.
    private static func left(of weight: UInt64, after milliseconds: UInt64) -> UInt64 {
        let halvings = milliseconds / halfLifeMilliseconds
        guard halvings < 64 else { return 0 }
        let weight = weight >> halvings
        return weight - weight * (milliseconds % halfLifeMilliseconds) / (2 * halfLifeMilliseconds)
    }

    /// Takes up a signal: what there is first loses weight until now.
    mutating func note(_ signal: HighlightSignal, _ context: DisplayContext?, at now: UInt64) {
        let age = now - min(now, lastMilliseconds)
        shown = Signals.left(of: shown, after: age)
        interest = Signals.left(of: interest, after: age)
        lastMilliseconds = max(now, lastMilliseconds)
        switch signal {
        case .viewed: interest += 2 * Signals.unit
        case .interacted: interest += 4 * Signals.unit
        case .shown: shown = min(Signals.shownMax, shown + (context == .detail ? 2 : 1) * Signals.unit)
        }
        interest = min(interest, Signals.interestMax)
        if signal != .shown { freshMilliseconds = max(now, freshMilliseconds) }
    }

    /// The score by which the suggested item is chosen, in 65,536ths: what is left of views (2 each) and interactions
    /// (4 each), of being shown, and 3 for a pin. It is 0 when less than 1 is left of views and interactions, and for
    /// an item whose newest share is old and that was not viewed or used lately.
    func score(isPinned: Bool, shared: UInt64, now: UInt64) -> UInt64 {
        guard interest >= Signals.unit else { return 0 }
        let age = now - min(now, lastMilliseconds)
        let left = Signals.left(of: interest, after: age)
        guard left >= Signals.unit else { return 0 }
        if now > shared, now - shared > Signals.staleMilliseconds {
            guard now - min(now, freshMilliseconds) <= Signals.halfLifeMilliseconds else { return 0 }
        }
        return left + Signals.left(of: shown, after: age) + (isPinned ? 3 * Signals.unit : 0)
    }
}
