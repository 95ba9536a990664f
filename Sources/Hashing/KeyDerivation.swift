import COpenSSL
package import Core
package import Platform

/// HKDF-SHA256 (RFC 5869), extract and expand, through libcrypto.
package enum KeyDerivation {
    /// Derives `count` bytes (1 to 8,160) from `secret` for the purpose that `info` names.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package static func hkdf(
        secret: [UInt8], salt: [UInt8] = [], info: [UInt8], count: Int
    ) throws(ServiceError) -> [UInt8] {
        let output = SecretMemory(count: count)
        try secret.withRawBytes { secret throws(ServiceError) in
            try derive(from: secret, salt: salt, info: info, into: output.bytes)
        }
        return Array(output.bytes)
    }

    /// Derives 32 bytes from `secret` for the purpose that `info` names, without leaving a copy elsewhere: libcrypto
    /// overwrites its own.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package static func key(from secret: SecretMemory, info: String) throws(ServiceError) -> SecretMemory {
        let key = SecretMemory(count: 32)
        try secret.withBytes { secret throws(ServiceError) in
            try derive(from: secret, salt: [], info: Array(info.utf8), into: key.bytes)
        }
        return key
    }

    private static func derive(
        from secret: UnsafeRawBufferPointer, salt: [UInt8], info: [UInt8], into output: UnsafeMutableRawBufferPointer
    ) throws(ServiceError) {
        let owner = try DerivationContext()
        let context = owner.handle
        let secretBytes = secret.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let outputBytes = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        var length = output.count
        guard EVP_PKEY_derive_init(context) == 1,
            EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1,
            salt.isEmpty || EVP_PKEY_CTX_set1_hkdf_salt(context, salt, CInt(salt.count)) == 1,
            EVP_PKEY_CTX_set1_hkdf_key(context, secretBytes, CInt(secret.count)) == 1,
            info.isEmpty || EVP_PKEY_CTX_add1_hkdf_info(context, info, CInt(info.count)) == 1,
            EVP_PKEY_derive(context, outputBytes, &length) == 1, length == output.count
        else {
            throw DerivationContext.fault
        }
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
