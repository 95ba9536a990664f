import Foundation
import ServiceTestSupport
import TestSupport
import Testing

/// What the command line says about numbers, fields, files and texts that others have written.
@Suite struct TextsTests {
    private static let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appendingPathComponent("rootgate").path

    private func run(_ words: [String], input: String? = nil) throws -> (code: Int32, output: String, errors: String) {
        try runProgram(Self.program, words, input: input)
    }

    /// Lines of JSON with the verdict and the reason of each.
    private func verdicts(_ output: String) throws -> [(verdict: String, reason: String?)] {
        try output.split(separator: "\n").map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return (try #require(object?["verdict"] as? String), object?["reason"] as? String)
        }
    }

    /// A genuine line, whose index is 0, and the same line with other indexes.
    private func lines(_ indexes: [String]) throws -> [String] {
        let good = try #require(
            try run(["simulate", "--collaboration", "c"]).output.split(separator: "\n").first.map(String.init))
        return [good]
            + indexes.map { good.replacingOccurrences(of: "\"publicKeyIndex\":0", with: "\"publicKeyIndex\":\($0)") }
    }

    private static let badIndexes = ["-1", "2.5", "18446744073709551616", "18446744073709551615", "1e3", "8", "1e400"]

    @Test("A number that is no index is the verdict bad-index, with a reason that says so")
    func badIndexes() throws {
        let lines = try lines(Self.badIndexes)
        let found = try verdicts(try run(["verify"], input: lines.joined(separator: "\n")).output)
        #expect(found.map(\.verdict) == ["unlisted"] + Self.badIndexes.map { _ in "bad-index" })
        for (index, found) in zip(Self.badIndexes, found.dropFirst()) {
            let reason = try #require(found.reason)
            #expect(reason.hasPrefix("publicKeyIndex is \(index), not a whole number from 0 to "), "\(reason)")
        }
        for index in ["\"0\"", "null", "[0]", "true"] {
            let found = try verdicts(try run(["verify"], input: try self.lines([index])[1]).output)
            #expect(found.first?.verdict == "malformed", "\(index)")
            #expect(found.first?.reason?.contains("publicKeyIndex is ") == true, "\(found.first?.reason ?? "")")
        }
    }

    @Test("An index that is none does not hide that the key or the lengths are wrong")
    func orderOfChecks() throws {
        let line = try lines(["-1"])[1]
        let key = line.replacingOccurrences(of: "\"publicKey\":\"", with: "\"publicKey\":\"AAAA")
        let hashes = repeatElement("\"\(Data(count: 32).base64EncodedString())\",", count: 33).joined()
        let long = line.replacingOccurrences(of: "\"inclusionHashes\":[", with: "\"inclusionHashes\":[" + hashes)
        let found = try verdicts(try run(["verify"], input: [key, long].joined(separator: "\n")).output)
        #expect(found.map(\.verdict) == ["bad-key", "malformed"])
    }

    @Test("A field of a proof that nobody knows, or that is given twice, is refused by name")
    func fieldsOfProofs() throws {
        let good = try lines([])[0]
        let begin = good.index(after: good.startIndex)
        let wrong = [
            ("\"publicKeyIndx\":0,", "publicKeyIndx is not a known field"),
            ("\"publicKeyIndex\":0,", "publicKeyIndex is given twice"),
            ("\"\\u001b[2J\":0,", #"\u001B[2J is not a known field"#),
        ]
        for (member, reason) in wrong {
            let line = good.replacingCharacters(in: begin..<begin, with: member)
            let found = try verdicts(try run(["verify"], input: line).output)
            #expect(found.first?.verdict == "malformed")
            #expect(found.first?.reason?.contains(reason) == true, "\(found.first?.reason ?? "")")
        }
    }

    @Test("A service's verdicts come with the same reasons, and a proof that is too long stops no other")
    func verdictsOfAService() throws {
        let service = try TestService { $0.linkBase = "https://example.com/c" }
        let server = ["--server", service.endpoint.description]
        let made = try run(["simulate", "--collaboration", "c", "--register"] + server)
        #expect(made.code == 0, "\(made.errors)")
        let good = try #require(made.output.split(separator: "\n").first.map(String.init))
        let hashes = repeatElement("\"\(Data(count: 32).base64EncodedString())\",", count: 300).joined()
        let lines = [
            good.replacingOccurrences(of: "\"publicKeyIndex\":0", with: "\"publicKeyIndex\":-1"),
            good.replacingOccurrences(of: "\"inclusionHashes\":[", with: "\"inclusionHashes\":[" + hashes), good,
        ].joined(separator: "\n")
        for words in [["collab", "open", "c"], ["verify", "--collaboration", "c"]] {
            let found = try verdicts(try run(words + server, input: lines).output)
            #expect(found.map(\.verdict).prefix(2) == ["bad-index", "malformed"], "\(words)")
            #expect(found.first?.reason?.hasPrefix("publicKeyIndex is -1, ") == true)
            #expect(found.count == 3 && found[2].reason == nil)
        }
    }

    @Test("A file that is missing or can't be read is named")
    func missingFiles() throws {
        let missing = "/nonexistent/file"
        for words in [
            ["verify", missing], ["verify", "--roots", missing], ["collab", "open", "x", missing],
            ["collab", "prepare", "x", "--owner", "a", "--options", missing],
            ["collab", "customize", "x", "--items", missing],
            ["roots", "add", "--collaboration", "x", "--file", missing],
            ["simulate", "--collaboration", "c", "--roots-out", missing], ["serve", "--data", "/dev/null"],
            ["verify", "/tmp"], ["collab", "prepare", "x", "--owner", "a", "--options", "/tmp"],
        ] {
            let result = try run(words)
            let name = try #require(words.first { $0.hasPrefix("/") })
            #expect(result.code == 2 && result.errors.contains(" \(name): "), "\(words): \(result.errors)")
            #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
        }
    }

    @Test("A file with a misspelt field is named together with the field and its place")
    func misspeltFields() throws {
        let folder = ScratchDirectory()
        let path = folder.path + "/options"
        let texts = [
            (
                #"{"groups":[{"kind":"switches","identifier":"a","title":"","footer":"","options":[],"tilte":""}]}"#,
                "groups[0].tilte is not a known field"
            ),
            (#"{"groups":[],"groups":[]}"#, "groups is given twice"), (#"{"groups":[],}"#, "at byte 13 "),
        ]
        for (text, reason) in texts {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            let result = try run(["collab", "prepare", "x", "--owner", "a", "--options", path])
            #expect(result.code == 2 && result.errors.contains(path + ": "), "\(result.errors)")
            #expect(result.errors.contains(reason), "\(result.errors)")
        }
    }

    @Test("What others have written reaches the terminal without control characters")
    func terminal() throws {
        let escape = "\u{1b}[2J\u{9b}\u{202e}\n"
        for words in [
            ["x" + escape], ["verify", "/nonexistent/" + escape], ["roots", escape, "--collaboration", "c"],
        ] {
            let result = try run(words)
            #expect(result.code == 2)
            #expect(
                result.errors.hasSuffix("\n") && !result.errors.dropLast().unicodeScalars.contains { $0.value < 0x20 })
            #expect(!result.errors.contains("\u{9b}") && !result.errors.contains("\u{202e}"))
        }
        let service = try TestService { $0.linkBase = "https://example.com/c" }
        let server = ["--server", service.endpoint.description]
        // Identifiers may contain what names may not.
        #expect(try run(["collab", "create", "c\u{9b}2J\u{202e}"] + server).code == 0)
        for words in [["collab", "list"], ["collab", "list", "--json"], ["collab", "details", "d\u{9b}"]] {
            let result = try run(words + server)
            #expect((result.output + result.errors).contains("\\u009B"), "\(words): \(result.output)\(result.errors)")
            #expect(!(result.output + result.errors).unicodeScalars.contains { [0x9b, 0x202e].contains($0.value) })
        }
    }
}
