import COpenSSL
package import Core

/// HKDF-SHA256 (RFC 5869), extract and expand, through libcrypto.
package enum KeyDerivation {
    /// Derives `count` bytes (1 to 8,160) from `secret` for the purpose that `info` names.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package static func hkdf(
        secret: [UInt8], salt: [UInt8] = [], info: [UInt8], count: Int
    ) throws(ServiceError) -> [UInt8] {
        let owner = try DerivationContext()
        let context = owner.handle
        var output = [UInt8](repeating: 0, count: count)
        var length = count
        guard EVP_PKEY_derive_init(context) == 1,
            EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1,
            salt.isEmpty || EVP_PKEY_CTX_set1_hkdf_salt(context, salt, CInt(salt.count)) == 1,
            EVP_PKEY_CTX_set1_hkdf_key(context, secret, CInt(secret.count)) == 1,
            info.isEmpty || EVP_PKEY_CTX_add1_hkdf_info(context, info, CInt(info.count)) == 1,
            EVP_PKEY_derive(context, &output, &length) == 1, length == count
        else {
            throw DerivationContext.fault
        }
        return output
    }
}

/// Owns an EVP_PKEY_CTX for HKDF.
private struct DerivationContext: ~Copyable {
    let handle: OpaquePointer

    init() throws(ServiceError) {
        guard let handle = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nil) else { throw DerivationContext.fault }
        self.handle = handle
    }

    deinit {
        EVP_PKEY_CTX_free(handle)
    }

    /// The error for a failed call. Reading it empties libcrypto's error queue.
    static var fault: ServiceError {
        ERR_clear_error()
        return ServiceError(.internalFault, "libcrypto could not derive a key with HKDF-SHA256")
    }
}
