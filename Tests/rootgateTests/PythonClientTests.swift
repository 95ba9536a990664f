import Foundation
import ServiceTestSupport
import TestSupport
import Testing

@Suite("The package rootgate for Python")
struct PythonClientTests {
    private static let interpreter = python ?? TestSupport.programPath("python3")

    /// Restarts as often as ROOTGATE_TEST_RESTARTS says.
    @Test(
        "Its own tests pass, those with a service that is restarted included",
        .enabled(if: interpreter != nil, "no python3"))
    func ownTests() throws {
        let environment = [
            "ROOTGATE_PROGRAM": ServiceProcess.path, "ROOTGATE_TEST_SEED": "\(runSeed)",
        ]
        let run = try runProgram(
            try #require(Self.interpreter),
            ["-W", "error::ResourceWarning", "-m", "unittest", "discover", "-s"]
                + [packageFile("Sources/rootgate-python/tests")],
            environment: environment.merging(pythonEnvironment) { _, new in new })
        print(run.output)
        #expect(run.code == 0, "ROOTGATE_TEST_SEED=\(runSeed) \(run.output)\(run.errors)")
        #expect(!run.errors.contains("ResourceWarning") && !run.errors.contains("never retrieved"), "\(run.errors)")
        let summary = String(run.errors.suffix(200))
        // Only the package cryptography may be missing: without it, what needs it is skipped.
        if python == nil { print("SKIPPED: python3 has no package cryptography: \(summary)") }
        #expect(summary.contains("skipped") == (python == nil), "\(summary)")
    }
}
