import Foundation
import ServiceTestSupport
import TestSupport
import Testing

@Suite("A service that is killed")
struct KillTests {
    /// As many kills as ROOTGATE_TEST_KILLS says.
    @Test(
        "Killed at random moments under load, it has everything that it acknowledged, and nothing by half",
        .enabled(if: python != nil, "no python3 with the package cryptography"))
    func nothingIsLost() throws {
        let kills = ProcessInfo.processInfo.environment["ROOTGATE_TEST_KILLS"] ?? "3"
        let run = try runProgram(
            try #require(python),
            [
                packageFile("Tests/Python/kill_under_load.py"), ServiceProcess.path, "--kills", kills, "--seed",
                "\(runSeed)", "--seconds-between", "0.3",
            ], environment: pythonEnvironment)
        print(run.output)
        #expect(run.code == 0, "ROOTGATE_TEST_SEED=\(runSeed) \(run.output)\(run.errors)")
    }

    @Test(
        "Killed with many root hashes, it soon tells whether one is in a set",
        .enabled(if: python != nil, "no python3 with the package cryptography"), arguments: [1, 50])
    func starts(collaborations: Int) throws {
        let run = try runProgram(
            try #require(python),
            [
                packageFile("Tests/Python/start_times.py"), ServiceProcess.path, "--roots", "20000", "--collaborations",
                "\(collaborations)", "--participants", "500", "--starts", "2", "--seed", "\(runSeed)",
            ], environment: pythonEnvironment)
        #expect(run.code == 0, "ROOTGATE_TEST_SEED=\(runSeed) \(run.output)\(run.errors)")
        #expect(run.output.contains("20,000 root hashes in \(collaborations) collaborations"))
    }
}
