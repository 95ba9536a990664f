import Core
import Foundation
import Hashing
import Signatures
import TestSupport
import Testing

@Suite("Threads that use libcrypto when the process ends")
struct ProcessEndTests {
    @Test("A process that keeps libcrypto ends well, and its threads can use it until then", arguments: 0..<5)
    func ending(number: Int) async {
        await #expect(processExitsWith: .success) {
            Libcrypto.stayUntilExit()
            // What is to be done at the end is done in reverse order: this after what libcrypto wants on its first use.
            atexit { usleep(50_000) }
            let begun = DispatchSemaphore(value: 0)
            for _ in 0..<3 {
                Thread {
                    while true {
                        guard (try? PrivateKey()) != nil else { _exit(1) }
                        begun.signal()
                    }
                }.start()
            }
            for _ in 0..<3 { begun.wait() }
            exit(0)
        }
    }

    private static let leavesThreads = "ROOTGATE_TEST_LEFT_THREADS"
    private static let program = "/proc/self/exe"

    @Test(
        "A process of tests ends well, although a test has left threads that use libcrypto",
        .enabled(
            if: FileManager.default.fileExists(atPath: program) && programPath("timeout") != nil,
            "needs /proc and timeout"))
    func leftThreads() throws {
        let environment = ProcessInfo.processInfo.environment.merging([Self.leavesThreads: "1"]) { $1 }
        let timeout = try #require(programPath("timeout"))
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: Self.program)
        for _ in 0..<20 {
            let (process, output) = (Process(), Pipe())
            // A process that hangs at its end does not end well either.
            process.executableURL = URL(fileURLWithPath: timeout)
            process.arguments = [
                "60", program, "--testing-library", "swift-testing", "--no-parallel", "--filter",
                "ProcessEndTests/leaveThreads",
            ]
            process.environment = environment
            (process.standardOutput, process.standardError) = (output, output)
            try process.run()
            let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            process.waitUntilExit()
            #expect(process.terminationReason == .exit && process.terminationStatus == 0, "\(said)")
            #expect(said.contains("with 1 test in 1 suite passed"), "\(said)")
        }
    }

    @Test(
        "Threads that use libcrypto are left to the end of the process",
        .enabled(if: ProcessInfo.processInfo.environment[leavesThreads] != nil, "a part of the test before"))
    func leaveThreads() throws {
        let key = try PrivateKey()
        let begun = DispatchSemaphore(value: 0)
        for _ in 0..<3 {
            Thread {
                while (try? key.sign(.zero)) != nil { begun.signal() }
                _exit(1)
            }.start()
        }
        for _ in 0..<100 { begun.wait() }
    }
}
