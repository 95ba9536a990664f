import Core
import Foundation

extension RecordReader where Self: ~Copyable {
    /// Appends an item with its latest attributions as a JSON object; the item has a share that counts.
    func append(
        _ item: UInt128, of account: Account, _ refusals: Refusals, isSuggested: Bool, to json: inout [UInt8]
    ) throws(ServiceError) {
        let heads = try countingHeads(of: withUnsafeBytes(of: item) { Array($0) }, account, refusals)
        var shares: [ShareText] = []
        for (key, head) in heads.prefix(Limits.attributionsPerItemMax) {
            guard let record = try record(key) else { continue }
            shares.append(try ShareText(record, head))
        }
        guard let newest = shares.first else {
            throw ServiceError(.storageDamaged, "an item of a shelf has no share")
        }
        json.append(UInt8(ascii: "{"))
        json += newest.item
        json += Array(#","attributions":["#.utf8)
        for (place, share) in shares.enumerated() {
            if place > 0 { json.append(UInt8(ascii: ",")) }
            json.append(UInt8(ascii: "{"))
            json += share.attribution
            json += Array(#","isPinned":\#(share.head.isPinned)}"#.utf8)
        }
        let isPinned = heads.contains { $0.head.isPinned }
        json += Array(
            #"],"date":\#(newest.head.milliseconds),"isPinned":\#(isPinned),"isSuggested":\#(isSuggested)}"#.utf8)
    }

    /// The keys and heads of the item's shares that count for the account, newest first.
    private func countingHeads(
        of item: [UInt8], _ account: Account, _ refusals: Refusals
    ) throws(ServiceError) -> [(key: [UInt8], head: ShareHead)] {
        try shareHeads(of: item, account) { head, conversation in
            head.counts && (head.isPinned || refusals.allows(app: head.app, conversation: conversation))
        }
    }

    /// The keys and heads of the item's shares that `isWanted` accepts, newest first, at most
    /// `conversationsPerItemMax`.
    func shareHeads(
        of item: [UInt8], _ account: Account, where isWanted: (_ head: ShareHead, _ conversation: UInt64) -> Bool
    ) throws(ServiceError) -> [(key: [UInt8], head: ShareHead)] {
        var found: [(key: [UInt8], head: ShareHead)] = []
        try visitRecords(in: ShelfKeys(account).all(item)) { key, value in
            let conversation = shortNumber(key.suffix(8))
            if conversation != 0, let head = ShareHead(value), isWanted(head, conversation) {
                found.append((Array(key), head))
            }
            return true
        }
        // Equal times are ordered by the key, so that the order is always the same.
        found.sort { a, b in
            if a.head.milliseconds != b.head.milliseconds { return a.head.milliseconds > b.head.milliseconds }
            return b.key.lexicographicallyPrecedes(a.key)
        }
        return Array(found.prefix(Limits.conversationsPerItemMax))
    }

    /// The shares of an item that count for the account, newest first.
    private func shares(
        of item: [UInt8], _ account: Account, _ refusals: Refusals
    ) throws(ServiceError) -> [Attribution] {
        var attributions: [Attribution] = []
        for (key, head) in try countingHeads(of: item, account, refusals) {
            guard let record = try record(key) else { continue }
            attributions.append(try ShareText(record, head).decoded())
        }
        return attributions
    }

    /// Whether the account has removed the item.
    func isHidden(_ item: [UInt8], from account: Account) throws(ServiceError) -> Bool {
        try record(ShelfKeys(account).signals(item))?.value.withRawBytes { Signals($0) }?.isHidden ?? false
    }

    /// The shares of a link that count for the account, newest first.
    ///
    /// Throws `unknownHighlight` when there is none.
    func shares(
        of url: URL, _ account: Account, _ context: RuleContext
    ) throws(ServiceError) -> [Attribution] {
        let item = ShelfKeys.item(url, context)
        let unknown = ServiceError(.unknownHighlight, "\(url.absoluteString) is not on the shelf of \(account)")
        guard try !isHidden(item, from: account) else { throw unknown }
        let consent = try load(Consent.self, at: RecordKeys.consent(account))?.value ?? Consent()
        let shares = try shares(of: item, account, Refusals(consent, context))
        guard !shares.isEmpty else { throw unknown }
        return shares
    }
}
