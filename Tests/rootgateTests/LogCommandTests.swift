import Core
import Foundation
import RootgateClient
import ServiceTestSupport
import Server
import TestSupport
import Testing

@testable import rootgate

@Suite("The log of the program")
struct LogCommandTests {
    /// Makes the service answer with an error.
    private func provoke(_ service: ServiceProcess) async throws {
        let client = try service.client()
        defer { client.close() }
        let name = try #require(CollaborationIdentifier("secret-title"))
        await #expect(throws: ServiceError(.unknownCollaboration, "")) { try await client.dropCollaboration(name) }
    }

    @Test("With json and debug each line is an object, and one tells the request that got an error")
    func json() async throws {
        let service = try ServiceProcess(["--log-format", "json", "--log-level", "debug", "--sandbox", "off"])
        try await provoke(service)
        #expect(service.terminate(within: 60))
        let objects = try service.log.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
        }
        #expect(objects.allSatisfy { $0["time"] is String && $0["text"] is String && $0["level"] is String })
        let error = try #require(objects.first { ($0["text"] as? String)?.contains("got the error") == true })
        #expect(error["text"] as? String == "dropCollaboration got the error unknown-collaboration")
        #expect(error["level"] as? String == "debug")
        #expect(error["connection"] as? Int == 1 && (error["request"] as? Int ?? 0) > 0)
        #expect(!service.log.contains("secret-title"))
        let last = objects.last?["text"] as? String
        #expect(last?.hasPrefix("shutting down") == true, "\(objects)")
    }

    @Test("Without options lines are text with a time, and requests that get an error have none")
    func text() async throws {
        let service = try ServiceProcess()
        try await provoke(service)
        #expect(service.terminate(within: 60))
        let lines = service.log.split(separator: "\n")
        let form = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (CRITICAL|ERROR|WARNING|INFO): .+/
        #expect(!lines.isEmpty && lines.allSatisfy { $0.wholeMatch(of: form) != nil }, "\(service.log)")
        #expect(!service.log.contains("got the error"))
    }

    @Test("The format is the journal's when standard error is the stream that the environment names")
    func journal() throws {
        let arguments = try serveCommand.arguments(["--data", "/tmp"], environment: [:])
        var status = stat()
        #expect(fstat(STDERR_FILENO, &status) == 0)
        let stream = "\(status.st_dev):\(status.st_ino)"
        #expect(try LogChoice(arguments, environment: ["JOURNAL_STREAM": stream]).format == .journal)
        for other in ["", "0:0", stream + "1"] {
            #expect(try LogChoice(arguments, environment: ["JOURNAL_STREAM": other]).format == .text)
        }
        let given = try serveCommand.arguments(["--data", "/tmp", "--log-format", "text"], environment: [:])
        #expect(try LogChoice(given, environment: ["JOURNAL_STREAM": stream]).format == .text)
    }

    @Test("Words that are no format and no level are refused", arguments: ["log-format", "log-level"])
    func refused(option: String) throws {
        let arguments = try serveCommand.arguments(["--data", "/tmp", "--\(option)", "loud"], environment: [:])
        let error = #expect(throws: UsageError.self) { try LogChoice(arguments) }
        #expect(error?.text.hasPrefix("--\(option) takes ") == true && error?.text.hasSuffix("not loud") == true)
    }
}
