import CKernels
import KernelEmulation
import KernelMutants
import Testing

@testable import Signatures

/// A kernel of the table, an emulated kernel or a mutant, by its name: pointers are not sendable, indices into constant
/// tables are.
struct NamedKernel: Sendable, CustomTestStringConvertible {
    enum Table {
        case kernels, emulated, mutants
    }

    let index: Int
    let table: Table

    private var kernel: rg_kernel {
        switch table {
        case .kernels: rg_kernels[index]
        case .emulated: rg_emulated_kernels[index]
        case .mutants: rg_mutants[index]
        }
    }

    var name: String { String(cString: kernel.name) }
    var p256: UnsafePointer<rg_p256_functions>? { kernel.p256 }
    var sha256: UnsafePointer<rg_sha256_functions>? { kernel.sha256 }
    var canRun: Bool { kernel.needs & ~rg_cpu_features() == 0 }
    var testDescription: String { name }

    private static let all: [NamedKernel] = (0..<rg_kernel_count).map { NamedKernel(index: $0, table: .kernels) }
    private static let emulated: [NamedKernel] = (0..<rg_emulated_kernel_count).map {
        NamedKernel(index: $0, table: .emulated)
    }
    private static let mutants: [NamedKernel] = (0..<rg_mutant_count).map { NamedKernel(index: $0, table: .mutants) }

    /// The kernels that this processor can run.
    static let nativeP256: [NamedKernel] = all.filter { $0.p256 != nil && $0.canRun }
    /// The same, and the emulated kernels but for those of a native one: every processor can run them.
    static let p256: [NamedKernel] =
        nativeP256 + emulated.filter { emulation in !nativeP256.contains { emulation.name.hasPrefix("\($0.name),") } }
    /// With all emulated kernels.
    static let allP256: [NamedKernel] = nativeP256 + emulated
    static let sha256 = all.filter { $0.sha256 != nil && $0.canRun }
    static let p256Mutants = mutants.filter { $0.p256 != nil && $0.canRun }
    static let sha256Mutants = mutants.filter { $0.sha256 != nil && $0.canRun }
    /// The names of the kernels that can only be emulated here, or not be tested.
    static let untested = (all + mutants).filter { !$0.canRun }.map(\.name)

    /// One of so many cases for an emulated kernel, which is slow; all for the others.
    func sample<T>(_ cases: [T], oneIn interval: Int) -> [T] {
        guard table == .emulated else { return cases }
        return stride(from: 0, to: cases.count, by: interval).map { cases[$0] }
    }

    /// The kernel with memory of its own, and with the generator's table that all kernels of its kind share. (An
    /// emulated kernel takes seconds to build it.)
    func equipped() throws -> EquippedKernel {
        let shared = table == .kernels ? Self.nativeGenerator : Self.emulatedGenerator
        return EquippedKernel(try #require(p256), generator: try #require(shared).generator)
    }

    private nonisolated(unsafe) static let nativeGenerator: EquippedKernel? = nativeP256.first?.p256.map {
        EquippedKernel($0)
    }
    private nonisolated(unsafe) static let emulatedGenerator: EquippedKernel? = emulated.last?.p256.map {
        EquippedKernel($0)
    }
}

struct KernelTableTests {
    @Test("Every kernel has a name of its own and functions of one kind")
    func table() {
        var names: Set<String> = []
        for index in 0..<rg_kernel_count {
            let kernel = rg_kernels[index]
            #expect(names.insert(String(cString: kernel.name)).inserted)
            #expect((kernel.p256 == nil) != (kernel.sha256 == nil))
            #expect((kernel.needs == 0) == String(cString: kernel.name).hasSuffix("-portable"))
        }
        for index in 0..<rg_emulated_kernel_count {
            #expect(names.insert(String(cString: rg_emulated_kernels[index].name)).inserted)
        }
    }

    // Its skip shows in the report what the other tests had to leave out.
    @Test(
        "This processor can run every kernel, so that none is left out",
        .enabled(
            if: NamedKernel.untested.isEmpty,
            "this processor can't run \(NamedKernel.untested.joined(separator: ", "))"))
    func everyKernelRuns() {
        #expect(NamedKernel.nativeP256.count + NamedKernel.sha256.count == rg_kernel_count)
    }
}
