import COpenSSL
package import Core

/// The rules of a proof written down a second time, on libcrypto's EVP interface, for comparing.
package enum ProofOracle {
    /// SHA-256 of `bytes`.
    package static func hash(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 0
        guard EVP_Digest(bytes, bytes.count, &digest, &length, EVP_sha256(), nil) == 1, length == 32 else { return [] }
        return digest
    }

    /// The root over a leaf, from the definition: the last sibling joins the root of everything below it.
    package static func root(key: [UInt8], index: UInt64, siblings: ArraySlice<Digest>) -> [UInt8] {
        guard let last = siblings.last else { return hash(key) }
        let below = root(key: key, index: index, siblings: siblings.dropLast())
        let isRight = index >> UInt64(siblings.count - 1) & 1 == 1
        return hash(isRight ? last.bytes + below : below + last.bytes)
    }

    /// The X9.63 point in a key; `nil` when the encoding is none of the accepted ones.
    package static func point(in key: [UInt8]) -> [UInt8]? {
        let algorithm = "301306072a8648ce3d020106082a8648ce3d030107"
        for (header, count) in [
            ("04", 64), ("02", 32), ("03", 32), ("3059\(algorithm)03420004", 64), ("3039\(algorithm)03220002", 32),
            ("3039\(algorithm)03220003", 32),
        ] {
            let text = key.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            if text.hasPrefix(header), text.count == header.count + 2 * count { return Array(key.suffix(count + 1)) }
        }
        return nil
    }

    /// The signature in strict DER; `nil` when it is not exactly in its format or an integer is negative
    /// or over 32 bytes.
    package static func derSignature(_ bytes: [UInt8], _ format: SignatureFormat) -> [UInt8]? {
        var signature: OpaquePointer?
        switch format {
        case .der:
            var position: UnsafePointer<UInt8>?
            signature = bytes.withUnsafeBufferPointer { buffer in
                position = buffer.baseAddress
                return d2i_ECDSA_SIG(nil, &position, buffer.count)
            }
        case .raw:
            guard bytes.count == 64 else { return nil }
            signature = ECDSA_SIG_new()
            let (r, s) = (BN_bin2bn(Array(bytes[..<32]), 32, nil), BN_bin2bn(Array(bytes[32...]), 32, nil))
            precondition(ECDSA_SIG_set0(signature, r, s) == 1, "libcrypto could not make a signature")
        }
        defer {
            ECDSA_SIG_free(signature)
            ERR_clear_error()
        }
        guard let signature, let r = ECDSA_SIG_get0_r(signature), let s = ECDSA_SIG_get0_s(signature),
            BN_is_negative(r) == 0, BN_is_negative(s) == 0, BN_num_bits(r) <= 256, BN_num_bits(s) <= 256
        else { return nil }
        var encoded = [UInt8](repeating: 0, count: 128)
        let count = encoded.withUnsafeMutableBufferPointer { buffer in
            var end = buffer.baseAddress
            return i2d_ECDSA_SIG(signature, &end)
        }
        let canonical = Array(encoded[..<Int(count)])
        return format == .raw || canonical == bytes ? canonical : nil
    }

    /// Whether the DER signature over `message` verifies; `nil` when the point is not on the curve.
    package static func verifies(_ signature: [UInt8], over message: [UInt8], point: [UInt8]) -> Bool? {
        defer { ERR_clear_error() }
        guard let key = publicKey(point) else { return nil }
        defer { EVP_PKEY_free(key) }
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        guard EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1 else { return false }
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    /// A C string that stays.
    private static func name(_ text: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
    }

    private static func publicKey(_ point: [UInt8]) -> OpaquePointer? {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var group = "prime256v1".utf8CString.map { $0 }
        var point = point
        var key: OpaquePointer?
        let made = group.withUnsafeMutableBufferPointer { group in
            point.withUnsafeMutableBufferPointer { point in
                var parameters = [
                    OSSL_PARAM_construct_utf8_string(name("group"), group.baseAddress, 0),
                    OSSL_PARAM_construct_octet_string(name("pub"), point.baseAddress, point.count),
                    OSSL_PARAM_construct_end(),
                ]
                let parts = OSSL_KEYMGMT_SELECT_ALL_PARAMETERS | OSSL_KEYMGMT_SELECT_PUBLIC_KEY
                return EVP_PKEY_fromdata_init(context) == 1
                    && EVP_PKEY_fromdata(context, &key, CInt(parts), &parameters) == 1
            }
        }
        return made ? key : nil
    }
}
