import COpenSSL
import Core

/// Owns an ECDSA_SIG, which owns its two integers.
struct SignatureValue: ~Copyable {
    let handle: OpaquePointer
    /// Owned by `handle`, like `s`.
    private let r: OpaquePointer
    private let s: OpaquePointer

    /// Makes a signature with both integers zero.
    ///
    /// Throws `internalFault` when libcrypto can't allocate.
    init() throws(ServiceError) {
        let handle = ECDSA_SIG_new()
        let r = BN_new()
        let s = BN_new()
        // After success the signature owns both integers.
        guard let handle, let r, let s, ECDSA_SIG_set0(handle, r, s) == 1 else {
            BN_free(s)
            BN_free(r)
            ECDSA_SIG_free(handle)
            throw libcryptoFault("make a signature")
        }
        self.handle = handle
        self.r = r
        self.s = s
    }

    /// Signs `digest` with `key`.
    ///
    /// Throws `internalFault` when libcrypto can't make it.
    init(of digest: Digest, by key: borrowing CurveKey) throws(ServiceError) {
        let keyHandle = key.handle
        let handle = digest.withUnsafeBytes { bytes in
            ECDSA_do_sign(bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), CInt(bytes.count), keyHandle)
        }
        guard let handle, let r = ECDSA_SIG_get0_r(handle), let s = ECDSA_SIG_get0_s(handle) else {
            ECDSA_SIG_free(handle)
            throw libcryptoFault("sign")
        }
        self.handle = handle
        self.r = r
        self.s = s
    }

    deinit {
        ECDSA_SIG_free(handle)
    }

    /// Replaces both integers with 32 big-endian bytes each; false when libcrypto can't allocate.
    func set(r newR: UnsafePointer<UInt8>?, s newS: UnsafePointer<UInt8>?) -> Bool {
        BN_bin2bn(newR, 32, r) != nil && BN_bin2bn(newS, 32, s) != nil
    }

    /// Both integers; `nil` when one has more than 32 bytes.
    var scalars: ScalarPair? {
        var scalars = ScalarPair()
        let isCopied = withUnsafeMutableBytes(of: &scalars) { bytes in
            let target = bytes.bindMemory(to: UInt8.self)
            return BN_bn2binpad(r, target.baseAddress, 32) == 32
                && BN_bn2binpad(s, target.baseAddress?.advanced(by: 32), 32) == 32
        }
        return isCopied ? scalars : nil
    }
}
