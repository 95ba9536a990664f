import CKernels
import KernelEmulation
import Testing

@testable import Signatures

@Suite("What a signature costs in operations on whole vectors", .serialized)
struct OperationCountTests {
    /// Cases that are all valid. The points are not compressed: who has a compressed one pays for a square root.
    private func cases(_ count: Int) throws -> [SignatureCase] {
        let maker = try SignatureCases(seed: 1, keys: 64, nonces: 64)
        var cases: [SignatureCase] = []
        while cases.count < count {
            let check = try maker.ordinary(.none)
            if check.point.count == 65 { cases.append(check) }
        }
        return cases
    }

    /// The handbook tells these counts, and what follows from them for a processor.
    @Test(
        "The kernel for AVX-512 IFMA does no more operations a signature than the handbook tells",
        arguments: [(8, 24_100.0, 17_900.0), (256, 23_300, 17_600)])
    func counts(_ batch: Int, _ multiplyAdds: Double, _ simple: Double) throws {
        let native = try #require(NamedKernel.nativeP256.first).equipped()
        let counted = EquippedKernel(rg_p256_counted, generator: native.generator)
        let cases = try cases(batch)
        _ = rg_take_operations()
        let outcomes = try #require(counted.outcomes(of: cases))
        #expect(outcomes.allSatisfy { $0 == UInt8(RG_P256_VALID.rawValue) })
        let operations = rg_take_operations()
        let multiplyAddsDone = Double(operations.multiply_adds) / Double(batch)
        let simpleDone = Double(operations.simple) / Double(batch)
        print("\(batch) at once: \(multiplyAddsDone) multiply-adds and \(simpleDone) simple operations a signature")
        // The repair of lanes that meet an exceptional case depends on the keys, and is rare.
        #expect((0.98 * multiplyAdds...1.01 * multiplyAdds).contains(multiplyAddsDone))
        #expect((0.98 * simple...1.01 * simple).contains(simpleDone))
    }
}
