import Core
import Foundation
import ServiceTestSupport
import TestSupport
import Testing

@Suite("Explanations of proofs on the command line")
struct ExplainTests {
    private func explain(_ words: [String], _ lines: [String]) throws -> (
        code: Int32, output: String, errors: String
    ) {
        try runProgram(programPath, ["explain"] + words, input: lines.joined(separator: "\n") + "\n")
    }

    private func objects(_ output: String) throws -> [[String: Any]] {
        try output.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }

    /// Outcome of each check, of a failed one the verdict.
    private func outcomes(_ object: [String: Any]) throws -> [String: String] {
        let checks = try #require(object["checks"] as? [[String: Any]])
        return try checks.reduce(into: [:]) { outcomes, check in
            outcomes[try #require(check["check"] as? String)] = (check["verdict"] ?? check["outcome"]) as? String
        }
    }

    private func simulated(_ words: String...) throws -> (lines: [String], roots: String, folder: ScratchDirectory) {
        let folder = ScratchDirectory()
        let roots = folder.path + "/roots"
        let made = try runProgram(programPath, ["simulate", "--collaboration", "c", "--roots-out", roots] + words)
        #expect(made.code == 0, "\(made.errors)")
        return (made.output.split(separator: "\n").map(String.init), roots, folder)
    }

    @Test(
        "Every node and every check is what hashlib and cryptography compute",
        .enabled(if: python != nil, "no python3 with the package cryptography"))
    func oracle() throws {
        let run = try runProgram(
            try #require(python),
            [packageFile("Tests/Python/explanations.py"), programPath, "--seed", "\(runSeed)", "--count", "300"])
        #expect(run.code == 0, "ROOTGATE_TEST_SEED=\(runSeed) \(run.output)\(run.errors)")
    }

    @Test("The text shows the leaf, each level with its sides, the root hash and each check")
    func text() throws {
        let made = try simulated("--devices", "2")
        let line = made.lines[1]
        let fields = try #require(try objects(line).first)
        let encodedKey = try #require(fields["publicKey"] as? String)
        let key = try #require(Data(base64Encoded: encodedKey))
        let hashes = try #require(fields["inclusionHashes"] as? [String])
        var lines = ["line 1: no check that was made has failed; not made: the collaboration, the challenge or nonce, "]
        lines[0] += "spending the challenge or nonce"
        var node = ProofOracle.hash(Array(key))
        lines += ["  leaf: SHA-256 of the public key, 65 bytes", "    \(node.hexadecimal)"]
        for (level, hash) in hashes.enumerated() {
            let sibling = Array(try #require(Data(base64Encoded: hash)))
            // The second device has the index 1.
            let isRight = level == 0
            let (left, right) = isRight ? (sibling, node) : (node, sibling)
            lines += [
                "  level \(level): the index's bit is \(isRight ? 1 : 0), so the sibling is on the "
                    + (isRight ? "left" : "right"),
                "    left   \(left.hexadecimal)" + (isRight ? " (sibling)" : ""),
                "    right  \(right.hexadecimal)" + (isRight ? "" : " (sibling)"),
            ]
            node = ProofOracle.hash(left + right)
            lines.append("    parent \(node.hexadecimal)")
        }
        lines += [
            "  root hash: the last parent", "    \(node.hexadecimal)", "  checks, in the order of a service",
            "    lengths: passed: 3 inclusion hashes (at most 32) and 32 bytes of signed data (at most 4096)",
        ]
        let result = try explain(["--roots", made.roots], [line])
        #expect(result.code == 0 && result.errors.isEmpty, "\(result.errors)")
        let found = result.output.split(separator: "\n").map(String.init)
        #expect(Array(found.prefix(lines.count)) == lines)
        let checks = found.dropFirst(lines.count).map { $0.split(separator: ":").prefix(2).joined(separator: ":") }
        #expect(
            checks == [
                "    the key's encoding: passed", "    the index: passed", "    the signature's encoding: passed",
                "    the collaboration: not checked", "    the challenge or nonce: not checked",
                "    membership: passed", "    the key is a point of the curve: passed", "    the signature: passed",
                "    spending the challenge or nonce: not checked",
            ])
        #expect(try objects(line).first?["rootHash"] as? String == node.hexadecimal)
    }

    @Test("Without a service and without root hashes it says what it can't know, and the first line does not acquit")
    func offline() throws {
        let made = try simulated()
        let other = try simulated()
        let genuine = try objects(try explain(["--json"], made.lines).output)
        for object in genuine {
            #expect(object["verdict"] == nil && object["failed"] == nil && object["service"] == nil)
            let outcomes = try outcomes(object)
            #expect(
                outcomes.filter { $0.value == "not-checked" }.keys.sorted()
                    == ["collaboration", "freshness", "membership", "spending"])
        }
        let stranger = try explain(["--roots", other.roots], made.lines)
        #expect(stranger.code == 1)
        #expect(
            stranger.output.hasPrefix(
                "line 1: not-participant: membership, unless one of these fails, which were not made: "
                    + "the collaboration, the challenge or nonce\n"))
        // Nothing that was not made stands before the index.
        let beyond = made.lines[0].replacingOccurrences(of: "\"publicKeyIndex\":0", with: "\"publicKeyIndex\":1e99")
        let text = try explain([], [beyond]).output
        #expect(text.hasPrefix("line 1: bad-index: the index\n"))
        #expect(text.contains("    the index: failed, bad-index: 1e99 is not a whole number from 0 to 7,"))
    }

    @Test("One line is chosen by its number, and of many only the first hundred are explained")
    func lines() throws {
        let good = try simulated().lines[0]
        let lines = [
            good, "{}", good, good.replacingOccurrences(of: "\"publicKeyIndex\":0", with: "\"publicKeyIndex\":9"),
        ]
        let all = try explain(["--json"], lines)
        #expect(all.code == 1)
        #expect(try objects(all.output).map { $0["line"] as? Int } == [1, 2, 3, 4])
        #expect(try objects(all.output).map { $0["verdict"] as? String } == [nil, "malformed", nil, "bad-index"])
        for (number, code) in [(1, 0), (2, 1), (3, 0), (4, 1)] as [(Int, Int32)] {
            let one = try explain(["--json", "--line", "\(number)"], lines)
            #expect(one.code == code && one.errors.isEmpty)
            #expect(try objects(one.output).map { $0["line"] as? Int } == [number])
        }
        let beyond = try explain(["--line", "5"], lines)
        #expect(beyond.code == 2 && beyond.output.isEmpty && beyond.errors.contains("has only 4 lines"))
        let hundred = try explain(["--json"], Array(repeating: good, count: 100))
        #expect(hundred.code == 0 && hundred.errors.isEmpty)
        #expect(hundred.output.split(separator: "\n").count == 100)
        let more = try explain(["--json"], Array(repeating: good, count: 101))
        #expect(more.output.split(separator: "\n").count == 100)
        #expect(more.errors == "rootgate: only the first 100 lines are explained: --line N explains another one\n")
        let late = try explain(["--json", "--line", "301"], Array(repeating: good, count: 300) + ["{}"])
        #expect(try objects(late.output).first?["verdict"] as? String == "malformed")
    }

    @Test("What a line has written reaches the terminal without control characters")
    func escapes() throws {
        let good = try simulated().lines[0]
        let begin = good.index(after: good.startIndex)
        let line = good.replacingCharacters(in: begin..<begin, with: "\"\\u001b[2J\\u009b\":0,")
        for words in [[], ["--json"]] {
            let result = try explain(words, [line])
            #expect(result.code == 1 && result.output.contains("malformed"))
            #expect(result.output.contains("u001B[2J"), "\(result.output)")
            #expect(!result.output.unicodeScalars.contains { $0.value == 0x1b || $0.value == 0x9b })
        }
    }

    @Test("A service's verdict is shown beside, with the check that it belongs to")
    func service() throws {
        let service = try TestService()
        let server = ["--server", service.endpoint.description, "--collaboration", "c"]
        let made = try runProgram(
            programPath,
            ["simulate", "--collaboration", "c", "--register", "--server", service.endpoint.description])
        #expect(made.code == 0, "\(made.errors)")
        let good = made.output.split(separator: "\n").map(String.init)
        let stranger = try simulated().lines[0]
        let hashes = repeatElement("\"\(Data(count: 32).base64EncodedString())\",", count: 300).joined()
        let long = good[1].replacingOccurrences(of: "\"inclusionHashes\":[", with: "\"inclusionHashes\":[" + hashes)
        let result = try explain(["--json"] + server, [good[0], stranger, "{}", long, good[0]])
        #expect(result.code == 1 && result.errors.isEmpty, "\(result.errors)")
        let found = try objects(result.output)
        func told(_ place: Int) throws -> (verdict: String?, checks: [String]?) {
            let object = found[place]["service"] as? [String: Any]
            return (object?["verdict"] as? String, object?["checks"] as? [String])
        }
        #expect(try told(0).verdict == "granted" && told(0).checks == [])
        #expect((found[0]["service"] as? [String: Any])?["rootHash"] as? String == found[0]["rootHash"] as? String)
        // Data of 32 bytes are no challenge. Nothing that is computed here fails.
        #expect(try told(1).verdict == "challenge-forged" && told(1).checks == ["freshness"])
        #expect(found[1]["verdict"] == nil)
        #expect(found[2]["verdict"] as? String == "malformed" && found[2]["service"] == nil)
        #expect((found[2]["serviceReason"] as? String)?.hasPrefix("not asked: ") == true)
        #expect(found[3]["verdict"] as? String == "malformed" && found[3]["service"] == nil)
        #expect((found[3]["serviceReason"] as? String)?.hasPrefix("not asked: ") == true)
        // A copy in the same request: it may have met the first one before or after that was granted.
        #expect(try told(4).verdict == "challenge-replayed" && told(4).checks == ["freshness", "spending"])
        let again = try explain(server, [good[0]])
        #expect(again.code == 1)
        #expect(
            again.output.hasPrefix(
                "line 1: the service says challenge-replayed: the challenge or nonce, or spending the challenge"))
        #expect(again.output.contains("\n      by the service: perhaps failed, its verdict does not tell\n"))
        #expect(again.output.contains("\n  the service has told no root hash\n"))
        let other = try explain(server, [good[1]])
        #expect(other.code == 0 && other.output.hasPrefix("line 1: the service says granted\n"))
        #expect(other.output.hasSuffix("\n  the service has computed the same root hash\n"))
        #expect(!other.output.contains("does not tell"))
    }

    @Test("Options that have no effect, and services that don't answer, are errors of one line")
    func usage() throws {
        let good = try simulated().lines[0]
        for (words, told) in [
            (["--collaboration", "c"], "--collaboration needs --server"), (["--at-least", "1"], "has no effect"),
            (["--timeout", "1"], "has no effect"), (["--line", "0"], "--line takes a whole number from 1"),
            (["--server", "127.0.0.1:1", "--collaboration", "c", "--timeout", "0.2"], "can't connect to "),
            (["--server", "127.0.0.1:1"], "--collaboration is needed"),
            (["--server", "127.0.0.1:1", "--roots", "/dev/null"], "--roots and --server exclude each other"),
            (["/nonexistent/proofs"], "can't read /nonexistent/proofs: "),
        ] {
            let result = try explain(words, [good])
            #expect(result.code == 2 && result.output.isEmpty, "\(words): \(result.output)")
            #expect(result.errors.contains(told) && result.errors.split(separator: "\n").count == 1, "\(result.errors)")
        }
    }
}
