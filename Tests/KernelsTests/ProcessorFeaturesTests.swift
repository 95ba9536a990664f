import Foundation
import Kernels
import Testing

struct ProcessorFeaturesTests {
    @Test("A list of features is read, and words that name none are reported")
    func lists() {
        #expect(ProcessorFeatures.listed(in: "none").features == [])
        #expect(ProcessorFeatures.listed(in: "sha, AVX512").features == [.sha, .avx512])
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

    @Test("Every kernel has a name of its own, one kind of functions, and something that it needs")
    func table() {
        let kernels = Kernel.all
        #expect(Set(kernels.map(\.name)).count == kernels.count)
        for kernel in kernels {
            #expect((kernel.sha256 == nil) != (kernel.p256 == nil), "\(kernel.name)")
            #expect(!kernel.needs.isEmpty, "\(kernel.name)")
        }
        #expect(Kernel.runnable(with: []).isEmpty)
    }
}
