/// Names one mutation; the client chooses it. A repeated mutation with the same identifier and content changes nothing
/// and gets the first receipt again.
public struct MutationIdentifier: Hashable, Sendable {
    /// The identifier's 16 bytes, the first in the low bits.
    public let value: UInt128

    public init(_ value: UInt128) {
        self.value = value
    }

    /// Makes a fresh identifier from the system's random source.
    public static func random() -> MutationIdentifier {
        MutationIdentifier(UInt128.random(in: .min ... .max))
    }

    /// Makes a fresh identifier from a source of random bytes.
    public static func random(from source: RandomSource) -> MutationIdentifier {
        MutationIdentifier(source.bytes(16).reversed().reduce(0) { $0 << 8 | UInt128($1) })
    }
}

extension MutationIdentifier: CustomStringConvertible {
    public var description: String {
        Swift.withUnsafeBytes(of: value.littleEndian) { Array($0).hexadecimal }
    }
}
