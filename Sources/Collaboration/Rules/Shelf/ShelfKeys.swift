import Core
import Foundation

/// The keys and fingerprints of an account's shelf.
struct ShelfKeys {
    /// Bytes of an item's fingerprint, and of a conversation's or an app's.
    static let itemBytes = 16
    static let conversationBytes = 8

    let prefix: [UInt8]

    init(_ account: Account) {
        prefix = RecordKeys.items(account)
    }

    static func item(_ url: URL, _ context: RuleContext) -> [UInt8] {
        context.fingerprint(WebLink(url)?.text ?? url.absoluteString, count: itemBytes)
    }

    static func short(_ text: String, _ context: RuleContext) -> [UInt8] {
        context.fingerprint(text, count: conversationBytes)
    }

    /// The key of the signals, which has zeros in place of a conversation.
    func signals(_ item: [UInt8]) -> [UInt8] {
        share(item, [UInt8](repeating: 0, count: ShelfKeys.conversationBytes))
    }

    /// The place of the latest share in a conversation.
    func share(_ item: [UInt8], _ conversation: [UInt8]) -> [UInt8] {
        precondition(item.count == ShelfKeys.itemBytes, "an item is named by 16 bytes")
        precondition(conversation.count == ShelfKeys.conversationBytes, "a conversation is named by 8 bytes")
        return prefix + item + conversation
    }

    /// Signals and shares of an item.
    func all(_ item: [UInt8]) -> RecordRange {
        precondition(item.count == ShelfKeys.itemBytes, "an item is named by 16 bytes")
        return RecordRange(
            prefix + item, prefix + item + [UInt8](repeating: 0xff, count: ShelfKeys.conversationBytes + 1))
    }
}

func shortNumber(_ bytes: some Collection<UInt8>) -> UInt64 {
    assert(bytes.count == ShelfKeys.conversationBytes, "a conversation or an app is named by 8 bytes")
    var number: UInt64 = 0
    withUnsafeMutableBytes(of: &number) { $0.copyBytes(from: bytes.prefix(8)) }
    return number
}

extension RuleContext {
    func milliseconds(of date: Date) -> UInt64 {
        UInt64(max(0, min((date.timeIntervalSince1970 * 1000).rounded(), 9e15)))
    }
}
