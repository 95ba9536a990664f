import Core
import Foundation
import Server

let checkConfigCommand = Command(
    "check-config", "check the options of a service without starting it, and print them",
    options: serviceOptions + [.json]
) { arguments in
    let configuration = try Configuration(arguments)
    _ = try SandboxChoice(arguments)
    _ = try LogChoice(arguments)
    try Service.check(configuration)
    let options = EffectiveOptions(arguments)
    printNow(arguments.isOn("json") ? try json(options.json) : options.text)
    return .success
}

/// The options of a service, and where each comes from.
struct EffectiveOptions {
    private struct Entry {
        let name: String
        let text: String
        let source: Arguments.Source
    }

    private let entries: [Entry]
    private let path: String?

    init(_ arguments: Arguments) {
        path = arguments.file?.path
        entries = serviceOptions.filter { $0.name != ConfigurationFile.option }.compactMap { option in
            arguments.value(option.name).map { value in
                let text = option.isSwitch ? (arguments.isOn(option.name) ? "on" : "off") : value.text
                return Entry(name: option.name, text: text, source: value.source)
            }
        }
    }

    private func title(_ source: Arguments.Source) -> String {
        switch source {
        case .commandLine: "from the command line"
        case .environment: "from the environment"
        case .file: "from \(path ?? "the file")"
        case .standard: "defaults"
        }
    }

    /// A file that `--config` takes, with the same effect.
    var text: String {
        [Arguments.Source.commandLine, .environment, .file, .standard].compactMap { source in
            let lines = entries.filter { $0.source == source }.map { "\($0.name) = \($0.text.escapingControls)" }
            return lines.isEmpty ? nil : (["# \(title(source).escapingControls)"] + lines).joined(separator: "\n")
        }.joined(separator: "\n\n")
    }

    var json: [String: Any] {
        let names: [Arguments.Source: String] = [
            .commandLine: "command-line", .environment: "environment", .file: "file", .standard: "default",
        ]
        var object: [String: Any] = [
            "options": entries.map { ["name": $0.name, "value": $0.text, "source": names[$0.source] ?? ""] }
        ]
        object["file"] = path
        return object
    }
}
