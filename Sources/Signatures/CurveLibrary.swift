import CKernels
import COpenSSL
import Core

/// P-256 through libcrypto's general interfaces. It is the oracle for the kernels, and it makes test cases with chosen
/// scalars or points. It shares no code with the kernels. One object serves one thread at a time.
final class CurveLibrary {
    private let key: CurveKey
    private let context: IntegerContext
    private let point: CurvePoint
    private let other: CurvePoint
    private let signature: SignatureValue
    /// n, the order of the group.
    let order: Integer
    /// p, the prime of the field.
    let prime: Integer

    private var group: OpaquePointer { key.group }

    /// Throws `internalFault` when libcrypto can't allocate.
    init() throws(ServiceError) {
        key = try CurveKey()
        context = try IntegerContext()
        point = try CurvePoint(of: key)
        other = try CurvePoint(of: key)
        signature = try SignatureValue()
        order = try Integer()
        prime = try Integer()
        guard EC_GROUP_get_order(group, order.number, context.handle) == 1,
            EC_GROUP_get_curve(group, prime.number, nil, nil, context.handle) == 1
        else { throw libcryptoFault("read the curve") }
    }

    // MARK: Verification

    /// Verifies a signature with libcrypto: the outcome is valid, invalid or bad key.
    ///
    /// Throws `internalFault` when libcrypto can't allocate.
    func outcome(of check: SignatureCase) throws(ServiceError) -> rg_p256_outcome {
        try outcome(point: check.point, r: check.r, s: check.s, digest: check.digest)
    }

    /// Verifies a signature of integers and a digest; `r`, `s` and `digest` have 32 bytes each.
    func outcome(
        point encoded: [UInt8], r: [UInt8], s: [UInt8], digest: [UInt8]
    ) throws(ServiceError) -> rg_p256_outcome {
        precondition(
            r.count == 32 && s.count == 32 && digest.count == 32, "an integer or a digest does not have 32 bytes")
        defer { ERR_clear_error() }
        guard EC_POINT_oct2point(group, point.handle, encoded, encoded.count, context.handle) == 1,
            EC_KEY_set_public_key(key.handle, point.handle) == 1
        else { return RG_P256_BAD_KEY }
        guard signature.set(r: r, s: s) else { throw libcryptoFault("read a signature") }
        return ECDSA_do_verify(digest, 32, signature.handle, key.handle) == 1 ? RG_P256_VALID : RG_P256_INVALID
    }

    // MARK: Points

    /// Whether X9.63 bytes are a point of the curve.
    func isPoint(_ encoded: [UInt8]) -> Bool {
        defer { ERR_clear_error() }
        return EC_POINT_oct2point(group, point.handle, encoded, encoded.count, context.handle) == 1
    }

    /// Computes a G + b Q as an uncompressed point; `nil` at infinity. Throws `internalFault` when libcrypto can't do
    /// it.
    func sum(_ a: Integer, _ q: [UInt8], _ b: Integer) throws(ServiceError) -> [UInt8]? {
        guard EC_POINT_oct2point(group, other.handle, q, q.count, context.handle) == 1,
            EC_POINT_mul(group, point.handle, a.number, other.handle, b.number, context.handle) == 1
        else { throw libcryptoFault("add points") }
        return try encodedPoint(compressed: false)
    }

    /// Computes a G; `nil` at infinity. Throws `internalFault` when libcrypto can't do it.
    func multiple(_ a: Integer) throws(ServiceError) -> [UInt8]? {
        guard EC_POINT_mul(group, point.handle, a.number, nil, nil, context.handle) == 1 else {
            throw libcryptoFault("multiply")
        }
        return try encodedPoint(compressed: false)
    }

    /// Converts a point from compressed to uncompressed or back. Throws `internalFault` when the bytes are no point.
    func reencoded(_ encoded: [UInt8]) throws(ServiceError) -> [UInt8] {
        guard EC_POINT_oct2point(group, point.handle, encoded, encoded.count, context.handle) == 1,
            let result = try encodedPoint(compressed: encoded.count == 65)
        else { throw libcryptoFault("read a point") }
        return result
    }

    private func encodedPoint(compressed: Bool) throws(ServiceError) -> [UInt8]? {
        if EC_POINT_is_at_infinity(group, point.handle) == 1 { return nil }
        var bytes = [UInt8](repeating: 0, count: compressed ? 33 : 65)
        let form = compressed ? POINT_CONVERSION_COMPRESSED : POINT_CONVERSION_UNCOMPRESSED
        guard EC_POINT_point2oct(group, point.handle, form, &bytes, bytes.count, context.handle) == bytes.count else {
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

    /// Computes a b mod n. The functions below are modulo n as well, unless they say otherwise.
    func product(_ a: Integer, _ b: Integer) throws(ServiceError) -> Integer {
        try result("multiply") { BN_mod_mul($0, a.number, b.number, order.number, context.handle) == 1 }
    }

    func sum(_ a: Integer, _ b: Integer) throws(ServiceError) -> Integer {
        try result("add") { BN_mod_add($0, a.number, b.number, order.number, context.handle) == 1 }
    }

    func difference(_ a: Integer, _ b: Integer) throws(ServiceError) -> Integer {
        try result("subtract") { BN_mod_sub($0, a.number, b.number, order.number, context.handle) == 1 }
    }

    func inverse(_ a: Integer) throws(ServiceError) -> Integer {
        try result("invert") { BN_mod_inverse($0, a.number, order.number, context.handle) != nil }
    }

    func reduced(_ a: Integer) throws(ServiceError) -> Integer {
        try result("reduce") { BN_nnmod($0, a.number, order.number, context.handle) == 1 }
    }

    /// Computes a + b, not reduced.
    func plainSum(_ a: Integer, _ b: Integer) throws(ServiceError) -> Integer {
        try result("add") { BN_add($0, a.number, b.number) == 1 }
    }

    /// Computes a - b, not reduced.
    func plainDifference(_ a: Integer, _ b: Integer) throws(ServiceError) -> Integer {
        try result("subtract") { BN_sub($0, a.number, b.number) == 1 }
    }

    /// Computes 2^exponent, not reduced.
    func power(_ exponent: Int) throws(ServiceError) -> Integer {
        try result("shift") { BN_set_word($0, 1) == 1 && BN_lshift($0, $0, CInt(exponent)) == 1 }
    }
}
