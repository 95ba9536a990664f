import Core
import Hashing
import Kernels

@testable import Signatures

/// Signatures by arbitrary keys, verified by every kernel that this processor runs and by libcrypto. The first byte
/// says which key it is: one that has signed, or a point that the input has.
enum FuzzedVerification {
    static let subject = FuzzSubject("verification", bytesMax: 160, seeds: seeds) { input in
        guard let verifiers, input.count > 64 else { return }
        var parts = InputParts(input)
        let choice = parts.number(1) ?? 0
        guard let raw = parts.take(64) else { return }
        let scalars = raw.withRawBytes { SignatureEncoding.scalars(in: $0, format: .raw) }
        let point =
            choice & 1 == 0 ? signer?.uncompressedPoint ?? [] : Array(parts.take(choice & 2 == 0 ? 65 : 33) ?? [])
        guard let scalars, let encoded = point.withRawBytes({ PublicKeyEncoding.point(in: $0).map { Array($0) } })
        else {
            return
        }
        let digest = SHA256.hash(Array(parts.rest))
        try encoded.withRawBytes { point in
            let check = SignatureCheck(point: point, scalars: scalars, digest: digest)
            let expected = try verifiers.libcrypto.verify(check)
            for (name, verifier) in verifiers.kernels {
                let found = try verifier.verify(check)
                try demand(found == expected, "\(name) says \(found), libcrypto says \(expected)")
            }
        }
    }

    /// Sendable without the compiler's proof: subjects run on one thread, one after the other.
    private struct Verifiers: @unchecked Sendable {
        let libcrypto: LibcryptoVerifier
        let kernels: [(name: String, verifier: SignatureVerifier)]
    }

    private static let signer = try? PrivateKey(seed: [UInt8](repeating: 9, count: 48))

    private static let verifiers: Verifiers? = {
        guard let libcrypto = try? LibcryptoVerifier() else { return nil }
        var configuration = SignatureEngine.Configuration()
        configuration.knownKeyBytesMax = 0
        configuration.sampleInterval = 0
        let kernels = Kernel.runnable(with: .permitted).filter { $0.p256 != nil }.compactMap {
            kernel -> (String, SignatureVerifier)? in
            let engine = SignatureEngine(configuration, kernel: SignatureKernel(untimed: [kernel]), log: .none)
            return (try? SignatureVerifier(engine)).map { (kernel.name, $0) }
        }
        return Verifiers(libcrypto: libcrypto, kernels: kernels)
    }()

    private static func seeds() throws -> [[UInt8]] {
        guard let signer else { return [] }
        let message = Array("challenge".utf8)
        let signature = SignatureEncoding.raw(try signer.sign(SHA256.hash(message)))
        let one = [UInt8](repeating: 0, count: 31) + [1]
        return [
            [0] + signature + message, [1] + signature + signer.uncompressedPoint + message,
            [3] + signature + signer.compressedPoint + message, [0] + one + one + message,
            [0] + [UInt8](repeating: 0xff, count: 64) + message, [0] + [UInt8](repeating: 0, count: 64) + message,
        ]
    }
}
