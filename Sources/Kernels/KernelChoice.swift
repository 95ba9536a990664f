import Core

/// The kernels that an operator chose by name, at most one of each kind. Without a choice, measurements decide.
package struct KernelChoice: Sendable {
    private var kernels: [Kernel.Kind: Kernel] = [:]

    /// No choice.
    package init() {}

    /// Reads the names of kernels, separated by commas.
    ///
    /// Throws `NotRunnable` when a name is that of no kernel that runs with `features`, or when two kernels are of the
    /// same kind.
    package init(
        _ names: String, features: ProcessorFeatures = .permitted, kernels: [Kernel] = Kernel.all
    ) throws(NotRunnable) {
        let runnable = kernels.filter { features.isSuperset(of: $0.needs) }
        for name in names.split(separator: ",", omittingEmptySubsequences: false) {
            let name = name.filter { $0 != " " }
            guard let kernel = runnable.first(where: { $0.name == name }) else {
                let list = runnable.isEmpty ? "none" : runnable.map(\.name).joined(separator: ", ")
                throw NotRunnable(name: String(name), text: "is no kernel that can run here; these can: \(list)")
            }
            if let other = self.kernels.updateValue(kernel, forKey: kernel.kind) {
                throw NotRunnable(name: String(name), text: "and \(other.name) are both for \(kernel.kind.rawValue)")
            }
        }
    }

    /// The chosen kernel of a kind.
    package subscript(kind: Kernel.Kind) -> Kernel? { kernels[kind] }

    /// The kernels of a kind that may be used: the chosen one, or else all that run with `features`.
    package func candidates(_ kind: Kernel.Kind, with features: ProcessorFeatures) -> [Kernel] {
        self[kind].map { [$0] } ?? Kernel.runnable(with: features).filter { $0.kind == kind }
    }

    private static let process = Lock(KernelChoice())

    /// The choice for this process. It is made before kernels are used for the first time: later it has no effect.
    package static var current: KernelChoice {
        get { process.withLock { $0 } }
        set { process.withLock { $0 = newValue } }
    }

    /// A name was chosen that can't be.
    package struct NotRunnable: Error {
        /// The name as it was given.
        package let name: String
        /// What is wrong with it, as the rest of a sentence that begins with the name.
        package let text: String
    }
}
