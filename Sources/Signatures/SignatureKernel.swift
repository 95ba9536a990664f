import CKernels
import Core
import Kernels

/// The P-256 kernels that verify signatures, and which of them gets a batch of which size: a narrow one small batches,
/// a wide one large ones, and libcrypto those for which it is the quickest.
///
/// Sendable without the compiler's proof: nothing changes after `init`.
final class SignatureKernel: @unchecked Sendable {
    /// A kernel, and the generator's table that it uses.
    struct Member {
        let kernel: Kernel
        let functions: UnsafePointer<rg_p256_functions>
        let generator: GeneratorTable

        /// Members with the same number can use each other's tables of known keys.
        var knownForm: UInt8 { functions.pointee.known_form }
    }

    /// The kernels of the plans, in the order of their contenders. The contender behind the last is libcrypto.
    private let members: [Member]
    private let newPlan: BatchPlan
    private let knownPlan: BatchPlan
    /// The kernel that builds the tables of known keys. All kernels of the plan for known keys can use them.
    private let builder: Member
    /// Of the kernels in use and, where it is, of libcrypto; empty when nothing was measured.
    let rates: [KernelRate]
    /// How many checks fit into a portion while peers take turns.
    let sharedPortion: Int

    /// `members` are not empty, and live forever. Contender number `members.count` of a plan is libcrypto.
    init(_ members: [Member], newPlan: BatchPlan, knownPlan: BatchPlan, builder: Int, isMeasured: Bool = true) {
        precondition(newPlan.capacity == KernelBatch.capacity && knownPlan.capacity == KernelBatch.capacity)
        precondition(newPlan.contenders.count <= members.count + 1, "a plan has a contender that is nobody")
        precondition(knownPlan.contenders.count == newPlan.contenders.count, "the plans have different contenders")
        let builderForm = members[builder].knownForm
        precondition(
            knownPlan.used.allSatisfy { $0 == members.count || members[$0].knownForm == builderForm },
            "a kernel gets tables that it can't read")
        (self.members, self.newPlan, self.knownPlan) = (members, newPlan, knownPlan)
        self.builder = members[builder]
        let sharedSeconds = Double(Limits.sharedPortionMicroseconds) / 1e6
        sharedPortion =
            isMeasured
            ? min(
                max(newPlan.count(within: sharedSeconds), newPlan.filled(1)), Limits.proofsPerSharedPortionMax)
            : Limits.proofsPerSharedPortionMax
        let names = members.map(\.kernel.name) + [KernelRate.libcryptoName]
        rates =
            isMeasured
            ? KernelRate.rates(.newKeys, newPlan, names: names) + KernelRate.rates(.knownKeys, knownPlan, names: names)
            : []
    }

    /// The kernels that batches of some size are given to, and the one that builds tables.
    var membersInUse: [Member] {
        let used = newPlan.used.union(knownPlan.used)
        return members.indices.filter { used.contains($0) || members[$0].kernel.name == builder.kernel.name }
            .map { members[$0] }
    }

    /// The names of the kernels in use.
    var names: [String] { membersInUse.map(\.kernel.name) }

    /// Whether the plan for keys with tables uses a kernel. Otherwise tables are of no use.
    var usesTables: Bool { knownPlan.used != [members.count] }

    /// Bytes of the workspace that a call needs, aligned to `RG_P256_ALIGNMENT`.
    var workspaceBytes: Int { members.map { Int($0.functions.pointee.workspace_bytes) }.max() ?? 0 }

    /// Rounds `count` up: how many checks take as much time as `count` of them. A step takes as long with unused lanes
    /// as without.
    func filled(_ count: Int) -> Int {
        let rest = count % newPlan.capacity
        return rest == 0 ? count : count - rest + newPlan.filled(rest)
    }

    /// Computes the outcomes of a batch. Those that libcrypto is to compute are undecided.
    func verify(_ batch: KernelBatch, workspace: UnsafeMutableRawPointer) {
        assert(batch.count <= KernelBatch.capacity, "a batch has more checks than its capacity")
        let split = (batch.isKnown ? knownPlan : newPlan)[batch.count]
        verify(batch, 0..<split.count, split.first, workspace)
        verify(batch, split.count..<batch.count, split.rest, workspace)
    }

    private func verify(
        _ batch: KernelBatch, _ range: Range<Int>, _ contender: Int, _ workspace: UnsafeMutableRawPointer
    ) {
        guard !range.isEmpty else { return }
        let start = range.lowerBound
        guard contender < members.count else {
            for index in range { batch.outcomes[index] = UInt8(RG_P256_UNDECIDED.rawValue) }
            return
        }
        let member = members[contender]
        if batch.isKnown {
            member.functions.pointee.verify_known(
                batch.checks.baseAddress + start, batch.tables.baseAddress + start, range.count,
                member.generator.address, workspace, batch.outcomes.baseAddress + start)
        } else {
            member.functions.pointee.verify(
                batch.checks.baseAddress + start, range.count, member.generator.address, workspace,
                batch.outcomes.baseAddress + start)
        }
    }

    /// Bytes of a known key's table, as `build` makes it.
    var knownKeyBytes: Int { Int(builder.functions.pointee.known_bytes) }
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
        return builder.functions.pointee.build_known(points, tables, count, workspace) != 0
    }
}
