/// What a change of the participants did.
public struct MembershipReceipt: Hashable, Codable, Sendable {
    /// The change's place in the change log; `nil` when there was nothing to change.
    public let sequence: UInt64?
    /// How many people joined and left by this request; 0 in the answer to a repetition.
    public let changed: Int
    /// Those of the named people who take no part now and took part once, with their accounts.
    public let removed: [RemovedParticipant]
}
