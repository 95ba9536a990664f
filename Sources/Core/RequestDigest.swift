/// Tells whether two edits were made by the same request: the first 16 bytes of a SHA-256 of the request as it was
/// sent. The change log keeps it with the edit.
public struct RequestDigest: Hashable, Sendable {
    /// The 16 bytes, the first in the low bits. Zero stands for no request in the log, so it is no digest.
    package let value: UInt128

    /// Takes the first 16 bytes of a digest.
    package init(_ digest: Digest) {
        self.init(value: UInt128(firstBytesOf: digest))
    }

    /// Reads what the change log keeps; `nil` for the zeros of an edit that no request made.
    package init?(logged value: UInt128) {
        guard value != 0 else { return nil }
        self.value = value
    }

    private init(value: UInt128) {
        // A SHA-256 that begins with 16 zeros is not known. Should there be one, it would be a digest like others.
        self.value = value == 0 ? 1 : value
    }
}

extension UInt128 {
    /// The first 16 bytes of a digest, the first in the low bits.
    package init(firstBytesOf digest: Digest) {
        self = digest.bytes.prefix(16).reversed().reduce(0) { $0 << 8 | UInt128($1) }
    }
}
