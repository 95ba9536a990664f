/// A page of the manual in the language of roff's man macros, made from the same tables as the help.
struct ManualPage {
    /// The page's name, which is also that of its file without `.1`.
    let name: String
    let text: String

    /// All pages: the program's, and one for each command.
    static func all(_ commands: [Command]) -> [ManualPage] {
        [ManualPage(of: commands)] + commands.map { ManualPage($0) }
    }

    /// The program's page.
    init(of commands: [Command]) {
        var page = ManualWriter("rootgate", "decides whether a device may open a shared document")
        page.section("SYNOPSIS")
        page.line(".B rootgate")
        page.line(".I COMMAND")
        page.paragraph("[options]")
        page.section("DESCRIPTION")
        page.paragraph(
            "Rootgate verifies signed identity proofs of SharedWithYou. Each command has a page of its own, such as "
                + "rootgate-serve(1).")
        page.section("COMMANDS")
        for command in commands { page.item(command.name, "", command.summary) }
        page.ending(commands.map { "rootgate-\($0.name)" })
        (name, text) = ("rootgate", page.text)
    }

    /// The page of a command.
    init(_ command: Command) {
        let name = "rootgate-\(command.name)"
        var page = ManualWriter(name, command.summary)
        page.section("SYNOPSIS")
        page.line(".B rootgate \(ManualWriter.escaped(command.name))")
        page.paragraph("[options] \(command.operands)")
        if !command.verbs.isEmpty {
            page.section("VERBS")
            for verb in command.verbs {
                let options = command.options.map(\.name).filter { verb.options.contains($0) }.map { "--\($0)" }
                let own = options.isEmpty ? "" : ". Options of its own: " + options.joined(separator: ", ")
                page.item(verb.name, verb.operands, verb.summary + own)
            }
        }
        if !command.options.isEmpty {
            page.section("OPTIONS")
            for option in command.options {
                let standard = option.standard.isEmpty ? "" : " (default: \(option.standard))"
                page.item("--" + option.name, option.value, option.help + standard)
            }
        }
        page.ending(["rootgate"])
        (self.name, text) = (name, page.text)
    }
}

/// Writes the lines of a page.
private struct ManualWriter {
    private var lines: [String]

    init(_ name: String, _ summary: String) {
        lines = [
            ".TH \(ManualWriter.escaped(name.uppercased())) 1 \"\" \"Rootgate\"", ".SH NAME",
            "\(ManualWriter.escaped(name)) \\- \(ManualWriter.escaped(summary))",
        ]
    }

    var text: String { lines.joined(separator: "\n") + "\n" }

    /// Text that roff takes as it is: neither a backslash nor the beginning of a line means anything.
    static func escaped(_ text: String) -> String {
        let escaped = text.replacingOccurrences(of: "\\", with: "\\e").replacingOccurrences(of: "-", with: "\\-")
        return escaped.hasPrefix(".") || escaped.hasPrefix("'") ? "\\&" + escaped : escaped
    }

    mutating func line(_ text: String) { lines.append(text) }
    mutating func section(_ title: String) { lines.append(".SH \(title)") }
    mutating func paragraph(_ text: String) { lines.append(ManualWriter.escaped(text)) }

    /// A word with its value and what it means.
    mutating func item(_ word: String, _ value: String, _ text: String) {
        let value = value.isEmpty ? "" : " \\fI\(ManualWriter.escaped(value))\\fR"
        lines += [".TP", "\\fB\(ManualWriter.escaped(word))\\fR\(value)", ManualWriter.escaped(text)]
    }

    /// The sections that every page has at its end.
    mutating func ending(_ others: [String]) {
        section("ENVIRONMENT")
        paragraph("Each option can also be given in the environment: --some-name as ROOTGATE_SOME_NAME.")
        section("EXIT STATUS")
        for (code, meaning) in ExitCode.meanings { item(code, "", meaning) }
        section("SEE ALSO")
        paragraph(others.map { "\($0)(1)" }.joined(separator: ", "))
    }
}
