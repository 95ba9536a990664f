import COpenSSL
import Core

@testable import Signatures

/// libcrypto's arithmetic, for oracles. It owns the context, and checks every result of libcrypto: each method throws
/// `internalFault` when libcrypto fails.
struct IntegerArithmetic: ~Copyable {
    private let context: IntegerContext

    init() throws(ServiceError) {
        context = try IntegerContext()
    }

    private func result(
        _ action: String, _ body: (OpaquePointer, OpaquePointer) -> CInt
    ) throws(ServiceError) -> Integer {
        let result = try Integer()
        guard body(result.number, context.handle) == 1 else { throw libcryptoFault(action) }
        return result
    }

    func copy(of a: Integer) throws(ServiceError) -> Integer {
        try result("copy") { result, _ in BN_copy(result, a.number) == nil ? 0 : 1 }
    }

    func sum(_ a: Integer, _ b: Integer) throws(ServiceError) -> Integer {
        try result("add") { result, _ in BN_add(result, a.number, b.number) }
    }

    func difference(_ a: Integer, _ b: Integer) throws(ServiceError) -> Integer {
        try result("subtract") { result, _ in BN_sub(result, a.number, b.number) }
    }

    func product(_ a: Integer, _ b: Integer) throws(ServiceError) -> Integer {
        try result("multiply") { BN_mul($0, a.number, b.number, $1) }
    }

    func product(_ a: Integer, _ b: Integer, modulo m: Integer) throws(ServiceError) -> Integer {
        try result("multiply") { BN_mod_mul($0, a.number, b.number, m.number, $1) }
    }

    func square(of a: Integer) throws(ServiceError) -> Integer {
        try result("square") { BN_sqr($0, a.number, $1) }
    }

    /// The quotient, rounded towards zero.
    func quotient(_ a: Integer, _ b: Integer) throws(ServiceError) -> Integer {
        try result("divide") { BN_div($0, nil, a.number, b.number, $1) }
    }

    /// From 0 to m - 1, also for a negative integer.
    func residue(_ a: Integer, modulo m: Integer) throws(ServiceError) -> Integer {
        try result("reduce") { BN_nnmod($0, a.number, m.number, $1) }
    }

    /// a 2^count.
    func shifted(_ a: Integer, by count: Int) throws(ServiceError) -> Integer {
        try result("shift") { result, _ in BN_lshift(result, a.number, CInt(count)) }
    }

    func inverse(of a: Integer, modulo m: Integer) throws(ServiceError) -> Integer {
        try result("invert") { BN_mod_inverse($0, a.number, m.number, $1) == nil ? 0 : 1 }
    }

    /// 2^exponent modulo m.
    func power(_ exponent: Int, modulo m: Integer) throws(ServiceError) -> Integer {
        try residue(shifted(Integer(1), by: exponent), modulo: m)
    }

    /// The prime, the second coefficient and the order of P-256, and the coordinates of its generator.
    func curve() throws(ServiceError) -> (p: Integer, b: Integer, n: Integer, x: Integer, y: Integer) {
        guard let group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1) else { throw libcryptoFault("make a group") }
        defer { EC_GROUP_free(group) }
        let (p, b, n, x, y) = (try Integer(), try Integer(), try Integer(), try Integer(), try Integer())
        let generator = EC_GROUP_get0_generator(group)
        guard EC_GROUP_get_curve(group, p.number, nil, b.number, context.handle) == 1,
            EC_GROUP_get_order(group, n.number, context.handle) == 1,
            EC_POINT_get_affine_coordinates(group, generator, x.number, y.number, context.handle) == 1
        else { throw libcryptoFault("read the curve") }
        return (p, b, n, x, y)
    }
}

extension Integer {
    var isNegative: Bool { BN_is_negative(number) == 1 }

    /// -1, 0 or 1.
    func compared(to other: Integer) -> CInt { BN_cmp(number, other.number) }

    /// The `count` lowest digits of `bits` bits, least significant first.
    func digits(_ bits: Int, _ count: Int) -> [UInt64] {
        (0..<count).map { index in
            (0..<bits).reduce(0) { $0 | UInt64(BN_is_bit_set(number, CInt(index * bits + $1))) << UInt64($1) }
        }
    }
}
