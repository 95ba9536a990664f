import CKernels
import Core

/// A table of the generator's multiples, which kernels of one form share.
///
/// Sendable without the compiler's proof: nothing changes after `init`.
final class GeneratorTable: @unchecked Sendable {
    private let points: ScratchBuffer<UInt64>

    /// Has a kernel build its table, which takes some tens of milliseconds or more.
    init(builtBy kernel: UnsafePointer<rg_p256_functions>) {
        // Aligned to pages, so that the table touches as few of them as possible.
        points = ScratchBuffer(
            uninitializedCount: RG_P256_GENERATOR_BYTES / MemoryLayout<UInt64>.stride, alignment: 4096)
        let workspace = ScratchBuffer<UInt8>(
            uninitializedCount: kernel.pointee.workspace_bytes, alignment: RG_P256_ALIGNMENT)
        kernel.pointee.build_generator(points.baseAddress, workspace.baseAddress)
    }

    var address: UnsafePointer<UInt64> { UnsafePointer(points.baseAddress) }
}
