import Core
import Foundation
import Hashing
import Server
import Signatures

// What the benchmarks know of the ways to verify a signature, all in one place.

/// Verifies a batch of signatures.
typealias VerifyBatch = (UnsafeBufferPointer<SignatureCheck>, UnsafeMutableBufferPointer<SignatureOutcome>) throws ->
    Void

/// The kernels that signatures and hashes go through on this machine.
func kernelNames() -> [String] {
    let names = SignatureEngine(SignatureEngine.Configuration()).kernelNames + BatchHashing.standard.kernelNames
    return names.isEmpty ? ["libcrypto"] : names
}

/// A verifier that never saw a key before, as often as it may be asked.
func newKeyVerifier() throws -> VerifyBatch {
    var configuration = SignatureEngine.Configuration()
    configuration.knownKeyBytesMax = 0
    let verifier = try SignatureVerifier(SignatureEngine(configuration))
    return { checks, outcomes in try verifier.verify(checks, into: outcomes) }
}

/// A verifier that knows the keys of `checks`, with all that it prepares for such keys already prepared.
func knownKeyVerifier(_ checks: [SignatureCheck]) throws -> VerifyBatch {
    let engine = SignatureEngine(SignatureEngine.Configuration())
    let verifier = try SignatureVerifier(engine)
    // Two grants of each key, and time for their tables.
    for _ in 0..<2 { for check in checks { verifier.granted(check.point) } }
    for _ in 0..<1000 where !engine.kernelNames.isEmpty && engine.statistics.knownKeys < checks.count {
        for check in checks { verifier.granted(check.point) }
        usleep(10_000)
    }
    return { checks, outcomes in try verifier.verify(checks, into: outcomes) }
}

extension Configuration {
    /// Has signatures and hashes go through OpenSSL alone.
    mutating func turnKernelsOff() { usesSignatureKernels = false }

    /// Has every key be new, however often it comes.
    mutating func forgetKeys() { knownKeyBytesMax = 0 }
}
