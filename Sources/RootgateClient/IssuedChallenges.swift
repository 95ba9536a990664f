/// Challenges and how long each is valid from when it was issued.
public struct IssuedChallenges: Hashable, Sendable {
    /// What devices sign, byte by byte.
    public let challenges: [[UInt8]]
    /// How long each challenge is valid from when it was issued, in milliseconds.
    public let validMilliseconds: UInt64
}
