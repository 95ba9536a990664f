package import Core

/// Names a collaboration or a device's key in a grant: the first bytes of the SHA-256 of the collaboration's
/// identifier, or of the key as the device sends it.
package struct Fingerprint: Hashable, Sendable {
    /// Bytes of a fingerprint.
    package static let byteCount = Limits.fingerprintBytes

    /// The bytes in memory order.
    private let word: UInt128

    package init(_ digest: Digest) {
        word = digest.withUnsafeBytes { $0.loadUnaligned(as: UInt128.self) }
    }

    /// Copies 16 bytes from `address`, which need not be aligned.
    package init(at address: UnsafeRawPointer) {
        word = address.loadUnaligned(as: UInt128.self)
    }

    /// Appends the 16 bytes.
    func append(to bytes: inout [UInt8]) {
        withUnsafeBytes(of: word) { bytes.append(contentsOf: $0) }
    }
}
