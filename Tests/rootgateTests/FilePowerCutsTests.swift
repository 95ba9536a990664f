import Foundation
import ServiceTestSupport
import TestSupport
import Testing

private let mayTrace = (try? runProgram("/usr/bin/env", ["strace", "-D", "-f", "-o", "/dev/null", "true"]))?.code == 0

@Suite(
    "Power cuts while files are made and replaced",
    .enabled(if: python != nil, "no python3 with the package cryptography"),
    .enabled(if: mayTrace, "no strace, or no right to trace"))
struct FilePowerCutsTests {
    /// The disk is simulated, so files in memory do, and are quicker.
    private func run(_ words: [String]) throws -> (code: Int32, output: String, errors: String) {
        let memory = "/dev/shm"
        let free = try? FileManager.default.attributesOfFileSystem(forPath: memory)[.systemFreeSize] as? Int
        let hasRoom = FileManager.default.isWritableFile(atPath: memory) && free ?? 0 > 1 << 28
        let environment = pythonEnvironment.merging(hasRoom ? ["TMPDIR": memory] : [:]) { $1 }
        let script = packageFile("Tests/Python/power_cuts.py")
        return try runProgram(
            try #require(python), [script, ServiceProcess.path, "--seed", "\(runSeed)"] + words,
            environment: environment)
    }

    /// As many images of each kind as ROOTGATE_TEST_FILE_CUTS says.
    @Test("A first start, a restore, a repair, a rotation and a backup leave what they should after a power cut")
    func commands() throws {
        let images = ProcessInfo.processInfo.environment["ROOTGATE_TEST_FILE_CUTS"] ?? "12"
        let run = try run(["--images", images])
        print(run.output)
        #expect(run.code == 0, "ROOTGATE_TEST_SEED=\(runSeed) \(run.output)\(run.errors)")
    }

    @Test("A disk that says that it is done when it is not breaks each of these promises, and the trials see it")
    func lyingDisk() throws {
        let run = try run(["--images", "40", "--ignore-syncs"])
        #expect(run.code == 3, "ROOTGATE_TEST_SEED=\(runSeed) \(run.output)\(run.errors)")
    }
}
