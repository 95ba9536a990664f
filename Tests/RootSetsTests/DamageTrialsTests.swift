import Foundation
import TestSupport
import Testing

@Suite("Answers from damaged files")
struct DamageTrialsTests {
    private static let path = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appendingPathComponent("DamageTrials").path
    private static let perRun = 500

    fileprivate struct Row: CustomStringConvertible {
        var trials = 0
        var isRight = 0
        var isRefused = 0
        var isPart = 0
        var wrong = 0
        var crashes = 0
        var repaired = 0

        var description: String {
            "\(trials) trials: all answers right \(isRight), all refused \(isRefused), some refused \(isPart), "
                + "wrong \(wrong), crashes \(crashes), repaired \(repaired)"
        }
    }

    /// As many trials as ROOTGATE_TEST_DAMAGE says.
    @Test("However a file is damaged, no answer is wrong, and the process neither ends nor loops")
    func noneIsWrong() throws {
        let folder = ScratchDirectory()
        let made = try runProgram(Self.path, ["make", folder.path, "\(runSeed)"])
        try #require(made.code == 0, "\(made.output)\(made.errors)")
        let count = trials("ROOTGATE_TEST_DAMAGE", usually: 45)
        var rows: [String: Row] = [:]
        var next = 0
        while next < count {
            let rest = min(Self.perRun, count - next)
            let run = try runProgram(Self.path, ["run", folder.path, "\(runSeed)", "\(next)", "\(rest)"])
            var begun: (number: Int, kind: String)?
            for line in run.output.split(separator: "\n") {
                let words = line.split(separator: " ")
                if words.first == "begin", words.count == 3, let number = Int(words[1]) {
                    begun = (number, String(words[2]))
                }
                guard words.first == "trial", words.count >= 13 else { continue }
                rows[String(words[2]), default: Row()].add(words)
                #expect(words[8] == "0", "ROOTGATE_TEST_SEED=\(runSeed): \(line)")
                begun = nil
            }
            if run.code == 0 {
                next += rest
                continue
            }
            let last = try #require(begun, "the trials did not begin: \(run.code) \(run.errors)")
            rows[last.kind, default: Row()].crashes += 1
            Issue.record("trial \(last) ended the process: \(run.code), ROOTGATE_TEST_SEED=\(runSeed) \(run.errors)")
            next = last.number + 1
        }
        // A storage that refuses everything would never be wrong.
        let isUsed = rows.values.reduce(0) { $0 + $1.isRight }
        #expect(isUsed * 20 > count, "of \(count) trials, \(isUsed) had all answers, ROOTGATE_TEST_SEED=\(runSeed)")
        let repaired = rows.values.reduce(0) { $0 + $1.repaired }
        // With a part of the change log, few storages can be repaired; with a whole one, a third.
        if runSeed % 2 == 0 {
            #expect(
                repaired * 10 > count, "of \(count) trials, \(repaired) were repaired, ROOTGATE_TEST_SEED=\(runSeed)")
        }
        #expect(
            repaired * 50 > count - 200, "of \(count) trials, \(repaired) were repaired, ROOTGATE_TEST_SEED=\(runSeed)")
        for (kind, row) in rows.sorted(by: { $0.key < $1.key }) { print("damage \(kind): \(row)") }
    }
}

extension DamageTrialsTests.Row {
    /// Adds the line of a trial.
    fileprivate mutating func add(_ words: [Substring]) {
        let numbers = [4, 6, 8].map { Int(words[$0]) ?? 0 }
        trials += 1
        wrong += numbers[2]
        if words[10] == "1" { repaired += 1 }
        switch (numbers[0], numbers[1]) {
        case (_, 0): isRight += 1
        case (0, _): isRefused += 1
        default: isPart += 1
        }
    }
}
