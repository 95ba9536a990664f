import COpenSSL
import Core

/// Owns an EC_KEY over P-256.
struct CurveKey: ~Copyable {
    let handle: OpaquePointer
    /// P-256, owned by `handle`.
    let group: OpaquePointer

    /// Makes a key without a scalar and without a point.
    ///
    /// Throws `internalFault` when libcrypto can't allocate.
    init() throws(ServiceError) {
        let handle = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1)
        guard let handle, let group = EC_KEY_get0_group(handle) else {
            EC_KEY_free(handle)
            throw libcryptoFault("make a key")
        }
        self.handle = handle
        self.group = group
    }

    deinit {
        EC_KEY_free(handle)
    }
}

/// Owns an EC_POINT.
struct CurvePoint: ~Copyable {
    let handle: OpaquePointer

    /// Makes a point of the key's group, at infinity.
    ///
    /// Throws `internalFault` when libcrypto can't allocate.
    init(of key: borrowing CurveKey) throws(ServiceError) {
        guard let handle = EC_POINT_new(key.group) else { throw libcryptoFault("make a point") }
        self.handle = handle
    }

    deinit {
        EC_POINT_clear_free(handle)
    }
}
