import CKernels
import Core
import Kernels

/// Two P-256 kernels that share a generator's table: a wide one for batches and a narrow one for the rest of a batch.
///
/// Sendable without the compiler's proof: nothing changes after `init`.
final class SignatureKernel: @unchecked Sendable {
    private let wide: UnsafePointer<rg_p256_functions>
    private let narrow: UnsafePointer<rg_p256_functions>
    private let generator: ScratchBuffer<UInt64>
    let names: [String]

    /// The kernels that this process uses, if any; or why a kernel failed its self-test. The first use builds the
    /// generator's table of 5 MiB and runs the test, which takes about 0.1 s.
    static let vetted: (kernel: SignatureKernel?, failure: String?) = {
        guard let kernel = SignatureKernel(with: .permitted) else { return (nil, nil) }
        let failure = kernel.selfTestFailure()
        return (failure == nil ? kernel : nil, failure)
    }()

    static var standard: SignatureKernel? { vetted.kernel }

    /// Says what the kernels do wrong; `nil` when they pass.
    private func selfTestFailure() -> String? {
        do throws(ServiceError) {
            let test = try SignatureSelfTest()
            return test.failure(of: wide, generator: generator.baseAddress)
                ?? test.failure(of: narrow, generator: generator.baseAddress)
        } catch {
            return error.description
        }
    }

    convenience init?(with features: ProcessorFeatures) {
        let kernels = Kernel.runnable(with: features).filter { $0.p256 != nil }
            .sorted { ($0.p256?.pointee.width ?? 0) > ($1.p256?.pointee.width ?? 0) }
        guard let wide = kernels.first?.p256, let narrow = kernels.last?.p256 else { return nil }
        self.init(wide: wide, narrow: narrow, names: kernels.map(\.name))
    }

    /// `wide` and `narrow` must live forever. They may be the same.
    init(wide: UnsafePointer<rg_p256_functions>, narrow: UnsafePointer<rg_p256_functions>, names: [String]) {
        self.wide = wide
        self.narrow = narrow
        self.names = names
        precondition(wide.pointee.width >= narrow.pointee.width, "the wide kernel is narrower than the narrow one")
        // Aligned to pages, so that the table touches as few of them as possible.
        generator = ScratchBuffer(
            uninitializedCount: RG_P256_GENERATOR_BYTES / MemoryLayout<UInt64>.stride, alignment: 4096)
        let workspace = ScratchBuffer<UInt8>(
            uninitializedCount: wide.pointee.workspace_bytes, alignment: RG_P256_ALIGNMENT)
        wide.pointee.build_generator(generator.baseAddress, workspace.baseAddress)
    }

    /// Bytes of the workspace that a call needs, aligned to `RG_P256_ALIGNMENT`.
    var workspaceBytes: Int { max(wide.pointee.workspace_bytes, narrow.pointee.workspace_bytes) }

    /// Rounds `count` up: how many checks take as much time as `count` of them. A step takes as long with unused lanes
    /// as without.
    func filled(_ count: Int) -> Int {
        let rest = count % wide.pointee.width
        guard rest > 0 else { return count }
        return count - rest + (rest > narrow.pointee.width ? wide : narrow).pointee.width
    }

    /// Computes the outcomes of a batch.
    func verify(_ batch: KernelBatch, workspace: UnsafeMutableRawPointer) {
        assert(batch.count <= KernelBatch.capacity, "a batch has more checks than its capacity")
        // The wide kernel takes whole steps, and also a rest that is longer than one step of the narrow kernel.
        let rest = batch.count % wide.pointee.width
        let first = rest > narrow.pointee.width ? batch.count : batch.count - rest
        if first > 0 { verify(batch, 0..<first, wide, workspace) }
        if first < batch.count { verify(batch, first..<batch.count, narrow, workspace) }
    }

    private func verify(
        _ batch: KernelBatch, _ range: Range<Int>, _ functions: UnsafePointer<rg_p256_functions>,
        _ workspace: UnsafeMutableRawPointer
    ) {
        let start = range.lowerBound
        if batch.isKnown {
            functions.pointee.verify_known(
                batch.checks.baseAddress + start, batch.tables.baseAddress + start, range.count, generator.baseAddress,
                workspace, batch.outcomes.baseAddress + start)
        } else {
            functions.pointee.verify(
                batch.checks.baseAddress + start, range.count, generator.baseAddress, workspace,
                batch.outcomes.baseAddress + start)
        }
    }

    /// Bytes of a known key's table.
    static let knownKeyBytes = RG_P256_KNOWN_BYTES
    /// Keys whose tables one call builds, at most.
    static let buildMax = RG_P256_BUILD_MAX

    /// Builds the tables of at most `buildMax` points; false when one of them is not on the curve.
    func build(
        _ points: UnsafePointer<UnsafePointer<UInt8>?>, _ tables: UnsafePointer<UnsafeMutablePointer<UInt64>?>,
        count: Int, workspace: UnsafeMutableRawPointer
    ) -> Bool {
        precondition(
            (1...SignatureKernel.buildMax).contains(count),
            "a build does not have 1 to \(SignatureKernel.buildMax) keys")
        let functions = count > narrow.pointee.width ? wide : narrow
        return functions.pointee.build_known(points, tables, count, workspace) != 0
    }
}
