import COpenSSL
import Core

/// Owns a BIGNUM, an integer of libcrypto's. Its memory is overwritten when it is freed.
final class Integer {
    let number: OpaquePointer

    /// Throws `internalFault` when libcrypto can't allocate.
    init(_ word: UInt = 0) throws(ServiceError) {
        guard let number = BN_new() else { throw libcryptoFault("make an integer") }
        self.number = number
        // From here on `deinit` frees the number, even when this initializer throws.
        guard BN_set_word(number, word) == 1 else { throw libcryptoFault("set an integer") }
    }

    /// Reads big-endian bytes, at most 2^31 - 1 of them. If `isSecret`, the memory comes from libcrypto's secure heap,
    /// when the process has one.
    ///
    /// Throws `internalFault` when libcrypto can't allocate.
    init(_ bytes: [UInt8], isSecret: Bool = false) throws(ServiceError) {
        guard let number = isSecret ? BN_secure_new() : BN_new() else { throw libcryptoFault("make an integer") }
        self.number = number
        guard BN_bin2bn(bytes, CInt(bytes.count), number) != nil else { throw libcryptoFault("read an integer") }
    }

    deinit {
        BN_clear_free(number)
    }

    /// The number as 32 big-endian bytes; `nil` above 2^256 - 1.
    var bytes: [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 32)
        return BN_bn2binpad(number, &bytes, 32) == 32 ? bytes : nil
    }

    var isZero: Bool { BN_is_zero(number) == 1 }
}

/// Owns a BN_CTX, which holds libcrypto's intermediate results. One context serves one thread at a time.
struct IntegerContext: ~Copyable {
    let handle: OpaquePointer

    /// If `isSecret`, the memory comes from libcrypto's secure heap, when the process has one.
    ///
    /// Throws `internalFault` when libcrypto can't allocate.
    init(isSecret: Bool = false) throws(ServiceError) {
        guard let handle = isSecret ? BN_CTX_secure_new() : BN_CTX_new() else {
            throw libcryptoFault("make a context for integers")
        }
        self.handle = handle
    }

    deinit {
        BN_CTX_free(handle)
    }
}

/// Makes an `internalFault` that says what libcrypto could not do. Empties libcrypto's error queue.
func libcryptoFault(_ action: String) -> ServiceError {
    ERR_clear_error()
    return ServiceError(.internalFault, "libcrypto could not \(action)")
}
