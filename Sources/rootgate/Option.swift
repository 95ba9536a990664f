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

    /// Whether a switch is on that has this value in the environment or in a file; `nil`: the value says neither that
    /// nor the contrary.
    static func isOn(_ value: String) -> Bool? {
        switch value.lowercased() {
        case "0", "no", "false", "off": false
        case "1", "yes", "true", "on": true
        default: nil
        }
    }

    var variable: String {
        "ROOTGATE_" + String(name.uppercased().map { $0 == "-" || $0 == "." ? "_" : $0 })
    }
}
