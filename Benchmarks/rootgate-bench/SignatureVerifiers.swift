import Core
import Foundation
import Hashing
import Kernels
import Server
import Signatures

// The ways to verify a signature that the benchmarks compare.

/// Verifies a batch of signatures.
typealias VerifyBatch = (UnsafeBufferPointer<SignatureCheck>, UnsafeMutableBufferPointer<SignatureOutcome>) throws ->
    Void

/// The kernels that verify signatures and compute hashes on this machine.
func kernelNames() -> [String] {
    let names = SignatureEngine(SignatureEngine.Configuration()).kernelNames + BatchHashing.standard.kernelNames
    return names.isEmpty ? ["libcrypto"] : names
}

/// The same with what was measured of them at the start.
func kernelFacts() -> String {
    let rates = SignatureEngine(SignatureEngine.Configuration()).kernelRates + BatchHashing.standard.rates
    var names: [String] = []
    for rate in rates where !names.contains(rate.name) { names.append(rate.name) }
    let facts = names.map { name in
        let works = rates.filter { $0.name == name }.map { "\($0.work.rawValue) \(rounded($0.perSecond))/s" }
        return "\(name) (\(works.joined(separator: ", ")))"
    }
    return facts.isEmpty ? kernelNames().joined(separator: ", ") : facts.joined(separator: "; ")
}

/// A verifier to which every key is new, however often it verifies. It uses `kernel` alone if there is one.
func newKeyVerifier(_ kernel: Kernel? = nil) throws -> VerifyBatch {
    var configuration = SignatureEngine.Configuration()
    configuration.kernel = kernel
    configuration.knownKeyBytesMax = 0
    let verifier = try SignatureVerifier(SignatureEngine(configuration))
    return { checks, outcomes in try verifier.verify(checks, into: outcomes) }
}

/// A verifier to which the keys of `checks` are known: it has tables for them. It uses `kernel` alone if there is one.
func knownKeyVerifier(_ checks: [SignatureCheck], _ kernel: Kernel? = nil) throws -> VerifyBatch {
    var configuration = SignatureEngine.Configuration()
    configuration.kernel = kernel
    let engine = SignatureEngine(configuration)
    let verifier = try SignatureVerifier(engine)
    // Each key is granted twice; then a thread makes its table.
    for _ in 0..<2 { for check in checks { verifier.granted(check.point) } }
    for _ in 0..<1000 where !engine.kernelNames.isEmpty && engine.statistics.knownKeys < checks.count {
        for check in checks { verifier.granted(check.point) }
        usleep(10_000)
    }
    return { checks, outcomes in try verifier.verify(checks, into: outcomes) }
}

extension Configuration {
    /// Verifies signatures with OpenSSL alone.
    mutating func turnKernelsOff() { usesSignatureKernels = false }

    /// Makes no tables, so that every key is new however often it comes.
    mutating func forgetKeys() { knownKeyBytesMax = 0 }
}
