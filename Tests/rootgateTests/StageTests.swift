import Foundation
import TestSupport
import Testing

@testable import rootgate

@Suite("What is installed")
struct StageTests {
    @Test("A staged folder has the program, its manual, its completions, its options and its units")
    func staged() throws {
        let folder = ScratchDirectory()
        // It stands for the program: the one of this build takes long to be copied and stripped.
        let stub = folder.path + "/program"
        try Data("#!/bin/sh\nexec '\(programPath)' \"$@\"\n".utf8).write(to: URL(fileURLWithPath: stub))
        #expect(chmod(stub, 0o755) == 0)
        let tools = folder.path + "/tools"
        try FileManager.default.createDirectory(atPath: tools, withIntermediateDirectories: false)
        try Data("#!/bin/sh\n".utf8).write(to: URL(fileURLWithPath: tools + "/strip"))
        #expect(chmod(tools + "/strip", 0o755) == 0)
        let path = tools + ":" + (ProcessInfo.processInfo.environment["PATH"] ?? "")
        let root = folder.path + "/root"
        let result = try runProgram(
            packageFile("deploy/stage"), [root], environment: ["ROOTGATE_PROGRAM": stub, "PATH": path])
        #expect(result.code == 0, "\(result.errors)")
        func mode(_ path: String) -> Int? {
            (try? FileManager.default.attributesOfItem(atPath: root + path))?[.posixPermissions] as? Int
        }
        #expect(mode("/usr/bin/rootgate") == 0o755)
        #expect(mode("/etc/rootgate/rootgate.conf") == 0o640)
        let manual = try FileManager.default.contentsOfDirectory(atPath: root + "/usr/share/man/man1")
        #expect(manual.count == Rootgate.commands.count + 1 && manual.contains("rootgate-serve.1.gz"))
        for file in [
            "bash-completion/completions/rootgate", "zsh/vendor-completions/_rootgate",
            "fish/vendor_completions.d/rootgate.fish", "man/man1/rootgate.1.gz",
        ] {
            #expect(mode("/usr/share/" + file) == 0o644, "\(file)")
        }
        for unit in ["rootgate.service", "rootgate.socket"] {
            #expect(mode("/usr/lib/systemd/system/" + unit) == 0o644)
        }
    }
}
