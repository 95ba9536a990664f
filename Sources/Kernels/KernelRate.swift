/// What was measured of a kernel that is in use, or of the library beside it.
package struct KernelRate: Sendable {
    /// What stands for libcrypto among the names of kernels.
    package static let libcryptoName = "openssl"

    /// The kernel's name, or libcrypto's.
    package let name: String
    /// What was measured: hashes of 64 bytes, signatures by new keys, or signatures by keys with tables.
    package let work: Work
    /// Items a second, in the largest batches that were measured.
    package let perSecond: Double
    /// The sizes of batches that it gets, of those that were measured.
    package let sizes: [Int]

    package enum Work: String, Sendable {
        case hashes
        case newKeys = "new"
        case knownKeys = "known"
    }

    package init(name: String, work: Work, perSecond: Double, sizes: [Int]) {
        (self.name, self.work, self.perSecond, self.sizes) = (name, work, perSecond, sizes)
    }

    /// The rates that a plan has of its contenders with these names: of those that are in use.
    package static func rates(_ work: Work, _ plan: BatchPlan, names: [String]) -> [KernelRate] {
        plan.used.sorted().map { index in
            KernelRate(
                name: names[index], work: work, perSecond: plan.contenders[index].rate, sizes: plan.sizes(of: index))
        }
    }
}
