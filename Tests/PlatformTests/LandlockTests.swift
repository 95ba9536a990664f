#if os(Linux)
import Foundation
import TestSupport
import Testing

@testable import Platform

@Suite("Rulesets of Landlock")
struct LandlockTests {
    private let folder = ScratchDirectory()

    /// Whether a ruleset is refused because it would allow everything.
    private func isRefused(_ rules: SandboxRules) -> Bool {
        thrown(SystemFailure.self) { _ = try Landlock(rules) }?.number == EINVAL
    }

    @Test("Each version handles the rights that it knows, and none besides")
    func versions() {
        let counts = (1...8).map { Landlock.Rights.all(version: $0).rawValue.nonzeroBitCount }
        #expect(counts == [13, 14, 15, 15, 16, 16, 16, 16])
    }

    @Test("The root folder is never allowed", .enabled(if: hasLandlock, "needs a kernel with Landlock"))
    func rootFolder() {
        #expect(isRefused(SandboxRules(writableFolders: ["/"])))
        #expect(isRefused(SandboxRules(removalFolders: ["/"])))
        #expect(!isRefused(SandboxRules(writableFolders: [folder.path], readableFiles: ["/etc/passwd"])))
        #expect(Landlock.places(of: "/secret") == ["/secret"])
    }

    @Test(
        "A folder that is not there is refused with its name", .enabled(if: hasLandlock, "needs a kernel with Landlock")
    )
    func missingFolder() {
        let path = folder.path + "/nowhere"
        let failure = thrown(SystemFailure.self) { _ = try Landlock(SandboxRules(writableFolders: [path])) }
        #expect(failure?.number == ENOENT && failure?.call == "opening \(path)")
    }

    @Test("A name that is a link is read in its own folder and in the folder where it leads")
    func links() throws {
        let files = FileManager.default
        for name in ["live", "archive"] {
            try files.createDirectory(atPath: folder.path + "/" + name, withIntermediateDirectories: false)
        }
        try Data().write(to: URL(fileURLWithPath: folder.path + "/archive/key1.pem"))
        try files.createSymbolicLink(
            atPath: folder.path + "/live/key.pem", withDestinationPath: "../archive/key1.pem")
        let base = URL(fileURLWithPath: folder.path).standardizedFileURL.path
        let real = URL(fileURLWithPath: folder.path).resolvingSymlinksInPath().path
        #expect(Landlock.places(of: folder.path + "/live/key.pem") == [base + "/live", real + "/archive"])
        #expect(
            Landlock.places(of: folder.path + "/archive/key1.pem").isSubset(of: [base + "/archive", real + "/archive"]))
    }
}
#endif
