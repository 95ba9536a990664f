import Core
import Kernels

extension SignatureKernel {
    /// The kernels that this process uses, if any; and what the kernels that failed their self-test did wrong. The
    /// first use builds the generators' tables of 5 MiB, times the kernels, and tests those that are to be used, which
    /// takes about 0.1 s.
    static let vetted: (kernel: SignatureKernel?, failures: [String]) = {
        let choice = KernelChoice.current
        return vetted(choice.candidates(.signatures, with: .permitted), isChosen: choice[.signatures] != nil)
    }()

    static var standard: SignatureKernel? { vetted.kernel }

    /// Selects among these kernels and libcrypto. A kernel that was chosen by name verifies everything. The kernels
    /// have functions for P-256, and the processor can run them.
    static func vetted(_ kernels: [Kernel], isChosen: Bool) -> (kernel: SignatureKernel?, failures: [String]) {
        guard !kernels.isEmpty else { return (nil, []) }
        var failures: [String] = []
        do throws(ServiceError) {
            let test = try SignatureSelfTest()
            let samples = test.samples
            var members = members(of: kernels, sharesTables: true)
            var sharesTables = true
            while !members.isEmpty {
                guard let selected = try select(members, samples, withLibcrypto: !isChosen) else { break }
                // Only what is to be used is tested: the test of a slow kernel takes longer than all others.
                let failed = selected.membersInUse.compactMap { member in
                    test.failure(of: member.functions, generator: member.generator.address).map { (member, $0) }
                }
                if failed.isEmpty { return (selected, failures) }
                if sharesTables {
                    // The table that another one built may be to blame. With tables of their own, nobody else is.
                    sharesTables = false
                    members = SignatureKernel.members(of: kernels, sharesTables: false)
                    continue
                }
                failures += failed.map { "\($0.kernel.name): \($1)" }
                members.removeAll { member in failed.contains { $0.0.kernel.name == member.kernel.name } }
            }
        } catch {
            failures.append(error.description)
        }
        return (nil, failures)
    }

    /// Kernels of one form may share a table of the generator, which the first of them builds.
    private static func members(of kernels: [Kernel], sharesTables: Bool) -> [Member] {
        var generators: [UInt8: GeneratorTable] = [:]
        return kernels.compactMap { kernel in
            guard let functions = kernel.p256 else { return nil }
            let shared = sharesTables ? generators[kernel.generatorForm] : nil
            let generator = shared ?? GeneratorTable(builtBy: functions)
            generators[kernel.generatorForm] = generator
            return Member(kernel: kernel, functions: functions, generator: generator)
        }
    }

    /// Times the members and decides which of them gets batches of which size. `nil` when libcrypto is the quickest for
    /// all.
    ///
    /// Throws `internalFault` when libcrypto can't allocate.
    private static func select(
        _ members: [Member], _ samples: [SignatureCase], withLibcrypto: Bool
    ) throws(ServiceError) -> SignatureKernel? {
        let timing = try SignatureTiming(samples)
        let new = timing.times(of: members, isKnown: false, withLibcrypto: withLibcrypto)
        let known = timing.times(of: members, isKnown: true, withLibcrypto: withLibcrypto)
        return selection(members, new: new, known: known)
    }

    /// Decides by these times, of the members and then perhaps of libcrypto.
    static func selection(_ members: [Member], new: [BatchPlan.Times], known: [BatchPlan.Times]) -> SignatureKernel? {
        // Tables are of the form of the kernel that is the quickest with large batches. It builds them, too.
        let builder = members.indices.max { known[$0].rate < known[$1].rate } ?? 0
        let form = members[builder].knownForm
        let readable = known.indices.map { index in
            index == members.count || members[index].knownForm == form ? known[index] : .never
        }
        let used = BatchPlan(new, capacity: KernelBatch.capacity).used
            .union(BatchPlan(readable, capacity: KernelBatch.capacity).used)
        guard used.contains(where: { $0 < members.count }) else { return nil }
        // Without the members that get no batch, so that their generators' tables are freed.
        let kept = members.indices.filter { used.contains($0) || $0 == builder }
        let contenders = kept + (new.count > members.count ? [members.count] : [])
        return SignatureKernel(
            kept.map { members[$0] }, newPlan: BatchPlan(contenders.map { new[$0] }, capacity: KernelBatch.capacity),
            knownPlan: BatchPlan(contenders.map { readable[$0] }, capacity: KernelBatch.capacity),
            builder: kept.firstIndex(of: builder) ?? 0)
    }
}

extension SignatureKernel {
    /// Uses these kernels by their widths alone, and no libcrypto. Nothing is timed or tested. Tables are of the form
    /// of the first.
    convenience init(untimed kernels: [Kernel]) {
        let members = SignatureKernel.members(of: kernels, sharesTables: true)
        let times = members.map { BatchPlan.Times(nominalOfWidth: Int($0.functions.pointee.width)) }
        let readable = zip(members, times).map { $0.knownForm == members[0].knownForm ? $1 : .never }
        self.init(
            members, newPlan: BatchPlan(times, capacity: KernelBatch.capacity),
            knownPlan: BatchPlan(readable, capacity: KernelBatch.capacity), builder: 0, isMeasured: false)
    }
}
