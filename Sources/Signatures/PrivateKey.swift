import COpenSSL
package import Core

/// A P-256 private key that signs. The device simulator uses it, and the service for proofs of its own only.
///
/// Sendable without the compiler's proof: the EC_KEY is complete after `init`. Afterwards it is only read, which
/// libcrypto allows from many threads.
package final class PrivateKey: @unchecked Sendable {
    private let key: CurveKey
    /// The public key as an uncompressed X9.63 point, 65 bytes.
    package let uncompressedPoint: [UInt8]

    /// Makes the key whose scalar is `seed` mod (n - 1), plus 1 (FIPS 186-5, A.2.1). It is unbiased for seeds of 40
    /// bytes or more.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package init(seed: [UInt8]) throws(ServiceError) {
        key = try CurveKey()
        let point = try CurvePoint(of: key)
        let context = try IntegerContext(isSecret: true)
        let scalar = try Integer(seed, isSecret: true)
        let modulus = try Integer()
        var encoded = [UInt8](repeating: 0, count: 65)
        guard EC_GROUP_get_order(key.group, modulus.number, context.handle) == 1, BN_sub_word(modulus.number, 1) == 1,
            BN_nnmod(scalar.number, scalar.number, modulus.number, context.handle) == 1,
            BN_add_word(scalar.number, 1) == 1,
            EC_POINT_mul(key.group, point.handle, scalar.number, nil, nil, context.handle) == 1,
            EC_KEY_set_private_key(key.handle, scalar.number) == 1,
            EC_KEY_set_public_key(key.handle, point.handle) == 1,
            EC_POINT_point2oct(
                key.group, point.handle, POINT_CONVERSION_UNCOMPRESSED, &encoded, 65, context.handle) == 65
        else { throw libcryptoFault("make a private key") }
        uncompressedPoint = encoded
    }

    /// Makes a key from random bytes.
    package convenience init(random: RandomSource = .system) throws(ServiceError) {
        try self.init(seed: random.bytes(48))
    }

    /// The public key as a compressed X9.63 point, 33 bytes.
    package var compressedPoint: [UInt8] {
        [0x02 | uncompressedPoint[64] & 1] + uncompressedPoint[1...32]
    }

    /// Signs a digest. Half of the signatures have a high s, as Apple's do.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package func sign(_ digest: Digest) throws(ServiceError) -> ScalarPair {
        guard let scalars = try SignatureValue(of: digest, by: key).scalars else {
            throw libcryptoFault("read a signature")
        }
        return scalars
    }
}
