/// A number on the wire with a name in texts. Both are stable and listed in PROTOCOL.md. The name is that of the case,
/// its words in lower case and joined by hyphens.
///
/// A conforming type must not be `CustomStringConvertible`: the case's name is its description.
public protocol StableCode: RawRepresentable, CaseIterable, Hashable, Sendable where RawValue: UnsignedInteger {
    /// The names of all codes of this type, which are made once.
    static var names: StableNames<Self> { get }
}

extension StableCode {
    /// The stable name: lower-case words joined by hyphens.
    public var name: String { Self.names.name(of: self) }

    /// The code with that stable name; `nil` if there is none.
    public init?(name: some StringProtocol) {
        guard let code = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = code
    }
}

extension StableCode where RawValue == UInt8 {
    /// Whether the code refuses what it answers: values below 16 accept, values from 16 refuse.
    @inlinable public var isRefusal: Bool { rawValue >= 16 }
}
