import COpenSSL
package import Core

/// HKDF-SHA256 (RFC 5869), extract and expand, through libcrypto.
package enum KeyDerivation {
    /// `count` bytes (1 to 8,160) derived from `secret` for the purpose that `info` names.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package static func hkdf(
        secret: [UInt8], salt: [UInt8] = [], info: [UInt8], count: Int
    ) throws(ServiceError) -> [UInt8] {
        let fault = ServiceError(.internalFault, "libcrypto could not derive a key with HKDF-SHA256")
        guard let kdf = EVP_KDF_fetch(nil, "HKDF", nil) else { throw fault }
        defer { EVP_KDF_free(kdf) }
        guard let context = EVP_KDF_CTX_new(kdf) else { throw fault }
        defer { EVP_KDF_CTX_free(context) }

        var hash = Array("SHA256".utf8CString)
        var secret = secret
        var salt = salt
        var info = info
        var output = [UInt8](repeating: 0, count: count)
        let derived = hash.withUnsafeMutableBufferPointer { hash in
            secret.withUnsafeMutableBytes { secret in
                salt.withUnsafeMutableBytes { salt in
                    info.withUnsafeMutableBytes { info in
                        let parameters = [
                            OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, hash.baseAddress, 0),
                            OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.baseAddress, secret.count),
                            OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt.baseAddress, salt.count),
                            OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.baseAddress, info.count),
                            OSSL_PARAM_construct_end(),
                        ]
                        return EVP_KDF_derive(context, &output, count, parameters)
                    }
                }
            }
        }
        guard derived == 1 else {
            ERR_clear_error()
            throw fault
        }
        return output
    }
}
