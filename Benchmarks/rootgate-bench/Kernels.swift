import Core
import Server
import Signatures

// What the benchmarks know of the ways to verify a signature, all in one place.

/// Verifies a batch of signatures.
typealias VerifyBatch = (UnsafeBufferPointer<SignatureCheck>, UnsafeMutableBufferPointer<SignatureOutcome>) throws -> Void

/// The kernels that signatures and hashes go through on this machine.
func kernelNames() -> [String] {
    ["libcrypto"]
}

/// A verifier that never saw a key before, as often as it may be asked.
func newKeyVerifier() throws -> VerifyBatch {
    let verifier = try SignatureVerifier()
    return { checks, outcomes in try verifier.verify(checks, into: outcomes) }
}

/// A verifier that knows the keys of `checks`, with all that it prepares for such keys already prepared.
func knownKeyVerifier(_ checks: [SignatureCheck]) throws -> VerifyBatch {
    try newKeyVerifier()
}

extension Configuration {
    /// Has signatures and hashes go through OpenSSL alone.
    mutating func turnKernelsOff() {}
}
