import CKernels
import Foundation

/// Features of a processor that kernels need.
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
    /// AVX2, FMA and BMI2.
    package static let avx2 = ProcessorFeatures(rawValue: UInt32(RG_CPU_AVX2))
    /// NEON of ARMv8.
    package static let neon = ProcessorFeatures(rawValue: UInt32(RG_CPU_NEON))
    /// The SHA-2 instructions of ARMv8.
    package static let armsha2 = ProcessorFeatures(rawValue: UInt32(RG_CPU_ARM_SHA2))

    /// The names that `ROOTGATE_CPU` accepts, with their features.
    package static let names: [(name: String, features: ProcessorFeatures)] = [
        ("none", []), ("sha", .sha), ("avx2", .avx2), ("avx512", .avx512), ("avx512ifma", .avx512ifma),
        ("neon", .neon), ("armsha2", .armsha2),
    ]

    /// All features of this processor.
    package static let detected = ProcessorFeatures(rawValue: rg_cpu_features())

    /// The features that this process may use. The environment variable `ROOTGATE_CPU` limits them to the names that it
    /// lists, separated by commas. Without it the process uses all.
    package static let permitted: ProcessorFeatures = {
        guard let list = ProcessInfo.processInfo.environment["ROOTGATE_CPU"] else { return detected }
        return detected.intersection(listed(in: list).features)
    }()

    /// Words of `ROOTGATE_CPU` that name no feature.
    package static var unknownWords: [String] {
        ProcessInfo.processInfo.environment["ROOTGATE_CPU"].map { listed(in: $0).unknown } ?? []
    }

    /// Parses a list of names into features. Returns words that are no such name as `unknown`.
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
