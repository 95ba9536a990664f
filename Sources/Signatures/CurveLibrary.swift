import CKernels
import COpenSSL
import Core

/// An integer of libcrypto's, freed with this object.
final class Integer {
    let number: OpaquePointer

    private init(owning number: OpaquePointer) {
        self.number = number
    }

    /// Throws `internalFault` when libcrypto can't allocate.
    convenience init(_ word: UInt = 0) throws(ServiceError) {
        guard let number = BN_new() else { throw libcryptoFault("make an integer") }
        BN_set_word(number, word)
        self.init(owning: number)
    }

    /// Of big-endian bytes.
    convenience init(_ bytes: [UInt8]) throws(ServiceError) {
        guard let number = BN_bin2bn(bytes, CInt(bytes.count), nil) else { throw libcryptoFault("read an integer") }
        self.init(owning: number)
    }

    deinit {
        BN_free(number)
    }

    /// 32 big-endian bytes; `nil` for more than 2^256 - 1.
    var bytes: [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 32)
        return BN_bn2binpad(number, &bytes, 32) == 32 ? bytes : nil
    }

    var isZero: Bool { BN_is_zero(number) == 1 }
}

/// P-256 through libcrypto's general interfaces: what the kernels are compared with, and with what cases are made
/// whose scalars or points are chosen. Shares nothing with the kernels. Serves one thread at a time.
final class CurveLibrary {
    private let group: OpaquePointer
    private let context: OpaquePointer
    private let key: OpaquePointer
    private let point: OpaquePointer
    private let other: OpaquePointer
    private let signature: OpaquePointer
    /// Owned by `signature`, as is `s`.
    private let r: OpaquePointer
    private let s: OpaquePointer
    /// n, the order of the group.
    let order: Integer
    /// p, of the field.
    let prime: Integer

    /// Throws `internalFault` when libcrypto can't allocate.
    init() throws(ServiceError) {
        order = try Integer()
        prime = try Integer()
        guard let key = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1) else { throw libcryptoFault("make a key") }
        guard let group = EC_KEY_get0_group(key), let context = BN_CTX_new(), let point = EC_POINT_new(group),
            let other = EC_POINT_new(group), let signature = ECDSA_SIG_new(), let r = BN_new(), let s = BN_new(),
            ECDSA_SIG_set0(signature, r, s) == 1,
            EC_GROUP_get_order(group, order.number, context) == 1,
            EC_GROUP_get_curve(group, prime.number, nil, nil, context) == 1
        else {
            EC_KEY_free(key)
            throw libcryptoFault("make a group")
        }
        self.key = key
        self.group = group
        self.context = context
        self.point = point
        self.other = other
        self.signature = signature
        self.r = r
        self.s = s
    }

    deinit {
        ECDSA_SIG_free(signature)
        EC_POINT_free(other)
        EC_POINT_free(point)
        BN_CTX_free(context)
        EC_KEY_free(key)
    }

    // MARK: Verification

    /// What libcrypto says of a signature: valid, invalid or bad key.
    func outcome(of check: SignatureCase) -> rg_p256_outcome {
        outcome(point: check.point, r: check.r, s: check.s, digest: check.digest)
    }

    func outcome(point encoded: [UInt8], r: [UInt8], s: [UInt8], digest: [UInt8]) -> rg_p256_outcome {
        defer { ERR_clear_error() }
        guard EC_POINT_oct2point(group, point, encoded, encoded.count, context) == 1,
            EC_KEY_set_public_key(key, point) == 1
        else { return RG_P256_BAD_KEY }
        BN_bin2bn(r, 32, self.r)
        BN_bin2bn(s, 32, self.s)
        return ECDSA_do_verify(digest, 32, signature, key) == 1 ? RG_P256_VALID : RG_P256_INVALID
    }

    // MARK: Points

    /// Whether X9.63 bytes are a point of the curve.
    func isPoint(_ encoded: [UInt8]) -> Bool {
        defer { ERR_clear_error() }
        return EC_POINT_oct2point(group, point, encoded, encoded.count, context) == 1
    }

    /// a G + b Q, uncompressed; `nil` at infinity. Throws `internalFault` when libcrypto can't do it.
    func sum(_ a: Integer, _ q: [UInt8], _ b: Integer) throws(ServiceError) -> [UInt8]? {
        guard EC_POINT_oct2point(group, other, q, q.count, context) == 1,
            EC_POINT_mul(group, point, a.number, other, b.number, context) == 1
        else { throw libcryptoFault("add points") }
        return try encodedPoint(compressed: false)
    }

    /// a G; `nil` at infinity. Throws `internalFault` when libcrypto can't do it.
    func multiple(_ a: Integer) throws(ServiceError) -> [UInt8]? {
        guard EC_POINT_mul(group, point, a.number, nil, nil, context) == 1 else { throw libcryptoFault("multiply") }
        return try encodedPoint(compressed: false)
    }

    /// The other encoding of a point. Throws `internalFault` when it is none.
    func reencoded(_ encoded: [UInt8]) throws(ServiceError) -> [UInt8] {
        guard EC_POINT_oct2point(group, point, encoded, encoded.count, context) == 1,
            let result = try encodedPoint(compressed: encoded.count == 65)
        else { throw libcryptoFault("read a point") }
        return result
    }

    private func encodedPoint(compressed: Bool) throws(ServiceError) -> [UInt8]? {
        if EC_POINT_is_at_infinity(group, point) == 1 { return nil }
        var bytes = [UInt8](repeating: 0, count: compressed ? 33 : 65)
        let form = compressed ? POINT_CONVERSION_COMPRESSED : POINT_CONVERSION_UNCOMPRESSED
        guard EC_POINT_point2oct(group, point, form, &bytes, bytes.count, context) == bytes.count else {
            throw libcryptoFault("write a point")
        }
        return bytes
    }

    // MARK: Integers

    private func result(
        _ action: String, _ body: (OpaquePointer) -> Bool
    ) throws(ServiceError) -> Integer {
        let result = try Integer()
        guard body(result.number) else { throw libcryptoFault(action) }
        return result
    }

    /// a b mod n, as all of these are.
    func product(_ a: Integer, _ b: Integer) throws(ServiceError) -> Integer {
        try result("multiply") { BN_mod_mul($0, a.number, b.number, order.number, context) == 1 }
    }

    func sum(_ a: Integer, _ b: Integer) throws(ServiceError) -> Integer {
        try result("add") { BN_mod_add($0, a.number, b.number, order.number, context) == 1 }
    }

    func difference(_ a: Integer, _ b: Integer) throws(ServiceError) -> Integer {
        try result("subtract") { BN_mod_sub($0, a.number, b.number, order.number, context) == 1 }
    }

    func inverse(_ a: Integer) throws(ServiceError) -> Integer {
        try result("invert") { BN_mod_inverse($0, a.number, order.number, context) != nil }
    }

    func reduced(_ a: Integer) throws(ServiceError) -> Integer {
        try result("reduce") { BN_nnmod($0, a.number, order.number, context) == 1 }
    }

    /// a + b, not reduced.
    func plainSum(_ a: Integer, _ b: Integer) throws(ServiceError) -> Integer {
        try result("add") { BN_add($0, a.number, b.number) == 1 }
    }

    /// 2^exponent, not reduced.
    func power(_ exponent: Int) throws(ServiceError) -> Integer {
        try result("shift") { BN_set_word($0, 1) == 1 && BN_lshift($0, $0, CInt(exponent)) == 1 }
    }
}
