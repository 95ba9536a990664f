package import CKernels

/// One row of the table of kernels.
package struct Kernel: @unchecked Sendable {
    // Sendable without the compiler's proof: points to constants.
    package let name: String
    package let needs: ProcessorFeatures
    package let sha256: UnsafePointer<rg_sha256_functions>?
    package let p256: UnsafePointer<rg_p256_functions>?
    /// P-256 kernels with the same number can use one generator's table.
    package let generatorForm: UInt8

    package init(
        name: String, needs: ProcessorFeatures = [], sha256: UnsafePointer<rg_sha256_functions>? = nil,
        p256: UnsafePointer<rg_p256_functions>? = nil, generatorForm: UInt8 = 0
    ) {
        (self.name, self.needs, self.sha256, self.p256) = (name, needs, sha256, p256)
        self.generatorForm = generatorForm
    }

    /// The name without what the kernel is for.
    package var shortName: String { String(name.drop { $0 != "-" }.dropFirst()) }

    package var kind: Kind { sha256 != nil ? .hashing : .signatures }

    /// What kernels are for.
    package enum Kind: String, Sendable, CaseIterable {
        case signatures, hashing
    }

    /// All kernels that were compiled in.
    package static let all: [Kernel] = UnsafeBufferPointer(start: rg_kernels, count: rg_kernel_count).map { row in
        Kernel(
            name: String(cString: row.name), needs: ProcessorFeatures(rawValue: row.needs), sha256: row.sha256,
            p256: row.p256, generatorForm: row.generator_form)
    }

    /// Finds the kernels that run with `features`.
    package static func runnable(with features: ProcessorFeatures) -> [Kernel] {
        all.filter { features.isSuperset(of: $0.needs) }
    }
}
