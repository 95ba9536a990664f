import Core
import Hashing
import Signatures

/// A signature to check, owning its bytes.
struct OwnedCheck {
    /// X9.63, whatever the encoding it came in.
    var point: [UInt8]
    var scalars: ScalarPair
    var digest: Digest
}

/// The outcomes of one batch.
func outcomes(of checks: [OwnedCheck], by verifier: SignatureVerifier) throws -> [SignatureOutcome] {
    let area = checks.flatMap { $0.point }
    var outcomes = [SignatureOutcome](repeating: .invalid, count: checks.count)
    try area.withUnsafeBytes { area in
        var offset = 0
        let borrowed = checks.map { check in
            defer { offset += check.point.count }
            return SignatureCheck(
                point: UnsafeRawBufferPointer(rebasing: area[offset..<offset + check.point.count]),
                scalars: check.scalars, digest: check.digest)
        }
        try borrowed.withUnsafeBufferPointer { borrowed in
            try outcomes.withUnsafeMutableBufferPointer { try verifier.verify(borrowed, into: $0) }
        }
    }
    return outcomes
}

/// The X9.63 point that an encoded key holds.
func point(in key: [UInt8]) -> [UInt8]? {
    key.withUnsafeBytes { PublicKeyEncoding.point(in: $0).map { Array($0) } }
}

func scalars(in signature: [UInt8], _ format: SignatureFormat) -> ScalarPair? {
    signature.withUnsafeBytes { SignatureEncoding.scalars(in: $0, format: format) }
}

/// A proof's signature as this layer decodes it; `nil` when the key's or the signature's encoding is refused.
func verify(
    key: [UInt8], signature: [UInt8], format: SignatureFormat = .der, message: [UInt8],
    by verifier: SignatureVerifier
) throws -> SignatureOutcome? {
    guard let point = point(in: key), let scalars = scalars(in: signature, format) else { return nil }
    return try outcomes(
        of: [OwnedCheck(point: point, scalars: scalars, digest: SHA256.hash(message))], by: verifier)[0]
}

/// Two integers of up to 32 big-endian bytes.
func pair(_ r: [UInt8], _ s: [UInt8]) -> ScalarPair {
    var pair = ScalarPair()
    for (index, byte) in r.reversed().enumerated() { pair.r[31 - index] = byte }
    for (index, byte) in s.reversed().enumerated() { pair.s[31 - index] = byte }
    return pair
}

/// a - b for a >= b, of 32 big-endian bytes each.
func difference(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] {
    var result = a
    var borrow = 0
    for index in (0..<32).reversed() {
        let digit = Int(a[index]) - Int(b[index]) - borrow
        borrow = digit < 0 ? 1 : 0
        result[index] = UInt8(digit + 256 * borrow)
    }
    return result
}

/// The order of P-256's group and the prime of its field; FIPS 186-4, D.1.2.3.
enum P256 {
    static let order = constant("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
    static let prime = constant("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff")

    private static func constant(_ text: String) -> [UInt8] { [UInt8](hexadecimal: text) ?? [] }
}
