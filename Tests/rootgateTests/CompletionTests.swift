import Foundation
import TestSupport
import Testing

@testable import rootgate

@Suite("Completions and the manual")
struct CompletionTests {
    private static func finds(_ program: String) -> Bool { path(of: program) != nil }

    /// The path of a program of the system.
    private static func path(of program: String) -> String? {
        ["/bin/", "/usr/bin/", "/usr/local/bin/"].map { $0 + program }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    private static func run(_ program: String, _ words: [String]) throws -> (
        code: Int32, output: String, errors: String
    ) {
        try runProgram(try #require(path(of: program)), words)
    }

    /// The words that bash offers behind `line`, whose last word is not whole.
    private func completed(_ line: [String]) throws -> [String] {
        let folder = ScratchDirectory()
        let script = folder.path + "/rootgate"
        try Data(Shell.bash.completions(of: Rootgate.commands).utf8).write(to: URL(fileURLWithPath: script))
        let words = line.map { "'\($0)'" }.joined(separator: " ")
        let commands =
            "cd '\(folder.path)' && . ./rootgate && COMP_WORDS=(\(words)) && COMP_CWORD=\(line.count - 1) && _rootgate "
            + "&& printf '%s\\n' \"${COMPREPLY[@]}\""
        let result = try Self.run("bash", ["--norc", "-c", commands])
        #expect(result.code == 0 && result.errors.isEmpty, "\(result.errors)")
        return result.output.split(separator: "\n").map(String.init)
    }

    @Test(
        "What bash offers are commands, verbs, options, values and files",
        .enabled(if: finds("bash"), "bash is missing"))
    func bash() throws {
        #expect(try completed(["rootgate", "se"]) == ["serve", "selftest"])
        #expect(try completed(["rootgate", "serve", "--secret"]) == ["--secret-file", "--secret-days"])
        #expect(try completed(["rootgate", "serve", "--sandbox", ""]) == ["auto", "off", "required"])
        // Without an offer bash offers files.
        #expect(try completed(["rootgate", "serve", "--config", "root"]).isEmpty)
        #expect(try completed(["rootgate", "serve", "--workers", ""]).isEmpty)
        #expect(try completed(["rootgate", "keys", "ro"]) == ["rotate", "rotate-secret"])
        #expect(try completed(["rootgate", "keys", "rotate-secret", "--drop"]) == ["--drop-previous"])
        #expect(try completed(["rootgate", "keys", "list", "--drop"]).isEmpty)
        #expect(try completed(["rootgate", "verify", "root"]).isEmpty)
    }

    @Test("Every option of every command is in each script")
    func whole() throws {
        for shell in Shell.allCases {
            let script = shell.completions(of: Rootgate.commands)
            for command in Rootgate.commands {
                #expect(script.contains(command.name), "\(shell): \(command.name)")
                for option in command.options {
                    let word = shell == .fish ? "-l \(option.name)" : "--\(option.name)"
                    #expect(script.contains(word), "\(shell): \(command.name) \(option.name)")
                }
            }
        }
        #expect(
            try runProgram(programPath, ["completion", "fish"]).output == Shell.fish.completions(of: Rootgate.commands))
        for words in [["completion"], ["completion", "tcsh"]] {
            let result = try runProgram(programPath, words)
            #expect(result.code == 2 && result.errors.contains("bash, zsh, fish"), "\(result.errors)")
        }
    }

    private func syntaxIsRight(_ shell: Shell, _ check: String) throws {
        let folder = ScratchDirectory()
        let script = folder.path + "/script"
        try Data(shell.completions(of: Rootgate.commands).utf8).write(to: URL(fileURLWithPath: script))
        let result = try Self.run(shell.rawValue, [check, script])
        #expect(result.code == 0 && result.errors.isEmpty, "\(result.errors)")
    }

    @Test("The script for zsh can be read by zsh", .enabled(if: finds("zsh"), "zsh is missing"))
    func zsh() throws { try syntaxIsRight(.zsh, "-n") }

    @Test(
        "The script for fish can be read by fish, and offers options and values",
        .enabled(if: finds("fish"), "fish is missing"))
    func fish() throws {
        try syntaxIsRight(.fish, "--no-execute")
        let folder = ScratchDirectory()
        let script = folder.path + "/script"
        try Data(Shell.fish.completions(of: Rootgate.commands).utf8).write(to: URL(fileURLWithPath: script))
        func completed(_ line: String) throws -> [String] {
            let result = try Self.run("fish", ["--no-config", "-c", "source \(script); complete -C '\(line)'"])
            #expect(result.code == 0, "\(result.errors)")
            return result.output.split(separator: "\n").compactMap { $0.split(separator: "\t").first.map(String.init) }
        }
        #expect(try completed("rootgate se").sorted() == ["selftest", "serve"])
        #expect(try completed("rootgate serve --sandbox ") == ["auto", "off", "required"])
        #expect(try completed("rootgate keys ro").sorted() == ["rotate", "rotate-secret"])
        #expect(try completed("rootgate keys rotate-secret --drop") == ["--drop-previous"])
    }

    @Test("A page for each command has every option, and man formats it without a complaint")
    func manual() throws {
        let folder = ScratchDirectory()
        #expect(try runProgram(programPath, ["manual", "--output", folder.path]).code == 0)
        let names = ["rootgate"] + Rootgate.commands.map { "rootgate-\($0.name)" }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
                == names.map { $0 + ".1" }.sorted())
        for command in Rootgate.commands {
            let text = try String(contentsOfFile: "\(folder.path)/rootgate-\(command.name).1", encoding: .utf8)
            #expect(text == ManualPage(command).text)
            for option in command.options {
                let word = "\\fB\\-\\-" + option.name.replacingOccurrences(of: "-", with: "\\-") + "\\fR"
                #expect(text.contains(word), "\(command.name) \(option.name)")
            }
        }
        let wrong = try runProgram(programPath, ["manual", "nothing"])
        #expect(wrong.code == 2 && wrong.errors.contains("there is no command nothing"))
    }

    @Test("Every page is formatted by groff without a complaint", .enabled(if: finds("groff"), "groff is missing"))
    func formatted() throws {
        let folder = ScratchDirectory()
        for page in ManualPage.all(Rootgate.commands) {
            let path = "\(folder.path)/\(page.name).1"
            try Data(page.text.utf8).write(to: URL(fileURLWithPath: path))
            let result = try Self.run("groff", ["-man", "-Tascii", "-P-cbou", "-ww", path])
            #expect(result.code == 0 && result.errors.isEmpty, "\(page.name): \(result.errors)")
            #expect(result.output.contains("SEE ALSO"))
        }
    }
}
