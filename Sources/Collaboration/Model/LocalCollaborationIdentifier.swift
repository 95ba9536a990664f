/// Names shared content on the device that shares it, before it has an identifier that all devices know.
/// Apple: `SWLocalCollaborationIdentifier`.
public struct LocalCollaborationIdentifier: RawRepresentable, Hashable, Sendable, Codable {
    /// 1 to 128 bytes of UTF-8 without control characters. The service refuses a request with any other identifier.
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }
}
