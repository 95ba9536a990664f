import Foundation
import Kernels
import Testing

struct ProcessorFeaturesTests {
    @Test("A list of features is read, and words that name none are reported")
    func lists() {
        #expect(ProcessorFeatures.listed(in: "none").features == [])
        #expect(ProcessorFeatures.listed(in: "sha, AVX512").features == [.sha, .avx512])
        #expect(ProcessorFeatures.listed(in: "avx2,neon,armsha2").features == [.avx2, .neon, .armsha2])
        let odd = ProcessorFeatures.listed(in: "sha,mmx")
        #expect(odd.features == [.sha])
        #expect(odd.unknown == ["mmx"])
    }

    @Test("A process uses nothing that its processor lacks or that ROOTGATE_CPU forbids")
    func permitted() {
        #expect(ProcessorFeatures.detected.isSuperset(of: .permitted))
        if let list = ProcessInfo.processInfo.environment["ROOTGATE_CPU"] {
            #expect(ProcessorFeatures.listed(in: list).features.isSuperset(of: .permitted))
        } else {
            #expect(ProcessorFeatures.permitted == .detected)
        }
    }

    @Test("Every name of a feature stands for another bit, and the features of one architecture exclude another's")
    func bits() {
        let bits = ProcessorFeatures.names.map(\.features.rawValue).filter { $0 != 0 }
        #expect(bits.count == ProcessorFeatures.names.count - 1)
        #expect(bits.allSatisfy { $0.nonzeroBitCount == 1 })
        #expect(bits.reduce(0, |).nonzeroBitCount == bits.count)
        let arm: ProcessorFeatures = [.neon, .armsha2]
        #expect(ProcessorFeatures.detected.isDisjoint(with: arm) || ProcessorFeatures.detected.isSubset(of: arm))
        #if arch(arm64)
        #expect(ProcessorFeatures.detected.contains(.neon))
        #endif
    }

    #if os(Linux)
    @Test("The features agree with what the kernel says about the processor")
    func systemAgrees() throws {
        let text = try String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("flags") || $0.hasPrefix("Features") })
        let words = Set(line.split(separator: " ").map(String.init))
        let needs: [(ProcessorFeatures, [String])] = [
            (.sha, ["sha_ni", "ssse3", "sse4_1"]), (.avx2, ["avx2", "fma", "bmi2"]),
            (.avx512, ["avx512f", "avx512bw", "avx512dq", "avx512vl"]),
            (.avx512ifma, ["avx512f", "avx512ifma", "avx512vbmi", "bmi2"]), (.neon, ["asimd"]), (.armsha2, ["sha2"]),
        ]
        for (feature, flags) in needs {
            #expect(ProcessorFeatures.detected.contains(feature) == words.isSuperset(of: flags), "\(flags)")
        }
    }
    #endif

    @Test("Every kernel has a name of its own and one kind of functions, and needs nothing only if it is portable")
    func table() {
        let kernels = Kernel.all
        #expect(Set(kernels.map(\.name)).count == kernels.count)
        for kernel in kernels {
            #expect((kernel.sha256 == nil) != (kernel.p256 == nil), "\(kernel.name)")
            #expect(kernel.needs.isEmpty == kernel.name.hasSuffix("-portable"), "\(kernel.name)")
        }
        #expect(Kernel.runnable(with: []).map(\.name) == kernels.map(\.name).filter { $0.hasSuffix("-portable") })
    }
}
