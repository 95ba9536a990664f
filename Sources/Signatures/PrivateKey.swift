import COpenSSL
package import Core

/// A P-256 private key that signs; for the device simulator, never for the service.
///
/// Sendable without the compiler's proof: the EC_KEY is complete after `init`
/// and only read afterwards, which libcrypto allows from many threads.
package final class PrivateKey: @unchecked Sendable {
    private let key: OpaquePointer
    /// The public key as X9.63 uncompressed, 65 bytes.
    package let uncompressedPoint: [UInt8]

    /// The key whose scalar is `seed` mod (n - 1), plus 1: FIPS 186-5, A.2.1, unbiased for seeds of 40
    /// bytes or more.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package init(seed: [UInt8]) throws(ServiceError) {
        let fault = libcryptoFault("make a private key")
        guard let key = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1), let group = EC_KEY_get0_group(key),
            let scalar = BN_secure_new(), let modulus = BN_dup(EC_GROUP_get0_order(group)),
            let context = BN_CTX_secure_new(), let point = EC_POINT_new(group)
        else { throw fault }
        defer {
            BN_clear_free(scalar)
            BN_free(modulus)
            BN_CTX_free(context)
            EC_POINT_free(point)
        }
        var encoded = [UInt8](repeating: 0, count: 65)
        guard BN_bin2bn(seed, CInt(seed.count), scalar) != nil, BN_sub_word(modulus, 1) == 1,
            BN_nnmod(scalar, scalar, modulus, context) == 1, BN_add_word(scalar, 1) == 1,
            EC_POINT_mul(group, point, scalar, nil, nil, context) == 1,
            EC_KEY_set_private_key(key, scalar) == 1, EC_KEY_set_public_key(key, point) == 1,
            EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, &encoded, 65, context) == 65
        else {
            EC_KEY_free(key)
            throw fault
        }
        self.key = key
        uncompressedPoint = encoded
    }

    /// A key from `random`.
    package convenience init(random: RandomSource = .system) throws(ServiceError) {
        try self.init(seed: random.bytes(48))
    }

    deinit {
        EC_KEY_free(key)
    }

    /// The public key as X9.63 compressed, 33 bytes.
    package var compressedPoint: [UInt8] {
        [0x02 | uncompressedPoint[64] & 1] + uncompressedPoint[1...32]
    }

    /// Signs a digest; half of the signatures have a high s, as Apple's do.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package func sign(_ digest: Digest) throws(ServiceError) -> ScalarPair {
        let signed = digest.withUnsafeBytes { bytes in
            ECDSA_do_sign(bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), CInt(bytes.count), key)
        }
        guard let signed else { throw libcryptoFault("sign") }
        defer { ECDSA_SIG_free(signed) }
        var scalars = ScalarPair()
        let copied = withUnsafeMutableBytes(of: &scalars) { bytes in
            let target = bytes.bindMemory(to: UInt8.self)
            return BN_bn2binpad(ECDSA_SIG_get0_r(signed), target.baseAddress, 32) == 32
                && BN_bn2binpad(ECDSA_SIG_get0_s(signed), target.baseAddress?.advanced(by: 32), 32) == 32
        }
        guard copied else { throw libcryptoFault("read a signature") }
        return scalars
    }
}
