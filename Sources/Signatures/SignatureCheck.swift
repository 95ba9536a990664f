package import Core

/// One signature to verify.
package struct SignatureCheck: BitwiseCopyable {
    /// An X9.63 point of 33 or 65 bytes, as `PublicKeyEncoding.point` returns it; borrowed.
    package var point: UnsafeRawBufferPointer
    package var scalars: ScalarPair
    /// SHA-256 of the signed data.
    package var digest: Digest

    package init(point: UnsafeRawBufferPointer, scalars: ScalarPair, digest: Digest) {
        self.point = point
        self.scalars = scalars
        self.digest = digest
    }
}

package enum SignatureOutcome: UInt8, BitwiseCopyable, Sendable {
    case valid
    case invalid
    /// The point is not on the curve.
    case badKey
}
