import Foundation
import TestSupport
import Testing

/// `deploy/check --message`, which judges the message of a commit.
struct MessageTests {
    private func refusal(_ message: String, as name: String? = nil) throws -> String? {
        let folder = ScratchDirectory()
        defer { withExtendedLifetime(folder) {} }
        let path = folder.path + "/message"
        try Data(message.utf8).write(to: URL(fileURLWithPath: path))
        var script = packageFile("deploy/check")
        if let name {
            let link = folder.path + "/" + name
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: script)
            script = link
        }
        let result = try runProgram("/bin/sh", [script] + (name == nil ? ["--message"] : []) + [path])
        #expect(result.output.isEmpty && (result.code == 0) == result.errors.isEmpty)
        return result.code == 0 ? nil : result.errors.trimmingCharacters(in: .newlines)
    }

    private static let subject = String(repeating: "é", count: 72)

    @Test("A message with a subject of 72 columns and a body is good, whatever comments follow it")
    func good() throws {
        #expect(try refusal("\(Self.subject)\n\nBecause.\n\n# Please enter the commit message\n# On branch x\n") == nil)
        #expect(try refusal("# A comment\nSay why\n\nBecause.", as: "commit-msg") == nil)
    }

    @Test("A message without a body, an empty line or a short subject is refused, a merge's as well")
    func bad() throws {
        #expect(try refusal("x\(Self.subject)\n\nBecause.\n") == "the subject has 73 columns, not at most 72")
        #expect(try refusal("Say what\n") == "the message has no body that says why")
        #expect(try refusal("Say what\n\n# On branch x\n") == "the message has no body that says why")
        #expect(try refusal("Merge branch 'a' into b\n") == "the message has no body that says why")
        #expect(try refusal("Say what\nand why\n") == "the subject is followed by no empty line")
        #expect(try refusal("# nothing\n") == "the message is empty")
        #expect(try refusal("Say what\n", as: "commit-msg") == "the message has no body that says why")
    }
}
