import Foundation
import TestSupport
import Testing

@Suite("The package for Debian")
struct DebianScriptTests {
    /// Runs a script of the package below a folder that stands for the system's root.
    private func run(_ script: String, _ word: String, root: String) throws -> Int32 {
        let path = packageFile("deploy/debian/" + script)
        return try runProgram("/bin/sh", [path, word], environment: ["DPKG_ROOT": root, "PATH": "/usr/bin:/bin"]).code
    }

    @Test("Removing the package keeps data, audits and options, and only purging removes data")
    func purge() throws {
        let folder = ScratchDirectory()
        let files = ["var/lib/rootgate/secret", "var/log/rootgate/audit.jsonl", "etc/rootgate/own"].map {
            "\(folder.path)/\($0)"
        }
        for file in files {
            let place = (file as NSString).deletingLastPathComponent
            try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
            try Data("kept".utf8).write(to: URL(fileURLWithPath: file))
        }
        let others = folder.path + "/var/lib/other"
        try Data("kept".utf8).write(to: URL(fileURLWithPath: others))
        for (script, word) in [
            ("prerm", "remove"), ("prerm", "upgrade"), ("postrm", "remove"), ("postrm", "upgrade"),
            ("postrm", "failed-upgrade"), ("postrm", "abort-install"), ("postrm", "disappear"),
        ] {
            #expect(try run(script, word, root: folder.path) == 0, "\(script) \(word)")
            for file in files { #expect(FileManager.default.fileExists(atPath: file), "\(script) \(word): \(file)") }
        }
        #expect(try run("postrm", "purge", root: folder.path) == 0)
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/var/lib/rootgate"))
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/var/log/rootgate"))
        // What the package did not bring stays.
        for file in [files[2], others] { #expect(FileManager.default.fileExists(atPath: file), "\(file)") }
    }
}
