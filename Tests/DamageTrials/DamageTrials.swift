import Core
import Foundation
import RootSets
import TestSupport

/// Damages copies of a storage, one trial after the other, and compares every answer with the right one:
///
///     DamageTrials make FOLDER SEED
///     DamageTrials run FOLDER SEED FIRST COUNT
///
/// `make` writes the storage's files, and an older version of the data file. `run` prints a line for each trial: its
/// number, the kind of damage, and how many answers were right, refused with an error, and wrong. Each question is
/// asked right after the start, after the check of the start, after changes, and after another start; and after a
/// repair of another copy, if it is repaired: then nothing but changes of the log may be refused. A trial that ends the
/// process is a crash, which the caller sees; one that takes 30 s is ended by a signal. The code is 2 when an argument
/// is missing, wrong or too many.
@main
enum DamageTrials {
    static func main() throws {
        let words = Array(CommandLine.arguments.dropFirst())
        guard words.count >= 3, let seed = UInt64(words[2]) else { refuse() }
        if words[0] == "make", words.count == 3 { return try SampleStorage.make(in: words[1], seed: seed) }
        guard words[0] == "run", words.count == 5, let first = Int(words[3]), let count = Int(words[4]), first >= 0,
            count >= 1, first <= Int.max - count
        else { refuse() }
        let trials = try Trials(folder: words[1], seed: seed)
        for number in first..<first + count {
            alarm(30)
            say("begin \(number) \(trials.damage(number).rawValue)")
            let tally = try trials.run(number)
            say(
                "trial \(number) \(trials.damage(number).rawValue) right \(tally.right) refused \(tally.refused) "
                    + "wrong \(tally.wrong) repaired \(tally.isRepaired ? 1 : 0) what \(tally.firstWrong ?? "-")")
        }
    }

    /// Ends the program with a line that says how it is used.
    private static func refuse() -> Never {
        let usage = "usage: DamageTrials make FOLDER SEED | run FOLDER SEED FIRST COUNT\n"
        FileHandle.standardError.write(Data(usage.utf8))
        exit(2)
    }
}

/// Writes a line at once: the process may end with the next trial.
private func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

/// What the trials of one storage share.
private struct Trials {
    let folder: String
    let seed: UInt64
    let files: SampleStorage.Files
    let questions: [Question]
    let answers: [[UInt8]?]

    struct Tally {
        var right = 0
        var refused = 0
        var wrong = 0
        var firstWrong: String?
        var isRepaired = false

        /// Counts what was answered instead of `right`.
        mutating func add(_ found: [UInt8]?, for question: Question, _ right: [UInt8]?, _ moment: String) {
            switch found {
            case nil: refused += 1
            case right: self.right += 1
            default: addWrong("\(question.name) \(moment)")
            }
        }

        mutating func addWrong(_ what: String) {
            wrong += 1
            if firstWrong == nil { firstWrong = what }
        }
    }

    init(folder: String, seed: UInt64) throws {
        self.folder = folder
        self.seed = seed
        files = try SampleStorage.Files(reading: folder)
        let intact = try Copy(files, files.newest, in: folder, number: -1, seed: seed)
        let sets = try intact.open()
        // A log that lacks its beginning has no answer to some.
        let asked = try SampleStorage.questions(seed: seed)
        questions = asked.filter { $0.answer(sets) != nil }
        answers = questions.map { $0.answer(sets) }
        sets.close()
        guard asked.count - questions.count < 20 else {
            throw ServiceError(.internalFault, "the storage is not intact")
        }
    }

    func damage(_ number: Int) -> Damage { Damage.allCases[number % Damage.allCases.count] }

    func run(_ number: Int) throws -> Tally {
        var random = SeededGenerator(seed: seed &* 1_000_003 &+ UInt64(number))
        var damaged = DamagedFile(files.newest, older: files.older, earlier: files.earlier)
        damaged.apply(damage(number), &random)
        let copy = try Copy(files, damaged.bytes, in: folder, number: number, seed: seed)
        var tally = Tally()
        let made = try use(copy, &tally)
        // A storage is closed when nobody has it any more.
        if made.contains(true), let again = try? copy.open() {
            compareChanged(again, made, &tally, "and a start")
            again.close()
        }
        try repair(damaged.bytes, number, &tally)
        return tally
    }

    /// Repairs another copy, and asks it when it was repaired.
    private func repair(_ bytes: [UInt8], _ number: Int, _ tally: inout Tally) throws {
        let copy = try Copy(files, bytes, in: folder, number: number + 1_000_000, seed: seed)
        let lines = try? StorageRepair.repair(copy.directory)
        let left = try FileManager.default.contentsOfDirectory(atPath: copy.directory)
        if left.contains("repaired") || lines == nil && left.contains(where: { $0.hasSuffix(".damaged") }) {
            tally.addWrong("a repair leaves files")
        }
        guard let lines else { return }
        tally.isRepaired = lines.count > 1
        guard let sets = try? copy.open() else { return tally.addWrong("the repaired storage does not open") }
        for _ in 0..<20_000 where !sets.health.isChecked && !sets.health.hasFailed { usleep(500) }
        let isLogShorter = lines.count > 2
        for (question, answer) in zip(questions, answers) where !(isLogShorter && question.isOfLog) {
            let found = question.answer(sets)
            let isForgotten = isLogShorter && found == nil && question.name.hasPrefix("changes after ")
            if found != answer, !isForgotten { tally.addWrong("\(question.name) after a repair") }
        }
        sets.close()
    }

    /// Asks a damaged storage, and changes it. Returns which changes were acknowledged.
    private func use(_ copy: Copy, _ tally: inout Tally) throws -> [Bool] {
        guard let sets = try? copy.open() else {
            tally.refused = questions.count
            return []
        }
        compare(sets, &tally, "at the start")
        for _ in 0..<20_000 where !sets.health.isChecked && !sets.health.hasFailed { usleep(500) }
        compare(sets, &tally, "after the check")
        // Changes that are not refused are made rightly, and spoil nothing else.
        let made = SampleStorage.laterChanges.map { mutation in (try? sets.apply(mutation)) != nil }
        compareChanged(sets, made, &tally)
        sets.close()
        return made
    }

    /// Asks for what was there before, and for what the acknowledged changes have made.
    private func compareChanged(_ sets: RootSets, _ made: [Bool], _ tally: inout Tally, _ moment: String = "") {
        let moment = "after \(made.count { $0 }) changes \(moment)"
        compare(sets, &tally, moment, hasChanged: true)
        for (question, answer) in SampleStorage.laterQuestions(made) {
            tally.add(question.answer(sets), for: question, answer, moment)
        }
    }

    private func compare(_ sets: RootSets, _ tally: inout Tally, _ moment: String, hasChanged: Bool = false) {
        for (question, answer) in zip(questions, answers) where !(hasChanged && question.isChangedLater) {
            tally.add(question.answer(sets), for: question, answer, moment)
        }
    }
}

/// A data directory of its own with these files.
private final class Copy {
    let directory: String
    private let seed: UInt64

    init(_ files: SampleStorage.Files, _ data: [UInt8], in folder: String, number: Int, seed: UInt64) throws {
        self.seed = seed
        directory = "\(folder)/trial-\(number)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        for (name, bytes) in [("data.mdb", data), ("newest-commit", files.mark), ("owner.lock", files.owner)] {
            try Data(bytes).write(to: URL(fileURLWithPath: "\(directory)/\(name)"))
        }
    }

    /// Opens the storage. The lock of one that was closed may be held a moment longer.
    func open() throws -> RootSets {
        for _ in 0..<5000 {
            do throws(ServiceError) {
                return try RootSets(SampleStorage.configuration(directory, seed: seed))
            } catch {
                guard error.code == .storageInUse else { throw error }
                usleep(1000)
            }
        }
        throw ServiceError(.storageInUse, "it stays in use")
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }
}
