import CKernels
import Testing

@testable import Hashing
@testable import Signatures

struct SelfTestTests {
    private static let signatures = try? SignatureSelfTest()

    @Test("The signature self-test passes the true kernels", arguments: NamedKernel.allP256)
    func trueKernels(kernel: NamedKernel) throws {
        let selfTest = try #require(Self.signatures), equipped = try kernel.equipped()
        #expect(selfTest.failure(of: equipped.kernel, generator: equipped.generator) == nil)
    }

    @Test("The signature self-test refuses every mutant", arguments: NamedKernel.p256Mutants)
    func mutants(kernel: NamedKernel) throws {
        let selfTest = try #require(Self.signatures), equipped = try kernel.equipped()
        #expect(selfTest.failure(of: equipped.kernel, generator: equipped.generator) != nil)
    }

    @Test("There is a mutant for every layer of the P-256 kernels and of the SHA-256 kernels")
    func mutantCount() {
        #expect(NamedKernel.p256Mutants.count >= 20)
        #expect(NamedKernel.sha256.isEmpty || NamedKernel.sha256Mutants.count >= 4)
    }

    @Test("The hash self-test passes the true kernels", arguments: NamedKernel.sha256)
    func trueHashKernels(kernel: NamedKernel) throws {
        #expect(HashSelfTest.failure(of: try #require(kernel.sha256)) == nil)
    }

    @Test("The hash self-test refuses every mutant", arguments: NamedKernel.sha256Mutants)
    func hashMutants(kernel: NamedKernel) throws {
        #expect(HashSelfTest.failure(of: try #require(kernel.sha256)) != nil)
    }
}
