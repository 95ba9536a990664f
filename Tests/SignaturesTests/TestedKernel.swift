import KernelEmulation
import Kernels
@testable import Signatures

/// The signature kernel of these tests: that of the processor, or the emulated one where the processor has none.
/// `nil` where ROOTGATE_CPU leaves none.
let testedKernel: SignatureKernel? = {
    if let kernel = SignatureKernel.standard { return kernel }
    guard ProcessorFeatures.permitted == .detected else { return nil }
    let kernels = (0..<rg_emulated_kernel_count).map { index in
        Kernel(name: String(cString: rg_emulated_kernels[index].name), p256: rg_emulated_kernels[index].p256)
    }
    return SignatureKernel(untimed: kernels)
}()

/// An engine with that kernel, unless the configuration is without kernels.
func testedEngine(_ configuration: SignatureEngine.Configuration) -> SignatureEngine {
    SignatureEngine(configuration, kernel: configuration.usesKernels ? testedKernel : nil, log: .none)
}
