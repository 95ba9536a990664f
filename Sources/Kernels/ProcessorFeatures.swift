package import CKernels
import Foundation

/// What a processor can do that kernels need.
package struct ProcessorFeatures: OptionSet, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// SHA-NI.
    package static let sha = ProcessorFeatures(rawValue: UInt32(RG_CPU_SHA))
    /// AVX-512 F, BW, DQ and VL.
    package static let avx512 = ProcessorFeatures(rawValue: UInt32(RG_CPU_AVX512))
    /// AVX-512 IFMA and VBMI.
    package static let avx512ifma = ProcessorFeatures(rawValue: UInt32(RG_CPU_AVX512IFMA))

    /// The names that `ROOTGATE_CPU` takes, and what they stand for.
    package static let names: [(name: String, features: ProcessorFeatures)] = [
        ("none", []), ("sha", .sha), ("avx512", .avx512), ("avx512ifma", .avx512ifma),
    ]

    /// What this processor can do.
    package static let detected = ProcessorFeatures(rawValue: rg_cpu_features())

    /// What this process may use of it: everything, or what the environment variable `ROOTGATE_CPU` lists, names
    /// with commas between.
    package static let permitted: ProcessorFeatures = {
        guard let list = ProcessInfo.processInfo.environment["ROOTGATE_CPU"] else { return detected }
        return detected.intersection(listed(in: list).features)
    }()

    /// The features that a list names, and the words in it that name none.
    package static func listed(in list: String) -> (features: ProcessorFeatures, unknown: [String]) {
        var features: ProcessorFeatures = []
        var unknown: [String] = []
        for word in list.split(separator: ",").map({ $0.trimmingCharacters(in: .whitespaces).lowercased() }) {
            if let known = names.first(where: { $0.name == word }) {
                features.formUnion(known.features)
            } else {
                unknown.append(word)
            }
        }
        return (features, unknown)
    }
}

/// One row of the table of kernels.
package struct Kernel: @unchecked Sendable {
    // Sendable without the compiler's proof: points to constants.
    package let name: String
    package let needs: ProcessorFeatures
    package let sha256: UnsafePointer<rg_sha256_functions>?
    package let p256: UnsafePointer<rg_p256_functions>?

    /// All that were compiled in, best first within each kind.
    package static let all: [Kernel] = UnsafeBufferPointer(start: rg_kernels, count: rg_kernel_count).map { row in
        Kernel(
            name: String(cString: row.name), needs: ProcessorFeatures(rawValue: row.needs), sha256: row.sha256,
            p256: row.p256)
    }

    /// Those that run with `features`.
    package static func runnable(with features: ProcessorFeatures) -> [Kernel] {
        all.filter { features.isSuperset(of: $0.needs) }
    }
}
