/// The service's description of itself.
public struct ServiceDescription: Sendable {
    /// The version of the protocol that is spoken.
    public let version: UInt8
    /// The name of the service's software.
    public let software: String
    /// Limits by their numbers, as PROTOCOL.md lists them.
    public let limits: [UInt16: UInt64]
}
