import Core
import FailingDisk
import Foundation
import RootSets

/// Uses a storage whose files or disk are damaged, in a process that may end with it.
///
///     StorageProbe make FOLDER SEED                          makes a storage with some of everything
///     StorageProbe failing FOLDER meta|data|sync AFTER COUNT ERRNO
///                                                            lets writes fail, and checks what is left
///     StorageProbe cut FOLDER BYTES                          cuts the data file in use, and reads first
///     StorageProbe cut-unread FOLDER BYTES                   the same, and writes first
///     StorageProbe full FOLDER                               adds until the disk is full, which promises too much
///     StorageProbe full-disks SEED COUNT [brief]             fills disks, and removes from them (`FullDiskTrials`)
///     StorageProbe slow FOLDER SECONDS                       changes and reads while the disk takes its time
///     StorageProbe note FOLDER                               lets the note of the newest commit fail
///     StorageProbe move FOLDER                               moves the data away and back
///     StorageProbe stopped FOLDER SEED COUNT                 stops readings of a full storage (`StoppedReaders`)
///     StorageProbe check FOLDER                              checks a storage
///     StorageProbe backup FOLDER                             writes a backup to standard output
///     StorageProbe restore BACKUP FOLDER AFTER ERRNO         restores a backup to a disk whose writes fail
///
/// Ends with 0, or with 3 when the storage was refused, or with 1 when something is wrong, or with 2 when an argument
/// is missing, wrong or too many.
@main
enum StorageProbe {
    /// What follows each command.
    private static let operands = [
        "make": "FOLDER SEED", "failing": "FOLDER meta|data|sync AFTER COUNT ERRNO", "cut": "FOLDER BYTES",
        "cut-unread": "FOLDER BYTES", "full": "FOLDER", "full-disks": "SEED COUNT [brief]", "slow": "FOLDER SECONDS",
        "note": "FOLDER", "move": "FOLDER", "stopped": "FOLDER SEED COUNT", "check": "FOLDER", "backup": "FOLDER",
        "restore": "BACKUP FOLDER AFTER ERRNO",
    ]

    static func main() {
        let words = Array(CommandLine.arguments.dropFirst())
        do {
            switch words.first {
            case "make" where words.count == 3: try make(words[1], seed: number(words[2]))
            case "failing" where words.count == 6:
                guard let writes = FailingWrites(words) else { refuse() }
                try writes.run()
            case "cut" where words.count == 3: try cut(words[1], to: number(words[2], atLeast: 0), writesFirst: false)
            case "cut-unread" where words.count == 3:
                try cut(words[1], to: number(words[2], atLeast: 0), writesFirst: true)
            case "full" where words.count == 2: try full(words[1])
            case "full-disks" where words.count == 3 || words.count == 4 && words[3] == "brief":
                let (first, count): (UInt64, Int) = (number(words[1]), number(words[2], atLeast: 1))
                guard first <= UInt64.max - UInt64(count) else { refuse() }
                FullDiskTrials.run(first: first, count: count, isBrief: words.count == 4)
            case "slow" where words.count == 3: try SlowDisk(words[1], seconds: number(words[2], atLeast: 1)).run()
            case "note" where words.count == 2: try FailingWrites.ofNote(words[1])
            case "move" where words.count == 2: try move(words[1])
            case "stopped" where words.count == 4:
                var readers = try StoppedReaders(
                    words[1], seed: number(words[2]), rounds: number(words[3], atLeast: 1))
                try readers.run()
            case "check" where words.count == 2:
                let findings = try StorageInspection.findings(in: words[1])
                if let first = findings.first { end(1, "\(findings.count) findings: \(first.line)") }
            case "backup" where words.count == 2:
                _ = try StorageBackup.write(words[1], to: STDOUT_FILENO, time: 0, rate: nil, progress: { _ in })
            case "restore" where words.count == 5: try restore(words)
            default: refuse()
            }
        } catch let error as ServiceError {
            end(3, "refused \(error)")
        } catch {
            end(1, "failed \(error)")
        }
    }

    /// The number that a word is. Any other word ends the program.
    private static func number<Number: FixedWidthInteger>(_ word: String, atLeast least: Number = .min) -> Number {
        guard let number = Number(word), number >= least else { refuse() }
        return number
    }

    /// Ends the program with a line that says how it is used.
    private static func refuse() -> Never {
        let name = CommandLine.arguments.dropFirst().first ?? ""
        let names = operands.keys.sorted().joined(separator: "|")
        let usage = operands[name].map { "\(name) \($0)" } ?? "\(names) ..."
        FileHandle.standardError.write(Data("usage: StorageProbe \(usage)\n".utf8))
        exit(2)
    }

    static func end(_ code: CInt, _ line: String) -> Never {
        print(line)
        fflush(nil)
        exit(code)
    }

    static func name(_ index: Int) throws -> CollaborationIdentifier {
        guard let name = CollaborationIdentifier("c\(index)") else { throw ServiceError(.internalFault, "no name") }
        return name
    }

    static func open(_ folder: String) throws(ServiceError) -> RootSets {
        try RootSets(
            RootSets.Configuration(directory: folder, sizeLimitBytes: 64 << 20, reserveBytes: 1 << 20),
            log: Log { FileHandle.standardError.write(Data(("\($0)\n").utf8)) })
    }

    /// Small and large collaborations, records with small and large values, and pages that became free again.
    private static func make(_ folder: String, seed: UInt64) throws {
        var random = ProbeRandom(seed: seed)
        let sets = try open(folder)
        for index in 0..<60 {
            try sets.apply(Mutation(.createCollaboration(try name(index), .challenge)))
            let count = index < 2 ? 1500 : index % 30
            for _ in 0..<(count + 499) / 500 {
                let roots = (0..<min(500, count)).map { _ in random.digest() }
                try sets.apply(Mutation(.addRoots(try name(index), roots)))
            }
        }
        for index in 0..<40 {
            var edit = Edit()
            edit.records = (0..<4).map {
                RecordEdit(Array("key/\(index)/\($0)".utf8), value: random.bytes($0 == 3 ? 9000 : 20 + index))
            }
            try sets.apply(Mutation(.edit(edit)))
        }
        for index in 50..<60 { try sets.apply(Mutation(.dropCollaboration(try name(index)))) }
        sets.close()
    }

    /// Adds roots until the disk ends, which has promised more. The refusals must say that there is no room.
    private static func full(_ folder: String) throws {
        failing_disk_end(12 << 20, 1)
        var random = ProbeRandom(seed: 3)
        let (sets, name) = (try open(folder), try name(0))
        try sets.apply(Mutation(.createCollaboration(name, .challenge)))
        var refused = 0
        for _ in 0..<2000 where refused < 20 {
            let roots = (0..<200).map { _ in random.digest() }
            guard let code = sets.outcome(adding: roots, to: name) else { continue }
            guard code == .storageFull else { end(1, "\(code) after \(refused) refusals") }
            refused += 1
        }
        guard refused == 20 else { end(1, "it never became full") }
        sets.close()
        end(0, "full")
    }

    private static func restore(_ words: [String]) throws {
        let (after, error): (CInt, CInt) = (number(words[3], atLeast: 0), number(words[4], atLeast: 1))
        let backup = Foundation.open(words[1], O_RDONLY)
        failing_disk_plan(failing_data, after, CInt.max, error)
        let plan = StorageRestore.Plan(backup: backup, directory: words[2])
        let summary = try StorageRestore.restore(plan)
        end(0, "restored \(summary.sequence), \(failing_disk_failures()) failures")
    }

    /// Moves the data away: changes are refused. When they are back, the storage recovers by itself.
    private static func move(_ folder: String) throws {
        let sets = try open(folder)
        let (one, name) = (Digest([UInt8](repeating: 9, count: 32)) ?? .zero, try name(0))
        guard rename(folder, folder + ".away") == 0 else { end(1, "the folder was not moved") }
        guard let code = sets.outcome(adding: [one], to: name), code == .storageDamaged, sets.health.hasFailed else {
            end(1, "a change was acknowledged")
        }
        usleep(1_500_000)
        guard sets.health.hasFailed else { end(1, "it recovered without its data") }
        guard rename(folder + ".away", folder) == 0 else { end(1, "the folder was not moved back") }
        let deadline = ContinuousClock.now + .seconds(20)
        while sets.outcome(adding: [one], to: name) != nil {
            guard ContinuousClock.now < deadline else { end(1, "it does not recover") }
            usleep(20_000)
        }
        end(0, "recovered")
    }

    /// Reads in turn with changes after the file was cut; nothing wrong may be answered, and no change be acknowledged,
    /// whichever comes first.
    private static func cut(_ folder: String, to bytes: Int, writesFirst: Bool) throws {
        let sets = try open(folder)
        let name = try name(0)
        func roots() -> Result<Int, ServiceError> {
            do throws(ServiceError) {
                return .success(
                    try sets.read { snapshot throws(ServiceError) in
                        var last: Digest?
                        var count = 0
                        while let page = try snapshot.roots(of: name, after: last, limit: 256), count < 100_000 {
                            count += page.items.count
                            last = page.items.last ?? last
                            if !page.hasMore { break }
                        }
                        return count
                    })
            } catch {
                return .failure(error)
            }
        }
        guard case .success(let whole) = roots() else { end(1, "nothing can be read before") }
        guard truncate(folder + "/data.mdb", off_t(bytes)) == 0 else { end(1, "the file was not cut") }
        var refused = 0
        for round in 0..<100 {
            if round > 0 || !writesFirst {
                switch roots() {
                case .success(let count) where count != whole: end(1, "wrong answer: \(count) of \(whole) roots")
                case .success: break
                case .failure(let error):
                    guard error.code == .storageDamaged else { end(1, "another error: \(error)") }
                    refused += 1
                }
            }
            let added = sets.outcome(adding: [Digest([UInt8](repeating: UInt8(round), count: 32)) ?? .zero], to: name)
            guard added == .storageDamaged || added == .storageFailed else { end(1, "a change was acknowledged") }
        }
        guard sets.health.hasFailed else { end(1, "the storage counts as intact") }
        // The lines of all threads are in the log then.
        sets.close()
        end(0, "refused \(refused) of 100 reads")
    }
}

extension RootSets {
    /// The code of the error, or `nil` when the roots were added.
    fileprivate func outcome(adding roots: [Digest], to name: CollaborationIdentifier) -> ServiceError.Code? {
        do throws(ServiceError) {
            try apply(Mutation(.addRoots(name, roots)))
            return nil
        } catch {
            return error.code
        }
    }
}
