import KernelEmulation
import Kernels
@testable import Signatures

/// The signature kernel of these tests: that of the processor, or the emulated one where the processor has none.
/// `nil` where ROOTGATE_CPU leaves none.
let testedKernel: SignatureKernel? = {
    if let kernel = SignatureKernel.standard { return kernel }
    guard ProcessorFeatures.permitted == .detected, let wide = rg_emulated_kernels[0].p256,
        let narrow = rg_emulated_kernels[rg_emulated_kernel_count - 1].p256
    else { return nil }
    let names = (0..<rg_emulated_kernel_count).map { String(cString: rg_emulated_kernels[$0].name) }
    return SignatureKernel(wide: wide, narrow: narrow, names: names)
}()

/// An engine with that kernel, unless the configuration is without kernels.
func testedEngine(_ configuration: SignatureEngine.Configuration) -> SignatureEngine {
    SignatureEngine(configuration, kernel: configuration.usesKernels ? testedKernel : nil) { _ in }
}
