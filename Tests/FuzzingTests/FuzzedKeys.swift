import COpenSSL
import Core
import Foundation
import Signatures

/// The encodings of public keys, beside libcrypto's readers of points and of SubjectPublicKeyInfo.
enum FuzzedKeys {
    static let subject = FuzzSubject("keys", bytesMax: 128, seeds: seeds) { input in
        let point = PublicKeyEncoding.point(in: input).map { Array($0) }
        if let point {
            let encodings =
                [point] + (point.count == input.count ? [] : [PublicKeyEncoding.subjectPublicKeyInfo(ofPoint: point)])
            try demand(
                encodings.contains { $0.elementsEqual(input) }, "a key is written in another way than it was read")
            try demand(
                point.count == 65 && point[0] == 4 || point.count == 33 && (point[0] == 2 || point[0] == 3),
                "\(point.hexadecimal) is a point")
        }
        // What libcrypto takes for a key of this curve in one of the three encodings is one for us, and the same one.
        guard let expected = byLibcrypto(Array(input)) else { return }
        try demand(point == expected, "\(point?.hexadecimal ?? "refused") instead of \(expected.hexadecimal)")
    }

    /// The point in some bytes, as it stands there; `nil` when libcrypto reads none of P-256, when the curve has no
    /// name, when the point is hybrid or at infinity, or when libcrypto would write the key in another way.
    private static func byLibcrypto(_ bytes: [UInt8]) -> [UInt8]? {
        defer { ERR_clear_error() }
        return pointOfCurve(bytes) ?? publicKeyInfo(bytes)
    }

    private static func pointOfCurve(_ bytes: [UInt8]) -> [UInt8]? {
        guard let first = bytes.first, [2, 3, 4].contains(first),
            let key = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1)
        else { return nil }
        defer { EC_KEY_free(key) }
        return EC_KEY_oct2key(key, bytes, bytes.count, nil) == 1 ? bytes : nil
    }

    private static func publicKeyInfo(_ bytes: [UInt8]) -> [UInt8]? {
        bytes.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            guard let key = d2i_EC_PUBKEY(nil, &start, buffer.count) else { return nil }
            defer { EC_KEY_free(key) }
            guard start == buffer.baseAddress?.advanced(by: buffer.count), let group = EC_KEY_get0_group(key),
                EC_GROUP_get_curve_name(group) == NID_X9_62_prime256v1,
                EC_GROUP_get_asn1_flag(group) == OPENSSL_EC_NAMED_CURVE, let point = EC_KEY_get0_public_key(key)
            else { return nil }
            var written = [UInt8](repeating: 0, count: Int(max(0, i2d_EC_PUBKEY(key, nil))))
            let isWritten = written.withUnsafeMutableBufferPointer { memory in
                var end = memory.baseAddress
                return i2d_EC_PUBKEY(key, &end) == memory.count
            }
            let form = EC_KEY_get_conv_form(key)
            guard isWritten, written == bytes, form != POINT_CONVERSION_HYBRID else { return nil }
            var encoded = [UInt8](repeating: 0, count: 65)
            let count = EC_POINT_point2oct(group, point, form, &encoded, 65, nil)
            // Infinity has one byte.
            return count > 1 ? Array(encoded.prefix(count)) : nil
        }
    }

    private static func seeds() throws -> [[UInt8]] {
        let key = try PrivateKey(seed: [UInt8](repeating: 5, count: 48))
        let (long, short) = (key.uncompressedPoint, key.compressedPoint)
        return [
            long, short, PublicKeyEncoding.subjectPublicKeyInfo(ofPoint: long),
            PublicKeyEncoding.subjectPublicKeyInfo(ofPoint: short), [6] + long.dropFirst(), [0],
        ]
    }
}
