import COpenSSL
import Core
import Signatures

/// The encodings of signatures, beside libcrypto's reader of DER. The first byte says which encoding is expected.
enum FuzzedSignatures {
    static let subject = FuzzSubject("signatures", bytesMax: 96, seeds: seeds) { input in
        guard let first = input.first else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: input[1...])
        guard first & 1 == 0 else {
            let scalars = SignatureEncoding.scalars(in: bytes, format: .raw)
            try demand((scalars != nil) == (bytes.count == 64), "\(bytes.count) bytes as a raw signature")
            try demand(
                scalars.map { SignatureEncoding.raw($0).elementsEqual(bytes) } ?? true,
                "a raw signature is written in another way than it was read")
            return
        }
        let scalars = SignatureEncoding.scalars(in: bytes, format: .der)
        try demand(
            scalars.map { SignatureEncoding.der($0).elementsEqual(bytes) } ?? true,
            "a DER signature is written in another way than it was read")
        let expected = byLibcrypto(Array(bytes))
        let found = scalars.map { SignatureEncoding.raw($0) }
        try demand(
            found == expected, "\(found?.hexadecimal ?? "refused") instead of \(expected?.hexadecimal ?? "that")")
    }

    /// The integers of a DER signature as 32 bytes each, by libcrypto; `nil` when it refuses them, when it would write
    /// them in another way, or when one is negative or too long.
    private static func byLibcrypto(_ bytes: [UInt8]) -> [UInt8]? {
        defer { ERR_clear_error() }
        return bytes.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            guard let signature = d2i_ECDSA_SIG(nil, &start, buffer.count) else { return nil }
            defer { ECDSA_SIG_free(signature) }
            guard start == buffer.baseAddress?.advanced(by: buffer.count),
                let r = ECDSA_SIG_get0_r(signature), let s = ECDSA_SIG_get0_s(signature),
                BN_is_negative(r) == 0, BN_is_negative(s) == 0
            else { return nil }
            var written = [UInt8](repeating: 0, count: Int(max(0, i2d_ECDSA_SIG(signature, nil))))
            let isWritten = written.withUnsafeMutableBufferPointer { memory in
                var end = memory.baseAddress
                return i2d_ECDSA_SIG(signature, &end) == memory.count
            }
            var scalars = [UInt8](repeating: 0, count: 64)
            let isCopied = scalars.withUnsafeMutableBufferPointer { memory in
                BN_bn2binpad(r, memory.baseAddress, 32) == 32
                    && BN_bn2binpad(s, memory.baseAddress?.advanced(by: 32), 32) == 32
            }
            return isWritten && isCopied && written == bytes ? scalars : nil
        }
    }

    private static func seeds() -> [[UInt8]] {
        let longest = ScalarPair(r: .init(repeating: 0xff), s: .init(repeating: 0x80))
        let mixed = ScalarPair(r: .init(repeating: 0x7f), s: .init(repeating: 0))
        let short: [UInt8] = [0x30, 6, 2, 1, 1, 2, 1, 1]
        return [
            [0] + short, [0] + SignatureEncoding.der(longest), [0] + SignatureEncoding.der(mixed),
            [1] + SignatureEncoding.raw(longest), [0, 0x30, 7, 2, 2, 0, 1, 2, 1, 1],
            [0, 0x30, 7, 2, 2, 0, 0x80, 2, 1, 1], [0, 0x30, 0x81, 6, 2, 1, 1, 2, 1, 1],
        ]
    }
}

extension ScalarPair {
    fileprivate init(r: InlineArray<32, UInt8>, s: InlineArray<32, UInt8>) {
        self.init()
        (self.r, self.s) = (r, s)
    }
}
