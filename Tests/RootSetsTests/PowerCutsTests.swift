import Foundation
import TestSupport
import Testing

@Suite("Power cuts")
struct PowerCutsTests {
    private static let path = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appendingPathComponent("PowerCuts").path

    /// The disk is simulated, so files in memory do, and are quicker.
    private func run(_ words: [String]) throws -> (code: Int32, output: String, errors: String) {
        let memory = "/dev/shm"
        let isThere = FileManager.default.isWritableFile(atPath: memory)
        return try runProgram(Self.path, words, environment: isThere ? ["TMPDIR": memory] : [:])
    }

    /// As many images as ROOTGATE_TEST_CUTS says.
    @Test("After a power cut everything that was acknowledged is there, whole, and nothing else")
    func nothingIsLost() throws {
        let run = try run(["\(trials("ROOTGATE_TEST_CUTS", usually: 30))", "\(runSeed)"])
        print(run.output)
        #expect(run.code == 0, "ROOTGATE_TEST_SEED=\(runSeed) \(run.output)\(run.errors)")
    }

    @Test("A disk that says that it is done when it is not loses changes, and the trials see it")
    func lyingDisk() throws {
        let run = try run(["20", "\(runSeed)", "--ignore-syncs"])
        #expect(run.code == 1, "ROOTGATE_TEST_SEED=\(runSeed) \(run.output)\(run.errors)")
    }
}
