import Foundation
import TestSupport
import Testing

/// Runs the program `Simulation`, which is built beside the tests. A failing run prints its seed, and how to repeat it.
private func simulate(_ arguments: String...) throws -> (hasSucceeded: Bool, output: String) {
    let path = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appendingPathComponent("Simulation").path
    let result = try runProgram(path, arguments)
    print(result.output)
    return (result.code == 0, result.output + result.errors)
}

@Suite(.serialized)
struct SimulationTests {
    @Test("In random worlds the service agrees with the model")
    func randomWorlds() throws {
        let run = try simulate("--seed", "\(runSeed)", "--seconds", "60")
        #expect(run.hasSucceeded, "\(run.output)")
        // With sanitizers it makes some hundred thousands, otherwise some millions.
        let steps = run.output.firstMatch(of: /seeds, ([0-9]+) steps/).flatMap { Int($0.1) }
        #expect(try #require(steps) > 5000)
    }

    @Test("A seed runs the same way twice")
    func runsTwice() throws {
        let run = try simulate("--seed", "\(runSeed)", "--count", "1", "--twice")
        #expect(run.hasSucceeded, "\(run.output)")
    }

    @Test(
        "Arguments that are wrong, missing or there twice are refused, and so is a count of none",
        arguments: [
            "--count", "--count 0", "--count 1O", "--count -1", "--steps 0", "--seconds 0", "--seed x", "--trials 1",
            "--twice --twice", "--count 1 --count 2", "--count 1 2", "7",
        ])
    func usage(line: String) throws {
        let path = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appendingPathComponent("Simulation").path
        let run = try runProgram(path, line.split(separator: " ").map(String.init))
        #expect(run.code == 2 && run.output == "", "\(run)")
        #expect(run.errors.contains("\nusage: Simulation "), "\(run)")
    }

    @Test("A seed runs the same way in another process")
    func runsElsewhere() throws {
        func trace() throws -> Substring? {
            try simulate("--seed", "\(runSeed)", "--count", "1").output
                .split(separator: "\n").first { $0.hasPrefix("trace") }
        }
        let first = try trace()
        #expect(first != nil)
        #expect(try trace() == first)
    }
}
