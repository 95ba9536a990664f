/// How a signature is encoded. A request names the format, because 64 bytes can be either.
public enum SignatureFormat: UInt8, CaseIterable, Sendable {
    /// Strict DER `ECDSA-Sig-Value` (SEC 1, C.5).
    case der = 1
    /// r then s, 32 big-endian bytes each.
    case raw = 2

    /// The stable name in text.
    public var name: String {
        switch self {
        case .der: "der"
        case .raw: "raw"
        }
    }

    public init?(name: some StringProtocol) {
        guard let format = SignatureFormat.allCases.first(where: { $0.name == name }) else { return nil }
        self = format
    }
}
