import Foundation
import TestSupport
import Testing

@testable import rootgate

@Suite("Local sockets on the command line")
struct LocalSocketCommandTests {
    private let folder = ScratchDirectory()

    @Test("A service and every command that talks to one use a local socket")
    func everyCommand() throws {
        let path = folder.path + "/socket"
        let running = try ServeTests.Running(
            folder.path + "/data", ["--listen", "unix:\(path)", "--listen-mode", "0640"])
        #expect(running.endpoint == "unix:\(path)")
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o640)
        let server = ["--server", running.endpoint]
        #expect(try runProgram(programPath, ["collab", "create", "c"] + server).code == 0)
        #expect(try runProgram(programPath, ["stats"] + server).code == 0)
        for words in [["load", "--count", "200", "--people", "20"], ["demo", "--people", "20", "--proofs", "256"]] {
            let result = try runProgram(programPath, words + ["--quiet"] + server)
            #expect(result.code == 0, "\(result.errors)")
        }
        #expect(running.end(SIGTERM) == 0)
        #expect(!FileManager.default.fileExists(atPath: path))
        let nobody = try runProgram(programPath, ["stats"] + server)
        #expect(nobody.code == 2 && nobody.errors.contains("can't connect to unix:\(path)"), "\(nobody.errors)")
    }

    @Test("A service that was killed leaves its socket, and the next one takes its place")
    func killed() throws {
        let words = ["--listen", "unix:\(folder.path)/socket"]
        #expect(try ServeTests.Running(folder.path + "/data", words).end(SIGKILL) == SIGKILL)
        #expect(FileManager.default.fileExists(atPath: folder.path + "/socket"))
        let next = try ServeTests.Running(folder.path + "/data", words)
        #expect(try runProgram(programPath, ["stats", "--server", next.endpoint]).code == 0)
        #expect(next.end(SIGTERM) == 0)
    }

    @Test(
        "Wrong words about local sockets are usage errors",
        arguments: [
            (["--listen", "tls://unix:/tmp/s"], "a local socket has no TLS"),
            (["--listen", "unix:relative"], "--listen takes HOST:PORT"),
            (["--listen-mode", "0888"], "--listen-mode takes octal permissions from 0 to 777, not 0888"),
            (["--listen-mode", "1777"], "--listen-mode takes octal permissions"),
            (["--listen-mode", "-1"], "--listen-mode takes octal permissions"),
            (["--listen-mode", "rw"], "--listen-mode takes octal permissions"),
            (
                ["--link-base", "https://example.com/c", "--app-ids", "A.b", "--association", "unix:/tmp/s"],
                "--association takes HOST:PORT"
            ),
        ])
    func wrongWords(words: [String], reason: String) throws {
        let result = try runProgram(programPath, ["serve", "--data", folder.path + "/data"] + words)
        #expect(result.code == 2 && result.errors.contains(reason), "\(result.errors)")
        #expect(result.errors.split(separator: "\n").count == 1)
        for words in [["--server", "tls://unix:/tmp/s"], ["--server", "unix:/tmp/s", "--tls-ca", "a"]] {
            let result = try runProgram(programPath, ["stats"] + words)
            #expect(result.code == 2 && result.errors.contains("has no TLS"), "\(result.errors)")
        }
    }
}
