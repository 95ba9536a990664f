/// What a sandbox consists of.
package struct SandboxReport: Sendable {
    /// The restrictions that hold from now on, on every thread.
    package var inForce: [String] = []
    /// The restrictions that don't hold, each with the reason.
    package var missing: [String] = []

    package init() {}

    package var isWhole: Bool { missing.isEmpty }
}

extension SandboxReport: CustomStringConvertible {
    /// One line.
    package var description: String {
        let on = "sandbox: " + (inForce.isEmpty ? "nothing" : inForce.joined(separator: ", "))
        return isWhole ? on : on + "; missing: " + missing.joined(separator: "; ")
    }
}
