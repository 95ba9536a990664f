import COpenSSL
package import Core
import Dispatch
import Foundation
import Hashing
import Identity
import Signatures

/// The baseline: OpenSSL's `ECDSA_do_verify` in a loop and nothing else, with keys and signatures parsed beforehand.
package enum BareVerification {
    /// Objects of libcrypto for one verification.
    ///
    /// Sendable without the compiler's proof: made before the threads start, then only read.
    private final class Prepared: @unchecked Sendable {
        let key: OpaquePointer
        let signature: OpaquePointer
        let digest: Digest

        init(_ number: Int) throws(ServiceError) {
            let fault = ServiceError(.internalFault, "libcrypto could not prepare a verification")
            let signer = try PrivateKey()
            digest = SHA256.hash(Array("message \(number)".utf8))
            let der = SignatureEncoding.der(try signer.sign(digest))
            guard let key = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1) else { throw fault }
            self.key = key
            var pointer: UnsafePointer<UInt8>?
            let point = signer.uncompressedPoint
            let parsed = der.withUnsafeBufferPointer { bytes in
                pointer = bytes.baseAddress
                return d2i_ECDSA_SIG(nil, &pointer, bytes.count)
            }
            guard let parsed else {
                EC_KEY_free(key)
                throw fault
            }
            signature = parsed
            guard EC_KEY_oct2key(key, point, point.count, nil) == 1 else { throw fault }
        }

        deinit {
            EC_KEY_free(key)
            ECDSA_SIG_free(signature)
        }

        func verify() -> Bool {
            digest.withUnsafeBytes { bytes in
                ECDSA_do_verify(
                    bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), CInt(bytes.count), signature, key) == 1
            }
        }
    }

    /// Keys and signatures to verify again and again.
    package struct Material: Sendable {
        private let prepared: [Prepared]

        /// `count` different keys with a signature each.
        ///
        /// Throws `internalFault`.
        package init(count: Int = 512) throws(ServiceError) {
            prepared = try inParallel(count) { number throws(ServiceError) in try Prepared(number) }
        }

        /// Verifications per second on this thread over about `seconds`.
        package func rate(seconds: Double) -> Double {
            let begin = DispatchTime.now().uptimeNanoseconds
            var count = 0
            while true {
                for item in prepared {
                    precondition(item.verify(), "libcrypto refused a genuine signature")
                    count += 1
                    if count % 64 == 0 {
                        let elapsed = Double(DispatchTime.now().uptimeNanoseconds - begin) / 1e9
                        if elapsed >= seconds { return Double(count) / elapsed }
                    }
                }
            }
        }

        /// How long each of `count` verifications takes on this thread.
        package func durations(count: Int) -> Histogram {
            var histogram = Histogram()
            for number in 0..<count {
                let begin = DispatchTime.now().uptimeNanoseconds
                precondition(prepared[number % prepared.count].verify(), "libcrypto refused a genuine signature")
                histogram.record(DispatchTime.now().uptimeNanoseconds - begin)
            }
            return histogram
        }

        /// Verifications per second on `threads` threads together.
        package func rate(seconds: Double, threads: Int) -> Double {
            guard threads > 1 else { return rate(seconds: seconds) }
            let total = Lock(0.0)
            DispatchQueue.concurrentPerform(iterations: threads) { _ in
                let rate = rate(seconds: seconds)
                total.withLock { $0 += rate }
            }
            return total.withLock { $0 }
        }
    }
}
