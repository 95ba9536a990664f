import CKernels
import KernelMutants
import Testing

/// A kernel of the table, or a mutant, by its name: pointers are not sendable, indices into constant tables are.
struct NamedKernel: Sendable, CustomTestStringConvertible {
    let index: Int
    let isMutant: Bool

    private var kernel: rg_kernel { isMutant ? rg_mutants[index] : rg_kernels[index] }

    var name: String { String(cString: kernel.name) }
    var p256: UnsafePointer<rg_p256_functions>? { kernel.p256 }
    var sha256: UnsafePointer<rg_sha256_functions>? { kernel.sha256 }
    var canRun: Bool { kernel.needs & ~rg_cpu_features() == 0 }
    var testDescription: String { name }

    private static let all = (0..<rg_kernel_count).map { NamedKernel(index: $0, isMutant: false) }
    private static let mutants = (0..<rg_mutant_count).map { NamedKernel(index: $0, isMutant: true) }

    static let p256 = all.filter { $0.p256 != nil && $0.canRun }
    static let sha256 = all.filter { $0.sha256 != nil && $0.canRun }
    static let p256Mutants = mutants.filter { $0.p256 != nil && $0.canRun }
    static let sha256Mutants = mutants.filter { $0.sha256 != nil && $0.canRun }
    /// The names of the kernels that nothing here can test.
    static let untested = (all + mutants).filter { !$0.canRun }.map(\.name)
}

struct KernelTableTests {
    @Test("Every kernel has a name of its own and functions of one kind")
    func table() {
        var names: Set<String> = []
        for index in 0..<rg_kernel_count {
            let kernel = rg_kernels[index]
            #expect(names.insert(String(cString: kernel.name)).inserted)
            #expect((kernel.p256 == nil) != (kernel.sha256 == nil))
            #expect(kernel.needs != 0)
        }
    }

    // Its skip shows in the report what the other tests had to leave out.
    @Test(
        "This processor can run every kernel, so that none is left out",
        .enabled(
            if: NamedKernel.untested.isEmpty,
            "this processor can't run \(NamedKernel.untested.joined(separator: ", "))"))
    func everyKernelRuns() {
        #expect(NamedKernel.p256.count + NamedKernel.sha256.count == rg_kernel_count)
    }
}
