import Core
import Foundation

extension RecordReader where Self: ~Copyable {
    /// Whether the collaboration was started and has not ended.
    func isStarted(_ collaboration: CollaborationIdentifier) throws(ServiceError) -> Bool {
        try record(RecordKeys.defaultPermission(collaboration)) != nil
    }

    /// Appends an item with its latest attributions as a JSON object; the item has a share that is shown.
    func append(
        _ item: UInt128, _ view: ShelfView, isSuggested: Bool, to json: inout [UInt8]
    ) throws(ServiceError) {
        let heads = try shareHeads(of: withUnsafeBytes(of: item) { Array($0) }, view.account) { head, conversation in
            view.shows(head, in: conversation)
        }
        let shares = try shares(at: heads.prefix(Limits.attributionsPerItemMax).map(\.key))
        guard let newest = shares.first else {
            throw ServiceError(.storageDamaged, "an item of a shelf has no share")
        }
        json.append(UInt8(ascii: "{"))
        json += newest.item
        json += Array(#","attributions":["#.utf8)
        for (place, share) in shares.enumerated() {
            if place > 0 { json.append(UInt8(ascii: ",")) }
            share.appendAttribution(for: view.scope, to: &json)
        }
        let isPinned = heads.contains { $0.head.isPinned }
        json += Array(
            #"],"date":\#(newest.head.milliseconds),"isPinned":\#(isPinned),"isSuggested":\#(isSuggested)}"#.utf8)
    }

    private func shares(at keys: [[UInt8]]) throws(ServiceError) -> [StoredShare] {
        var shares: [StoredShare] = []
        for key in keys {
            if let record = try record(key) { shares.append(try record.share()) }
        }
        return shares
    }

    /// The keys and heads of the item's shares that `isWanted` accepts, newest first, at most
    /// `conversationsPerItemMax`.
    ///
    /// `isRemoval`: what is asked for only takes something away. Then shares that can't be read are left out, unless
    /// nothing else is found.
    ///
    /// Throws `storageDamaged` when a share can't be read.
    func shareHeads(
        of item: [UInt8], _ account: Account, isRemoval: Bool = false,
        where isWanted: (_ head: ShareHead, _ conversation: UInt64) -> Bool
    ) throws(ServiceError) -> [(key: [UInt8], head: ShareHead)] {
        var found: [(key: [UInt8], head: ShareHead)] = []
        var isDamaged = false
        try visitRecords(in: ShelfKeys(account).all(item)) { key, value in
            let conversation = shortNumber(key.suffix(8))
            guard conversation != 0 else { return true }
            guard let head = ShareHead(value) else {
                isDamaged = true
                return isRemoval
            }
            if isWanted(head, conversation) { found.append((Array(key), head)) }
            return true
        }
        guard !isDamaged || isRemoval && !found.isEmpty else {
            throw ServiceError(.storageDamaged, "the record of a share is damaged")
        }
        // Equal times are ordered by the key, so that the order is always the same.
        found.sort { a, b in
            if a.head.milliseconds != b.head.milliseconds { return a.head.milliseconds > b.head.milliseconds }
            return b.key.lexicographicallyPrecedes(a.key)
        }
        return Array(found.prefix(Limits.conversationsPerItemMax))
    }

    /// What the account did with the item; `nil`: nothing.
    ///
    /// `isRemoval`: what is asked for only takes something away. Then a record that can't be read says nothing.
    ///
    /// Throws `storageDamaged` when the record can't be read.
    func signals(
        of item: [UInt8], _ account: Account, isRemoval: Bool = false
    ) throws(ServiceError) -> Loaded<Signals>? {
        guard let record = try record(ShelfKeys(account).signals(item)) else { return nil }
        if let signals = record.value.withRawBytes({ Signals($0) }) {
            return Loaded(value: signals, version: record.version)
        }
        guard isRemoval else {
            throw ServiceError(.storageDamaged, "the record of what a person did with an item is damaged")
        }
        return Loaded(value: Signals(), version: record.version)
    }

    /// Whether the account has removed the item. `isRemoval`, and what it throws: as `signals`.
    func isHidden(
        _ item: [UInt8], from account: Account, isRemoval: Bool = false
    ) throws(ServiceError) -> Bool {
        try signals(of: item, account, isRemoval: isRemoval)?.value.isHidden ?? false
    }

    /// The shares of a link that are on the shelf for the caller, newest first. `isRemoval`: as above.
    ///
    /// Throws `unknownHighlight` when there is none, and `storageDamaged` when a record can't be read.
    func shares(
        of url: URL, _ view: ShelfView, _ context: RuleContext, isRemoval: Bool = false
    ) throws(ServiceError) -> [StoredShare] {
        let item = ShelfKeys.item(url, context)
        guard try !isHidden(item, from: view.account, isRemoval: isRemoval) else { throw view.unknown(url) }
        let heads = try shareHeads(of: item, view.account, isRemoval: isRemoval) { head, conversation in
            view.shows(head, in: conversation)
        }
        let shares = try shares(at: heads.map(\.key))
        guard !shares.isEmpty, try !hasEnded(shares) else { throw view.unknown(url) }
        return shares
    }

    /// Whether the shares of a link lead to a collaboration of this service that has ended.
    func hasEnded(_ shares: [StoredShare]) throws(ServiceError) -> Bool {
        guard let collaboration = shares.compactMap(\.collaboration).first else { return false }
        return try !isStarted(collaboration)
    }
}
