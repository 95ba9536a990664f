import Core
import Foundation
import RootSets

/// Stops backups and checks of a full storage at random moments, and lets them go on when their pages were used again.
/// No removal may be refused meanwhile. A reading ends with what was stored at one moment, or says that it was given
/// up: it finds no damage, and never ends by a signal.
struct StoppedReaders {
    private final class Count: Sendable {
        let value = Lock(0)
    }

    private let folder: String
    private let rounds: Int
    private let sets: RootSets
    private let name: CollaborationIdentifier
    private let lost = Count()
    private var random: ProbeRandom
    private var stored: [[Digest]] = []

    init(_ folder: String, seed: UInt64, rounds: Int) throws {
        (self.folder, self.rounds, random) = (folder, rounds, ProbeRandom(seed: seed))
        let lost = lost
        sets = try RootSets(
            RootSets.Configuration(
                directory: folder, sizeLimitBytes: 8 << 20, reserveBytes: 1 << 20, logRetentionBytes: 1 << 20),
            log: Log { line in if "\(line)".contains("has lost what it reads") { lost.value.withLock { $0 += 1 } } })
        name = try StorageProbe.name(0)
    }

    mutating func run() throws {
        try sets.apply(Mutation(.createCollaboration(name, .challenge)))
        while try add() {}
        var (whole, givenUp) = (0, 0)
        for round in 0..<rounds {
            if try reads(round) { whole += 1 } else { givenUp += 1 }
        }
        sets.close()
        StorageProbe.end(
            0,
            "\(rounds) readings: \(whole) whole, \(givenUp) given up; \(lost.value.withLock { $0 }) lost what they read"
        )
    }

    /// Returns whether there was room.
    private mutating func add() throws -> Bool {
        let roots = (0..<200).map { _ in random.digest() }
        do {
            try sets.apply(Mutation(.addRoots(name, roots)))
        } catch {
            guard error.code == .storageFull else { throw error }
            return false
        }
        stored.append(roots)
        return true
    }

    /// A removal of what is there or not, and an addition when there is room.
    private mutating func change() throws {
        if random.below(4) == 0, !stored.isEmpty {
            let roots = stored.remove(at: random.below(stored.count))
            try sets.apply(Mutation(.removeRoots(name, roots)))
            _ = try add()
        } else {
            try sets.apply(Mutation(.removeRoots(name, [random.digest()])))
        }
    }

    /// Stops a reading and lets it go on. Returns whether it came to its end.
    private mutating func reads(_ round: Int) throws -> Bool {
        let process = Process()
        let isBackup = random.below(2) == 0
        let (output, log) = (folder + "/../output", folder + "/../log")
        for path in [output, log] { _ = FileManager.default.createFile(atPath: path, contents: nil) }
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
        process.arguments = [isBackup ? "backup" : "check", folder]
        process.standardOutput = FileHandle(forWritingAtPath: output)
        process.standardError = FileHandle(forWritingAtPath: log)
        try process.run()
        usleep(UInt32(random.below(20_000)))
        kill(process.processIdentifier, SIGSTOP)
        let before = lost.value.withLock { $0 }
        for _ in 0..<200 where lost.value.withLock({ $0 }) == before && process.isRunning { try change() }
        for _ in 0..<random.below(200) { try change() }
        kill(process.processIdentifier, SIGCONT)
        process.waitUntilExit()
        let ending = "\(isBackup ? "backup" : "check") \(round)"
        guard process.terminationReason == .exit else {
            StorageProbe.end(1, "\(ending) ended with signal \(process.terminationStatus)")
        }
        if process.terminationStatus == 0 {
            if isBackup { try read(output) }
            return true
        }
        let said = String(decoding: try Data(contentsOf: URL(fileURLWithPath: output)).suffix(300), as: UTF8.self)
        guard process.terminationStatus == 3, said.contains("was given up") else {
            StorageProbe.end(1, "\(ending) ended with \(process.terminationStatus): \(said)")
        }
        return false
    }

    private func read(_ backup: String) throws {
        let file = open(backup, O_RDONLY)
        defer { close(file) }
        _ = try StorageRestore.restore(StorageRestore.Plan(backup: file, directory: folder + "/../restored"))
        try FileManager.default.removeItem(atPath: folder + "/../restored")
    }
}

extension ProbeRandom {
    /// A number from 0 up to but not including `bound`.
    fileprivate mutating func below(_ bound: Int) -> Int {
        let bytes = bytes(4)
        return bytes.reduce(0) { $0 << 8 | Int($1) } % bound
    }
}
