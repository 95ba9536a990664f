import Core
import Foundation
import ServiceTestSupport
import TestSupport
import Testing

@testable import rootgate

@Suite("Lines of root hashes")
struct RootLinesTests {
    /// The roots of a file in portions of at most `count`, from a position on.
    private func portions(
        _ path: String, _ count: Int, from start: RootLines.Position? = nil
    ) throws -> [RootLines.Portion] {
        let lines = try RootLines(path, hashes: true)
        if let start { try #require(try lines.skip(to: start)) }
        var portions: [RootLines.Portion] = []
        while let portion = try lines.next(count) { portions.append(portion) }
        return portions
    }

    @Test("Every way to write a root hash is read, and reading goes on at each position with what is left")
    func everyForm() throws {
        var generator = SeededGenerator(seed: runSeed)
        let folder = ScratchDirectory()
        let path = folder.path + "/roots"
        for iteration in 0..<20 {
            let context: Comment = "seed \(runSeed), iteration \(iteration)"
            // Above a piece of 1 MiB now and then.
            let count = iteration == 0 ? 0 : Int.random(in: 1...(iteration % 5 == 0 ? 20_000 : 300), using: &generator)
            let roots = (0..<count).map { _ in generator.digest() }
            var text = ""
            for root in roots {
                for _ in 0..<Int.random(in: 0...2, using: &generator) {
                    text += ["\n", "# a comment\n", "  \t\r\n", "#\n"].randomElement(using: &generator) ?? ""
                }
                text +=
                    [
                        "\(root)", "\(root)".uppercased(), "  \(root)\t", "{\"rootHash\":\"\(root)\"}",
                        " { \"rootHash\" : \"\(root)\" } ",
                    ].randomElement(using: &generator) ?? ""
                text += Bool.random(using: &generator) ? "\n" : "\r\n"
            }
            if Bool.random(using: &generator), text.utf8.last == 10 { text = String(text.unicodeScalars.dropLast()) }
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            let size = Int.random(in: 1...100, using: &generator)
            let read = try portions(path, size)
            #expect(read.flatMap(\.roots) == roots, context)
            #expect(read.dropLast().allSatisfy { $0.roots.count == size }, context)
            for place in [0, read.count / 2, read.count - 1] where read.indices.contains(place) {
                let end = read[place].end
                #expect(end.hash?.bytes == ProofOracle.hash(Array(text.utf8.prefix(Int(end.bytes)))), context)
                #expect(
                    end.lines == text.utf8.prefix(Int(end.bytes)).count { $0 == 10 }
                        + (end.bytes == text.utf8.count && text.utf8.last != 10 ? 1 : 0), context)
                let rest = try portions(path, size, from: end)
                #expect(rest.flatMap(\.roots) == read[(place + 1)...].flatMap(\.roots), context)
                #expect(rest.last?.end ?? end == read.last?.end, context)
            }
            #expect(try readRoots(path) == roots, context)
        }
    }

    @Test("A line that is no root hash is named by its number")
    func wrongLines() throws {
        let folder = ScratchDirectory()
        let path = folder.path + "/roots"
        let good = String(repeating: "0f", count: 32)
        for wrong in [
            "x", String(good.dropLast()), good + "0", String(good.dropLast()) + "g", "0x" + good, "{}",
            "{\"rootHash\":\"\(good)0\"}", "{\"rootHash\":\"\(good)\",\"more\":1}", "\(good) \(good)", "{",
            String(repeating: "0", count: 3 << 20),
        ] {
            try Data("# first\n\(good)\n\n\(wrong)\n\(good)\n".utf8).write(to: URL(fileURLWithPath: path))
            let lines = try RootLines(path)
            let error = #expect(throws: UsageError.self, "\(wrong.prefix(100))") { try lines.next(100) }
            #expect(error?.text.hasPrefix("line 4 of \(path) ") == true, "\(error?.text ?? "")")
        }
    }

    @Test("A file with another beginning is not gone on with")
    func otherFiles() throws {
        let folder = ScratchDirectory()
        let path = folder.path + "/roots"
        var generator = SeededGenerator(seed: runSeed)
        let lines = (0..<10).map { _ in "\(generator.digest())\n" }
        func write(_ lines: ArraySlice<String>) throws {
            try Data(lines.joined().utf8).write(to: URL(fileURLWithPath: path))
        }
        try write(lines[...])
        let end = try portions(path, 4)[0].end
        #expect(try RootLines(path, hashes: true).skip(to: end))
        let others: [[String]] = [
            Array(lines[1...]), Array(lines[..<3]), [lines[1], lines[0]] + lines[2...], [],
        ]
        for other in others {
            try write(other[...])
            #expect(try !RootLines(path, hashes: true).skip(to: end))
        }
    }
}

@Suite("Export and import of root hashes")
struct RootTransferTests {
    private let folder = ScratchDirectory()

    private func run(_ service: TestService, _ words: [String], input: String? = nil) throws -> (
        code: Int32, output: String, errors: String
    ) {
        try runProgram(
            programPath,
            ["roots"] + words + ["--server", service.endpoint.description, "--collaboration", "c"]
                + ["--timeout", "100"],
            input: input)
    }

    /// A file with so many root hashes, and the hashes in ascending order.
    private func file(_ count: Int, _ name: String = "roots") throws -> (path: String, roots: [Digest]) {
        var generator = SeededGenerator(seed: runSeed)
        let roots = (0..<count).map { _ in generator.digest() }
        let path = "\(folder.path)/\(name)"
        try Data(roots.map { "\($0)\n" }.joined().utf8).write(to: URL(fileURLWithPath: path))
        return (path, roots.sorted())
    }

    private func collaboration(_ service: TestService) async throws {
        let client = try service.client()
        try await client.createCollaboration(try #require(CollaborationIdentifier("c")))
        client.close()
    }

    private func fields(_ output: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
    }

    @Test("What is imported is exported again, as lines and as JSON, and importing it again adds nothing")
    func roundTrip() async throws {
        let (first, second) = (try TestService(), try TestService())
        for service in [first, second] { try await collaboration(service) }
        // More than one request and several pages.
        let (path, roots) = try file(70_001)
        let imported = try run(first, ["import", path, "--json"])
        #expect(imported.code == 0 && imported.errors.isEmpty, "\(imported.errors)")
        let summary = try fields(imported.output)
        #expect(summary["sent"] as? Int == 70_001 && summary["added"] as? Int == 70_001)
        #expect(summary["lines"] as? Int == 70_001 && summary["skippedLines"] as? Int == 0)
        let lines = try run(first, ["export"])
        #expect(lines.code == 0 && lines.errors.isEmpty)
        #expect(lines.output == roots.map { "\($0)\n" }.joined(), "seed \(runSeed)")
        let json = try run(first, ["export", "--json"])
        #expect(json.output == roots.map { "{\"rootHash\":\"\($0)\"}\n" }.joined(), "seed \(runSeed)")
        let rest = try run(first, ["export", "--after", "\(roots[69_990])"])
        #expect(rest.output == roots.suffix(10).map { "\($0)\n" }.joined(), "seed \(runSeed)")
        let copied = try run(second, ["import", "-"], input: json.output)
        #expect(copied.code == 0 && copied.output.hasPrefix("added 70001 of 70001 root hashes (sequence "))
        #expect(try run(second, ["export"]).output == lines.output)
        let again = try fields(try run(second, ["import", path, "--json"]).output)
        #expect(again["sent"] as? Int == 70_001 && again["added"] as? Int == 0)
        let empty = try fields(try run(second, ["import", "/dev/null", "--json"]).output)
        #expect(empty["sent"] as? Int == 0)
    }

    /// An import from a pipe, which has got the first 70,000 lines of a file: two requests and a part of the next
    /// window. Returns when the two are done.
    private func began(_ path: String, record: String, _ service: TestService) throws -> (
        process: Process, input: FileHandle
    ) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: programPath)
        process.arguments =
            ["roots", "import", "-", "--quiet", "--resume", record, "--server", service.endpoint.description]
            + ["--collaboration", "c", "--timeout", "100"]
        let pipe = Pipe()
        process.standardInput = pipe
        process.standardOutput = FileHandle.nullDevice
        #expect(FileManager.default.createFile(atPath: folder.path + "/errors", contents: nil))
        process.standardError = FileHandle(forWritingAtPath: folder.path + "/errors")
        try process.run()
        let beginning = try Data(contentsOf: URL(fileURLWithPath: path)).prefix(65 * 70_000)
        let input = pipe.fileHandleForWriting
        Thread { try? input.write(contentsOf: beginning) }.start()
        #expect(
            becomesTrue(within: 100) {
                let text = (try? String(contentsOfFile: record, encoding: .utf8)) ?? ""
                return text.contains("\"lines\":65536")
            })
        return (process, input)
    }

    @Test("An import that is killed goes on with what was not acknowledged, and the set is whole")
    func killed() async throws {
        let service = try TestService()
        try await collaboration(service)
        let (path, roots) = try file(150_000)
        let record = folder.path + "/record"
        let (process, _) = try began(path, record: record, service)
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        #expect(try run(service, ["count"]).output == "65536\n")
        let other = try run(service, ["import", "/dev/null", "--resume", record])
        #expect(other.code == 2 && other.errors.contains("does not begin as the file"), "\(other.errors)")
        #expect(other.errors.split(separator: "\n").count == 1)
        let rest = try run(service, ["import", path, "--resume", record, "--json"])
        #expect(rest.code == 0, "\(rest.errors)")
        let summary = try fields(rest.output)
        #expect(summary["skippedLines"] as? Int == 65_536 && summary["lines"] as? Int == 150_000)
        #expect(summary["sent"] as? Int == 150_000 - 65_536 && summary["added"] as? Int == 150_000 - 65_536)
        #expect(try run(service, ["export"]).output == roots.map { "\($0)\n" }.joined(), "seed \(runSeed)")
        #expect(!FileManager.default.fileExists(atPath: record))
    }

    @Test("An import that fails on its way says how far it came")
    func failure() async throws {
        let service = try TestService()
        try await collaboration(service)
        let path = try file(80_000).path
        let (process, input) = try began(path, record: folder.path + "/record", service)
        let client = try service.client()
        try await client.dropCollaboration(try #require(CollaborationIdentifier("c")))
        client.close()
        // The lines that the pipe has not had.
        try input.write(contentsOf: try Data(contentsOf: URL(fileURLWithPath: path)).dropFirst(65 * 70_000))
        try input.close()
        process.waitUntilExit()
        #expect(process.terminationStatus == 2)
        let errors = try String(contentsOfFile: folder.path + "/errors", encoding: .utf8).split(separator: "\n")
        #expect(errors.count == 2, "\(errors)")
        #expect(errors.first?.hasPrefix("rootgate: the first 65536 lines of - are added and durable: ") == true)
        #expect(errors.last?.hasPrefix("rootgate: the service answered unknown-collaboration: ") == true)
    }

    @Test("A line that is wrong ends the import with its number")
    func wrongLine() async throws {
        let service = try TestService()
        try await collaboration(service)
        let path = folder.path + "/roots"
        try Data("\(String(repeating: "0f", count: 32))\nnonsense\n".utf8).write(to: URL(fileURLWithPath: path))
        let wrong = try run(service, ["import", path])
        #expect(wrong.code == 2 && wrong.output.isEmpty)
        #expect(wrong.errors == "rootgate: line 2 of \(path) is not a root hash in hexadecimal\n")
        #expect(try run(service, ["count"]).output == "0\n")
    }

    @Test("The record of another import is refused, and so is a file that is none")
    func records() async throws {
        let service = try TestService()
        try await collaboration(service)
        let path = try file(10).path
        let record = folder.path + "/record"
        let sum = String(repeating: "0", count: 64)
        for (text, told) in [
            ("", "tells of no import"), ("{}", "tells of no import"),
            (
                #"{"collaboration":"d","lines":1,"bytes":65,"sha256":"\#(sum)"}"#,
                "tells of an import into another collaboration, d"
            ),
            (#"{"collaboration":"c","lines":1,"bytes":65,"sha256":"\#(sum)"}"#, "does not begin as the file"),
            (#"{"collaboration":"c","lines":-1,"bytes":65,"sha256":"\#(sum)"}"#, "lines is negative"),
            (
                #"{"collaboration":"c","lines":1,"bytes":18446744073709551615,"sha256":"\#(sum)"}"#,
                "does not begin as the file"
            ),
        ] {
            try Data(text.utf8).write(to: URL(fileURLWithPath: record))
            let result = try run(service, ["import", path, "--resume", record])
            #expect(result.code == 2 && result.errors.contains(told), "\(text): \(result.errors)")
            #expect(try String(contentsOfFile: record, encoding: .utf8) == text)
        }
        #expect(try run(service, ["count"]).output == "0\n")
        let nowhere = try run(service, ["import", path, "--resume", "/nonexistent/record"])
        #expect(nowhere.code == 2 && nowhere.errors.contains(" /nonexistent/record: "), "\(nowhere.errors)")
    }

    @Test("A service that is busy is asked again, for as long as a request may take")
    func busy() throws {
        let data = folder.path + "/data"
        let made = try runProgram(
            programPath, ["keys", "create", "root", "--role", "administer", "--offline", "--data", data])
        let root = ["ROOTGATE_KEY": made.output.trimmingCharacters(in: .newlines)]
        let running = try ServeTests.Running(data)
        let server = ["--server", running.endpoint]
        let created = try runProgram(
            programPath,
            [
                "keys", "create", "feeder", "--role", "enrol", "--role", "observe", "--prefix", "*",
                "--mutations-per-second", "1",
            ]
                + server, environment: root)
        #expect(created.code == 0, "\(created.errors)")
        let feeder = ["ROOTGATE_KEY": created.output.trimmingCharacters(in: .newlines)]
        #expect(try runProgram(programPath, ["collab", "create", "c"] + server, environment: feeder).code == 0)
        // Four requests, of which the service takes one a second.
        let path = try file(100_000).path
        let words = ["roots", "import", path, "--collaboration", "c", "--json", "--quiet"] + server
        let patient = try runProgram(programPath, words, environment: feeder)
        #expect(patient.code == 0, "\(patient.errors)")
        #expect(try fields(patient.output)["sent"] as? Int == 100_000)
        let count = try runProgram(
            programPath, ["roots", "count", "--collaboration", "c"] + server, environment: feeder)
        #expect(count.output == "100000\n")
        #expect(running.end(SIGTERM) == 0)
    }
}
