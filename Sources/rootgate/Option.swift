import Foundation

/// One option of a command: on the command line `--name VALUE` (or `--name` for
/// a switch), in the environment `ROOTGATE_NAME` with underscores.
struct Option: Sendable {
    let name: String
    /// What the value is, in capitals; empty for a switch.
    let value: String
    let standard: String
    let help: String
    /// Whether it may be given several times.
    let isRepeatable: Bool

    init(switch name: String, _ help: String) {
        self.init(name, "", help)
    }

    init(_ name: String, _ value: String, standard: String = "", isRepeatable: Bool = false, _ help: String) {
        self.name = name
        self.value = value
        self.standard = standard
        self.help = help
        self.isRepeatable = isRepeatable
    }

    var isSwitch: Bool { value.isEmpty }
    var variable: String {
        "ROOTGATE_" + String(name.uppercased().map { $0 == "-" || $0 == "." ? "_" : $0 })
    }
}
