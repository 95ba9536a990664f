import Core
import Foundation

// The records of a shelf, under `h account 0`:
//
//     item (16) 0000000000000000     what the person did with the item: hidden (1), zero (3), views (4),
//                                    interactions (4), shown (4), last of them in milliseconds (8)
//     item (16) conversation (8)     the latest share in a conversation: time in milliseconds (8), flags (1: 1 pinned,
//                                    2 group, 4 knows somebody), zero (7), app (8), then the share as JSON members:
//                                    length (2) and those of the item, those of the attribution
//
// Item, conversation and app are the first bytes of the SHA-256 of the link, the conversation's identifier and the
// app's. Numbers are little-endian. Ranking a shelf reads the packed bytes only; a page joins the stored JSON members.

/// What a person did with an item.
struct Signals {
    static let byteCount = 24
    var isHidden = false
    var views: UInt32 = 0
    var interactions: UInt32 = 0
    var shown: UInt32 = 0
    var lastMilliseconds: UInt64 = 0

    init() {}

    init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard let hidden = reader.byte(), reader.bytes(3) != nil, let views: UInt32 = reader.integer(),
            let interactions: UInt32 = reader.integer(), let shown: UInt32 = reader.integer(),
            let last: UInt64 = reader.integer()
        else { return nil }
        isHidden = hidden == 1
        (self.views, self.interactions, self.shown, lastMilliseconds) = (views, interactions, shown, last)
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = [isHidden ? 1 : 0, 0, 0, 0]
        for count in [views, interactions, shown] { bytes.appendInteger(count) }
        bytes.appendInteger(lastMilliseconds)
        precondition(bytes.count == Signals.byteCount, "signals are not as long as their layout")
        return bytes
    }

    /// The score by which the suggested item is chosen. Interactions weigh most. Being shown counts at most 4, and the
    /// score is 0 without a view or an interaction.
    func score(isPinned: Bool) -> UInt64 {
        guard views > 0 || interactions > 0 else { return 0 }
        return 4 * UInt64(interactions) + 2 * UInt64(views) + UInt64(min(shown, 4)) + (isPinned ? 3 : 0)
    }
}
