/// Accepted encodings of a P-256 public key. Length and leading bytes tell which one it is. Whether the point is on the
/// curve is checked later, with the signature.
package enum PublicKeyEncoding {
    /// Finds the X9.63 point (33 or 65 bytes) inside `bytes`; `nil` unless the encoding is one of
    /// - X9.63 uncompressed, 04 || x || y (SEC 1, 2.3.3), 65 bytes;
    /// - X9.63 compressed, 02 or 03 || x, 33 bytes;
    /// - DER SubjectPublicKeyInfo (RFC 5480) with the named curve and either point, 91 or 59 bytes.
    ///
    /// Hybrid points (06, 07), infinity (00), explicit curve parameters, BER and trailing bytes all have another length
    /// or other leading bytes.
    package static func point(in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        switch bytes.count {
        case 65: bytes[0] == 0x04 ? bytes : nil
        case 33: bytes[0] == 0x02 || bytes[0] == 0x03 ? bytes : nil
        case 91: point(in: bytes, after: headerOfUncompressed)
        case 59: point(in: bytes, after: headerOfCompressed)
        default: nil
        }
    }

    private static func point(in bytes: UnsafeRawBufferPointer, after header: [UInt8]) -> UnsafeRawBufferPointer? {
        guard bytes.starts(with: header) else { return nil }
        return point(in: UnsafeRawBufferPointer(rebasing: bytes[header.count...]))
    }

    /// Encodes an X9.63 point of 33 or 65 bytes as SubjectPublicKeyInfo.
    package static func subjectPublicKeyInfo(ofPoint point: [UInt8]) -> [UInt8] {
        (point.count == 65 ? headerOfUncompressed : headerOfCompressed) + point
    }

    /// SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING of 66 bytes, no unused bits.
    private static let headerOfUncompressed: [UInt8] =
        [0x30, 0x59] + algorithm + [0x03, 0x42, 0x00]
    /// The same with a BIT STRING of 34 bytes.
    private static let headerOfCompressed: [UInt8] =
        [0x30, 0x39] + algorithm + [0x03, 0x22, 0x00]
    private static let algorithm: [UInt8] = [
        0x30, 0x13,
        0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01,
        0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
    ]
}
