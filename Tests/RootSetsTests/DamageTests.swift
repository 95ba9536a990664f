import Core
import Foundation
import RootSets
import TestSupport
import Testing

/// What came of a trial.
private enum TrialOutcome: String, CaseIterable {
    case right, refused, error, wrong, crash, hang
}

/// A storage, what it answers, and copies of its files.
private struct Specimen {
    let scratch = ScratchDirectory()
    let data: [UInt8]
    let mark: [UInt8]
    let owner: [UInt8]
    let answers: [Substring]
    private let earlier: [[UInt8]]

    init(seed: UInt64) throws {
        let folder = scratch.path + "/made"
        let made = try ProbeRun(["make", folder, "\(seed)"])
        try #require(made.ending == .exit(0), "\(made.output) \(made.log)")
        func contents(_ name: String) throws -> [UInt8] {
            Array(try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name)))
        }
        let before = try contents("data.mdb")
        earlier = [Array(before[0..<152]), Array(before[4096..<4248])]
        // Two commits more, so that both meta pages have become stale.
        let sets = try RootSets(RootSets.Configuration(directory: folder))
        let name = try #require(CollaborationIdentifier("c5"))
        for byte: UInt8 in 1...2 {
            try sets.apply(Mutation(.addRoots(name, [try #require(Digest([UInt8](repeating: byte, count: 32)))])))
        }
        sets.close()
        (data, mark) = (try contents("data.mdb"), try contents("newest-commit"))
        owner = try contents("owner.lock")
        answers = []
    }

    init(_ other: Specimen) throws {
        (data, mark, owner, earlier) = (other.data, other.mark, other.owner, other.earlier)
        let run = try ProbeRun(["answers", try other.folder(with: other.data)])
        try #require(run.ending == .exit(0) && run.lines.last == "end", "\(run.ending) \(run.output.suffix(300))")
        try #require(!run.output.contains("error"), "\(run.output.prefix(2000))")
        answers = run.lines
    }

    /// A folder with the storage's files, but this data file.
    func folder(with data: [UInt8]) throws -> String {
        let folder = scratch.path + "/" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for (name, bytes) in [("data.mdb", data), ("newest-commit", mark), ("owner.lock", owner)] {
            try Data(bytes).write(to: URL(fileURLWithPath: folder + "/" + name))
        }
        return folder
    }

    func trial(_ damage: DamagedFile.Damage, seed: UInt64) throws -> (outcome: TrialOutcome, what: String) {
        var random = SeededGenerator(seed: seed)
        var file = DamagedFile(data, earlier: earlier)
        file.apply(damage, &random)
        let folder = try folder(with: file.bytes)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let run = try ProbeRun(["answers", folder], seconds: 30)
        switch run.ending {
        case .hang: return (.hang, run.log)
        case .signal(let number): return (.crash, "signal \(number) \(run.log)")
        case .exit(3): return (.refused, run.output)
        case .exit(0): break
        case .exit(let code): return (.crash, "exit \(code) \(run.output.suffix(200))")
        }
        let wrong = zip(run.lines, answers).first { $0 != $1 && !$0.contains(" error ") }
        if let wrong { return (.wrong, "\(wrong.0) instead of \(wrong.1)") }
        return (run.output.contains(" error ") ? .error : .right, "")
    }
}

@Suite("Damage", .serialized)
struct DamageTests {
    /// Kinds that our own judgement of the file must see, whatever the records' checksums see.
    private static let ours: Set<DamagedFile.Damage> = [
        .metaZeroed, .metaGarbage, .metaBit, .olderRaised, .metaStale, .fileCut,
    ]

    /// As many trials as ROOTGATE_TEST_DAMAGE says.
    @Test("However a file is damaged, the service neither ends nor loops, and no meta page makes it answer wrongly")
    func damage() throws {
        let specimen = try Specimen(try Specimen(seed: runSeed))
        var random = SeededGenerator(seed: runSeed)
        var tally: [DamagedFile.Damage: [TrialOutcome: Int]] = [:]
        let count = trials("ROOTGATE_TEST_DAMAGE", usually: 40)
        for number in 0..<count {
            let damage = DamagedFile.Damage.allCases[number % DamagedFile.Damage.allCases.count]
            let seed = random.next()
            let (outcome, what) = try specimen.trial(damage, seed: seed)
            tally[damage, default: [:]][outcome, default: 0] += 1
            let trial: Comment = "\(damage) seed \(seed): \(what), ROOTGATE_TEST_SEED=\(runSeed)"
            #expect(outcome != .crash && outcome != .hang, trial)
            if Self.ours.contains(damage) { #expect(outcome != .wrong, trial) }
        }
        for damage in DamagedFile.Damage.allCases {
            let counts = TrialOutcome.allCases.map { "\($0) \(tally[damage]?[$0] ?? 0)" }
            print("damage \(damage.rawValue): \(counts.joined(separator: ", "))")
        }
    }

    @Test(
        "A file that is cut while it is used is refused from then on, and the process stays",
        arguments: [4096, 90_000])
    func cut(bytes: Int) throws {
        let scratch = ScratchDirectory()
        try #require(try ProbeRun(["make", scratch.path + "/data", "7"]).ending == .exit(0))
        let run = try ProbeRun(["cut", scratch.path + "/data", "\(bytes)"])
        #expect(run.ending == .exit(0), "\(run.output) \(run.log)")
        let critical = run.log.split(separator: "\n").filter { $0.hasPrefix("CRITICAL: the storage has failed") }
        #expect(critical.count == 1, "\(run.log)")
    }

    @Test("Data that are moved away get no changes, and the storage recovers when they are back")
    func moved() throws {
        let scratch = ScratchDirectory()
        try #require(try ProbeRun(["make", scratch.path + "/data", "7"]).ending == .exit(0))
        let run = try ProbeRun(["move", scratch.path + "/data"])
        #expect(run.ending == .exit(0), "\(run.output) \(run.log)")
        #expect(run.log.contains("the storage was opened again"), "\(run.log)")
    }

    /// As many runs as ROOTGATE_TEST_FAILING_WRITES says.
    @Test("A storage whose writes fail opens itself again: nothing is lost, and what was refused can be repeated")
    func failingWrites() throws {
        let count = trials("ROOTGATE_TEST_FAILING_WRITES", usually: 12)
        var random = SeededGenerator(seed: runSeed)
        for number in 0..<count {
            let scratch = ScratchDirectory()
            let call = ["meta", "sync", "meta", "data"][number % 4]
            let error = number % 5 == 4 ? ENOSPC : EIO
            let words = ["\(Int.random(in: 0..<40, using: &random))", "\(1 + number % 3)", "\(error)"]
            let run = try ProbeRun(["failing", scratch.path + "/data", call] + words)
            #expect(
                run.ending == .exit(0) && run.output.hasPrefix("recovered"),
                "\(call) \(words), \(run.ending) \(run.output) \(run.log), ROOTGATE_TEST_SEED=\(runSeed)")
            if call == "meta" { #expect(run.log.contains("CRITICAL: the storage has failed"), "\(run.log)") }
        }
    }
}
