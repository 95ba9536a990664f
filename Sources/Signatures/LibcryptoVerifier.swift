import COpenSSL
import Core

/// Verifies ECDSA signatures over P-256 (FIPS 186-5, 6.4.2) through
/// libcrypto. High s is valid.
///
/// The objects of libcrypto's are made once and reused for every signature. So a verifier serves one thread at a time,
/// and each worker has its own.
final class LibcryptoVerifier {
    private let key: CurveKey
    private let signature: SignatureValue
    private let context: IntegerContext

    /// Throws `internalFault` when libcrypto can't allocate.
    init() throws(ServiceError) {
        key = try CurveKey()
        signature = try SignatureValue()
        context = try IntegerContext()
    }

    /// Verifies one signature.
    ///
    /// Throws `internalFault` when libcrypto runs out of memory. Then the outcome is unknown.
    func verify(_ check: SignatureCheck) throws(ServiceError) -> SignatureOutcome {
        let point = check.point
        // Overwrites the point that the key already has. libcrypto refuses coordinates that are not below p and points
        // off the curve. `PublicKeyEncoding` has already refused hybrid encodings and infinity.
        guard
            EC_KEY_oct2key(
                key.handle, point.baseAddress?.assumingMemoryBound(to: UInt8.self), point.count, context.handle) == 1
        else {
            try drainErrors()
            return .badKey
        }
        let isSet = withUnsafeBytes(of: check.scalars) { scalars in
            let bytes = scalars.bindMemory(to: UInt8.self)
            return signature.set(r: bytes.baseAddress, s: bytes.baseAddress?.advanced(by: 32))
        }
        // libcrypto can read any 32 bytes, so this fails only for lack of memory.
        guard isSet else { throw libcryptoFault("read a signature") }
        let answer = withUnsafeBytes(of: check.digest) { digest in
            ECDSA_do_verify(
                digest.baseAddress?.assumingMemoryBound(to: UInt8.self), CInt(digest.count), signature.handle,
                key.handle)
        }
        if answer == 1 { return .valid }
        // 0 means that the signature does not verify. -1 means an error, but a forger can cause it too, by a sum at
        // infinity. So the signature is invalid unless an allocation failed.
        try drainErrors()
        return .invalid
    }

    /// Empties this thread's error queue, so that no later call mistakes these errors for its own. Throws
    /// `internalFault` if one of them is a lack of memory.
    private func drainErrors() throws(ServiceError) {
        var outOfMemory = false
        while case let error = ERR_get_error(), error != 0 {
            outOfMemory = outOfMemory || error & 0x7f_ffff == UInt(ERR_R_MALLOC_FAILURE)
        }
        if outOfMemory { throw ServiceError(.internalFault, "libcrypto is out of memory") }
    }
}
