import COpenSSL
import Core

/// Verifies ECDSA signatures over P-256 (FIPS 186-5, 6.4.2) through
/// libcrypto. High s is valid.
///
/// Everything libcrypto needs is made once and used again for every signature,
/// so one verifier serves one thread at a time: each worker has its own.
final class LibcryptoVerifier {
    private let key: OpaquePointer
    private let signature: OpaquePointer
    /// Owned by `signature`.
    private let r: OpaquePointer
    /// Owned by `signature`.
    private let s: OpaquePointer
    private let context: OpaquePointer

    /// Throws `internalFault` when libcrypto can't allocate.
    init() throws(ServiceError) {
        guard let key = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1) else { throw libcryptoFault("make a key") }
        guard let signature = ECDSA_SIG_new(), let r = BN_new(), let s = BN_new(), let context = BN_CTX_new(),
            ECDSA_SIG_set0(signature, r, s) == 1
        else {
            EC_KEY_free(key)
            throw libcryptoFault("make a signature")
        }
        self.key = key
        self.signature = signature
        self.r = r
        self.s = s
        self.context = context
    }

    deinit {
        BN_CTX_free(context)
        ECDSA_SIG_free(signature)
        EC_KEY_free(key)
    }

    /// The outcome of one check.
    ///
    /// Throws `internalFault` when libcrypto runs out of memory: then nothing is known.
    func verify(_ check: SignatureCheck) throws(ServiceError) -> SignatureOutcome {
        let point = check.point
        // Reuses the point that the key already has. Rejects coordinates not below p and points off the
        // curve; hybrid encodings and infinity never get here.
        guard EC_KEY_oct2key(key, point.baseAddress?.assumingMemoryBound(to: UInt8.self), point.count, context) == 1
        else {
            try drainErrors()
            return .badKey
        }
        let answer = withUnsafeBytes(of: check.digest) { digest in
            withUnsafeBytes(of: check.scalars) { scalars in
                let bytes = scalars.bindMemory(to: UInt8.self)
                BN_bin2bn(bytes.baseAddress, 32, r)
                BN_bin2bn(bytes.baseAddress?.advanced(by: 32), 32, s)
                return ECDSA_do_verify(
                    digest.baseAddress?.assumingMemoryBound(to: UInt8.self), CInt(digest.count), signature, key)
            }
        }
        if answer == 1 { return .valid }
        // 0 is a signature that does not verify; -1 also stands for a sum at infinity, which a forger can
        // bring about, so only an allocation failure is the service's own fault.
        try drainErrors()
        return .invalid
    }

    /// Empties this thread's error queue, so that no later call reads what is not its own.
    private func drainErrors() throws(ServiceError) {
        var outOfMemory = false
        while case let error = ERR_get_error(), error != 0 {
            outOfMemory = outOfMemory || error & 0x7f_ffff == UInt(ERR_R_MALLOC_FAILURE)
        }
        if outOfMemory { throw ServiceError(.internalFault, "libcrypto is out of memory") }
    }
}

/// An `internalFault` that says what libcrypto could not do; empties the error queue.
func libcryptoFault(_ action: String) -> ServiceError {
    ERR_clear_error()
    return ServiceError(.internalFault, "libcrypto could not \(action)")
}
