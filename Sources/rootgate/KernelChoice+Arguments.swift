import Kernels

extension KernelChoice {
    /// The kernels that `--kernel` names, of those that run with `features`.
    ///
    /// Throws a `UsageError` that says which kernels can run.
    init(_ arguments: Arguments, features: ProcessorFeatures = .permitted) throws {
        guard let names = arguments.text("kernel") else {
            self.init()
            return
        }
        do {
            try self.init(names, features: features)
        } catch {
            throw UsageError("--kernel: \(error.name.escapingControls) \(error.text)")
        }
    }
}
