/// What a change did.
public struct ChangeReceipt: Hashable, Codable, Sendable {
    /// The change's place in the change log; `nil` when there was nothing to change.
    public let sequence: UInt64?
    /// How many participants, notices, items or settings were changed.
    public let changed: Int

    package init(sequence: UInt64?, changed: Int) {
        self.sequence = sequence
        self.changed = changed
    }
}
