import Core
import Foundation
import ServiceTestSupport
import TestSupport
import Testing

@testable import rootgate

/// What verbs take: each verb is tried with each option, and with one operand too many and one too few.
@Suite struct VerbTests {
    /// A command's verbs, and the options that the verbs may use, as a person would read them in the handbook. They are
    /// written down a second time here: an option that a verb takes by mistake is found.
    private static let taken: [String: [String: String]] = [
        "collab": [
            "create": "policy window", "drop": "", "list": "after limit all",
            "prepare": "owner title handle options permission select identity name policy window",
            "claim": "owner name", "transfer": "owner local", "abandon": "owner", "highlight": "",
            "options": "select options summary grant", "details": "identity language",
            "customize": "title items manage-title clear", "stop": "grant", "add": "name role permission grant",
            "remove": "grant", "change": "add remove name role permission grant",
            "update": "name role permission clear grant", "find": "", "participants": "past after limit all",
            "link": "account", "open": "at-least with-options", "check": "at-least with-options",
            "post": "link grant", "notices": "identity account language after limit all follow", "clear": "grant",
            "share": "title subtitle thumbnail app sharer conversation group strangers to",
            "shelf": "account app every-app after limit all", "thumbnail": "account app every-app",
            "pin": "account app every-app conversation handle", "unpin": "account app every-app conversation handle",
            "hide": "account app every-app", "signal": "account app every-app context", "consent": "account",
            "attribution": "account app every-app title language",
            "invite": "role permission account name handle hours", "invitation": "", "accept": "account identity name",
            "withdraw": "account", "invitations": "past after limit all", "revoke": "",
            "shares": "account scope after limit all", "export": "owner with-notices with-shelves", "import": "",
        ],
        "keys": [
            "create": "role prefix app expires certificate local-user offline data storage-max proofs-per-second "
                + "requests-in-flight request-bytes followers mutations-per-second",
            "list": "",
            "update": "role prefix app certificate local-user proofs-per-second requests-in-flight request-bytes "
                + "followers mutations-per-second",
            "rotate": "expires", "remove": "key",
            "rotate-secret": "data secret-file prepare use-prepared drop-previous",
        ],
        "roots": [
            "add": "file quiet", "remove": "file quiet", "test": "file quiet", "list": "after limit all", "count": "",
            "export": "after quiet", "import": "resume quiet",
        ],
    ]
    private static let common: [String: Set<String>] = [
        "collab": ["server", "timeout", "json", "key-file"], "keys": ["server", "timeout", "json", "key-file"],
        "roots": ["server", "timeout", "json", "key-file", "collaboration"],
    ]
    private static let commands = [collabCommand, keysCommand, rootsCommand]

    /// What a wrong command line is answered with; `nil` when the command takes it.
    private func refusal(_ command: Command, _ words: [String]) -> String? {
        do {
            _ = try command.arguments(words, environment: [:])
            return nil
        } catch {
            return (error as? UsageError)?.text ?? "\(error)"
        }
    }

    /// The least operands that a verb takes.
    private func operands(_ verb: Verb) -> [String] { (0..<verb.counts.lowerBound).map { "operand\($0)" } }

    @Test("A verb takes its own options, and refuses every other one by name")
    func everyOption() throws {
        for command in Self.commands {
            let taken = try #require(Self.taken[command.name])
            let common = try #require(Self.common[command.name])
            #expect(Set(command.verbs.map(\.name)) == Set(taken.keys))
            for verb in command.verbs {
                let own = Set(try #require(taken[verb.name]).split(separator: " ").map(String.init))
                for option in command.options {
                    let isTaken = own.contains(option.name) || common.contains(option.name)
                    guard isTaken || !option.name.hasPrefix("tls-") else { continue }
                    let given = option.isSwitch ? ["--\(option.name)"] : ["--\(option.name)", "1"]
                    let text = refusal(command, [verb.name] + given + operands(verb))
                    #expect(
                        text == (isTaken ? nil : "\(verb.name) takes no --\(option.name)"),
                        "\(command.name) \(verb.name) --\(option.name)")
                }
            }
        }
    }

    @Test("A verb refuses an operand more than it takes, and asks for one that is missing")
    func everyCount() {
        for command in Self.commands {
            for verb in command.verbs {
                // The usage line tells the counts a second time.
                let words = verb.operands.split(separator: " ").prefix { !$0.hasPrefix("--") && !$0.hasPrefix("[--") }
                let names = words.filter { !$0.hasPrefix("...") }
                let needed = verb.operands.hasPrefix("[") ? 0 : names.filter { !$0.hasPrefix("[") }.count
                #expect(verb.counts.lowerBound == needed, "\(verb.name)")
                #expect(
                    verb.counts.upperBound
                        == (words.contains { $0.hasPrefix("...") } ? Verb.operandsMax : names.count), "\(verb.name)")

                let most = (0..<verb.counts.upperBound).map { "operand\($0)" }
                #expect(refusal(command, [verb.name] + most) == nil, "\(verb.name)")
                let more = refusal(command, [verb.name] + most + ["surplus"])
                #expect(more?.contains("surplus") == true, "\(verb.name): \(more ?? "")")
                guard verb.counts.lowerBound > 0 else { continue }
                let fewer = refusal(command, [verb.name] + operands(verb).dropLast())
                #expect(fewer == "\(verb.name) needs more operands: \(verb.operands)")
            }
        }
    }

    @Test("An option that is given twice is refused by every command, unless it may have several values")
    func repeatedOptions() {
        let several = Rootgate.commands.flatMap(\.options).filter(\.isRepeatable).map(\.name)
        #expect(several == ["server", "role", "prefix", "certificate", "log"])
        for command in Rootgate.commands {
            for option in command.options where !option.isRepeatable {
                let given = option.isSwitch ? ["--\(option.name)"] : ["--\(option.name)", "1"]
                let again = option.isSwitch ? given : ["--\(option.name)=2"]
                #expect(refusal(command, given + again) == "--\(option.name) is given twice", "\(command.name)")
            }
        }
    }

    @Test("Help for a verb shows the options that it takes, and no others")
    func helpOfVerbs() throws {
        for command in Self.commands {
            for verb in command.verbs {
                let taken = try #require(Self.taken[command.name]?[verb.name]).split(separator: " ").map(String.init)
                let help = command.help(for: [verb.name, "--help"])
                #expect(help.hasPrefix("usage: rootgate \(command.name) \(verb.name) [options] \(verb.operands)"))
                let shown = help.split(separator: "\n").filter { $0.hasPrefix("  --") }.compactMap {
                    $0.split(separator: " ").first?.dropFirst(2)
                }.map(String.init).filter { !$0.hasPrefix("tls-") }
                #expect(Set(shown) == Set(taken).union(try #require(Self.common[command.name])), "\(verb.name)")
            }
        }
    }

    @Test("An option that has no effect with the rest of the command line is refused before anything is sent")
    func withoutEffect() throws {
        let hex = String(repeating: "ab", count: 32)
        for words in [
            ["notices", "--account", "x", "--identity", hex], ["notices", "x", "--follow", "--limit", "1"],
            ["notices", "x", "--follow", "--all"], ["change", "x", "--remove", hex, "--name", "Bo"],
            ["change", "x", "--remove", hex, "--permission", "readOnly"],
            ["change", "x", "--remove", hex, "--role", "member"],
        ] {
            // Nobody listens there.
            let result = try runProgram(
                programPath, ["collab"] + words + ["--server", "127.0.0.1:1", "--timeout", "0.2"])
            let option = try #require(words.last { $0.hasPrefix("--") })
            #expect(result.code == 2 && result.output.isEmpty)
            #expect(result.errors.contains("has no effect with the rest"), "\(words): \(result.errors)")
            #expect(result.errors.contains(option), "\(words): \(result.errors)")
        }
    }

    @Test("A grant in the environment does not make a verb act with the backend's power")
    func grantInTheEnvironment() throws {
        let service = try TestService { $0.linkBase = "https://example.com/c" }
        let environment = [
            "ROOTGATE_SERVER": service.endpoint.description, "ROOTGATE_GRANT": String(repeating: "A", count: 149),
        ]
        let hex = String(repeating: "ab", count: 32)
        for words in [
            ["invite", "deck"], ["customize", "deck", "--title", "x"], ["claim", "deck", hex, "--owner", "o"],
            ["link", "deck", hex], ["transfer", "deck", hex, "--owner", "o"], ["revoke", "deck", "i"],
            ["abandon", "deck", "--owner", "o"], ["prepare", "deck", "--owner", "o"], ["drop", "deck"],
        ] {
            let result = try runProgram(programPath, ["collab"] + words, environment: environment)
            #expect(result.code == 2 && result.errors.contains("takes no --grant"), "\(words): \(result.errors)")
        }
        for words in [
            ["add", "deck", hex], ["remove", "deck", hex], ["change", "deck", "--add", hex],
            ["update", "deck", hex, "--name", "x"], ["options", "deck", "--select", "x"], ["stop", "deck"],
        ] {
            let result = try runProgram(programPath, ["collab"] + words, environment: environment)
            #expect(result.code == 2 && result.errors.contains("is not a grant"), "\(words): \(result.errors)")
        }
    }

    @Test("People whom a change adds get the name, role and permission that it gives")
    func change() throws {
        let service = try TestService { $0.linkBase = "https://example.com/c" }
        func fields(_ words: String...) throws -> [String: Any] {
            let result = try runProgram(
                programPath, ["collab"] + words + ["--json"],
                environment: ["ROOTGATE_SERVER": service.endpoint.description])
            #expect(result.code == 0, "\(result.errors)")
            return try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
        }
        let prepared = try fields("prepare", "deck", "--owner", "olga", "--permission", "readWrite")
        let deck = try #require(prepared["collaborationIdentifier"] as? String)
        let hex = String(repeating: "05", count: 32)
        _ = try fields(
            "change", deck, "--add", hex, "--permission", "readOnly", "--name", "Bo", "--role", "administrator")
        let found = try #require(try fields("find", deck, hex)["participants"] as? [[String: Any]]).first
        #expect(found?["permission"] as? String == "readOnly" && found?["displayName"] as? String == "Bo")
        #expect(found?["role"] as? String == "administrator")
    }
}
