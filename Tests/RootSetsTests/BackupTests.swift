import Core
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import RootSets

@Suite("Backups")
struct BackupTests {
    @Test("A backup restores every entry, and the storage goes on as if it had always been so")
    func roundTrip() throws {
        let scene = try BackupScene(mutations: 250)
        let (directory, summary) = try scene.restore(try scene.backUp())
        scene.close()
        #expect(try BackupScene.entries(of: directory) == BackupScene.entries(of: scene.folder))
        #expect(summary.sequence == UInt64(scene.model.log.count))
        let sets = try RootSets(RootSets.Configuration(directory: directory, reserveBytes: 1 << 20))
        #expect(becomesTrue { sets.health.isChecked })
        #expect(sets.health.level == .intact)
        let context = "ROOTGATE_TEST_SEED=\(runSeed)"
        try expectSame(sets, scene.model, probes: scene.steps.universe, context)
        #expect(try sets.allChanges() == scene.model.log)
        var model = scene.model
        for _ in 0..<50 {
            let mutation = scene.steps.next(growth: 0.5, model.records)
            #expect(sets.outcome(of: mutation) == model.apply(mutation), "\(context)")
        }
        try expectSame(sets, model, probes: scene.steps.universe, context)
        sets.close()
    }

    @Test("An empty storage and one whose log was shortened are restored, too")
    func edges() throws {
        let empty = try BackupScene(mutations: 0)
        let (directory, summary) = try empty.restore(try empty.backUp())
        empty.close()
        #expect(summary.sequence == 0)
        #expect(try BackupScene.entries(of: directory) == BackupScene.entries(of: empty.folder))
        let short = try BackupScene(mutations: 60)
        for _ in 0..<20 { try short.change(logBytes: 4096) }
        let (other, restored) = try short.restore(try short.backUp())
        short.close()
        #expect(restored.header.firstSequence > 1)
        #expect(try BackupScene.entries(of: other) == BackupScene.entries(of: short.folder))
    }

    /// Each change adds one root hash and writes one record, so the state after each change is known.
    @Test("A backup that is made while a writer is busy is the state after one change, and later changes are not in it")
    func busyWriter() throws {
        let scene = try BackupScene(mutations: 0)
        let deck = try name("deck")
        func root(_ number: UInt64) -> Digest { Digest(ReferenceSHA256.hash(Array("\(number)".utf8))) ?? .zero }
        try scene.apply(Mutation(.createCollaboration(deck, .challenge)))
        func write(_ sequence: UInt64) throws {
            var edit = Edit(deck)
            edit.addedRoots = [root(sequence)]
            edit.records = [RecordEdit(Array("last".utf8), value: Array("\(sequence)".utf8))]
            edit.records.append(
                RecordEdit(Array("log".utf8), isSequenced: true, value: [UInt8](repeating: 1, count: 1500)))
            try scene.apply(Mutation(.edit(edit)))
        }
        for sequence in 2...400 { try write(UInt64(sequence)) }
        let environment = try #require(scene.environment)
        let path = scene.scratch.path + "/busy"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        let isDone = Atomic<Bool>(false)
        let ended = DispatchSemaphore(value: 0)
        let outcome = Lock<String?>("no backup")
        // It is slowed down, so that many changes come meanwhile.
        Thread.detachNewThread {
            do {
                let transaction = try ReadTransaction(environment)
                try transaction.renew()
                _ = try StorageBackup.write(environment, transaction, to: descriptor, time: 1, rate: 400_000)
                transaction.reset()
                outcome.withLock { $0 = nil }
            } catch { outcome.withLock { $0 = "\(error)" } }
            isDone.store(true, ordering: .releasing)
            ended.signal()
        }
        var last: UInt64 = 400
        while !isDone.load(ordering: .acquiring) {
            last += 1
            try write(last)
        }
        ended.wait()
        close(descriptor)
        #expect(outcome.withLock { $0 } == nil)
        let (directory, summary) = try scene.restore(path)
        #expect(summary.sequence >= 400 && summary.sequence < last, "the writer was not busy")
        let sets = try RootSets(RootSets.Configuration(directory: directory, reserveBytes: 1 << 20))
        #expect(try sets.allRoots(of: deck) == (2...summary.sequence).map { root($0) }.sorted())
        try sets.read { snapshot throws(ServiceError) in
            #expect(try snapshot.record(Array("last".utf8))?.value == Array("\(summary.sequence)".utf8))
        }
        sets.close()
    }

    /// As many changes as ROOTGATE_TEST_BACKUPS says, besides those of each byte at the beginning and at the end.
    @Test("A backup with any byte changed, cut or added is refused, and nothing is left behind")
    func damaged() throws {
        var random = SeededGenerator(seed: runSeed)
        let scene = try BackupScene(mutations: 40)
        let whole = try ForgedBackup(try scene.backUp())
        let path = scene.scratch.path + "/damaged"
        try whole.write(path)
        // The header, the first bytes behind it, and the end.
        let edges = Array(whole.bytes.indices.prefix(100)) + whole.bytes.indices.suffix(60)
        for trial in 0..<edges.count + trials("ROOTGATE_TEST_BACKUPS", usually: 80) {
            var damaged = whole
            let isEdge = trial < edges.count
            let place = isEdge ? edges[trial] : Int.random(in: damaged.bytes.indices, using: &random)
            switch isEdge ? 0 : trial % 4 {
            case 2: damaged.bytes.removeLast(damaged.bytes.count - place)
            case 3: damaged.bytes += random.bytes(1 + place % 3)
            default: damaged.bytes[place] ^= UInt8(1) << UInt8.random(in: 0..<8, using: &random)
            }
            try damaged.write(path)
            let error = scene.refusal(of: path, "byte \(place), trial \(trial), ROOTGATE_TEST_SEED=\(runSeed)")
            #expect(error?.code == .storageDamaged, "\(error.map(\.description) ?? "none")")
        }
    }

    @Test("A truncated backup, another file and a newer version are refused with a reason that says so")
    func reasons() throws {
        let scene = try BackupScene(mutations: 40)
        let whole = try ForgedBackup(try scene.backUp())
        let path = scene.scratch.path + "/changed"
        func reason(_ change: (inout ForgedBackup) -> Void) throws -> String {
            var changed = whole
            change(&changed)
            try changed.write(path)
            return scene.refusal(of: path)?.reason ?? ""
        }
        #expect(try reason { $0.bytes.removeLast() }.contains("truncated"))
        #expect(try reason { $0.bytes = [] }.contains("no backup"))
        #expect(try reason { $0.bytes = Array("#!/bin/sh\n".utf8) }.contains("no backup"))
        #expect(try reason { $0.bytes.append(0) }.contains("follows its end"))
        let newer = try reason { changed in
            changed.bytes[16] = 2
            changed.sealHeader()
            changed.seal()
        }
        #expect(newer.contains("version 2") && newer.contains("newer one"), "\(newer)")
        let format = try reason { changed in
            changed.bytes[20] = 3
            changed.sealHeader()
            changed.seal()
        }
        #expect(format.contains("format 3") && format.contains("newer one"), "\(format)")
    }

    /// Whoever changes a backup can compute its SHA-256 anew. These are no promises against him: they show that each
    /// check is made.
    @Test("A backup whose SHA-256 fits is refused when a seal, an order, a count or an entry is not right")
    func forged() throws {
        let scene = try BackupScene(mutations: 40)
        let whole = try ForgedBackup(try scene.backUp())
        let places = whole.places
        let path = scene.scratch.path + "/forged"
        func reason(_ change: (inout ForgedBackup) -> Void) throws -> String {
            var changed = whole
            change(&changed)
            changed.seal()
            try changed.write(path)
            return scene.refusal(of: path)?.reason ?? ""
        }
        func records(_ code: UInt8) -> [Int] { places.indices.filter { whole.bytes[places[$0]] == code } }
        let packed = try #require(records(UInt8(DatabaseName.packed.rawValue)).first)
        let record = try #require(records(UInt8(DatabaseName.records.rawValue)).first)
        #expect(try reason { $0.bytes[places[record + 1] - 1] ^= 1 }.contains("is not what was written"))
        // An entry that is not there is found by the sums of all entries.
        for (first, end) in [(places[record], places[record + 1]), (places[packed], places[packed + 1])] {
            #expect(try reason { $0.bytes.removeSubrange(first..<end) }.contains("contradicts itself"))
        }
        // Twice the same, which is out of order.
        #expect(
            try reason {
                $0.bytes.insert(contentsOf: whole.bytes[places[record]..<places[record + 1]], at: places[record])
            }
            .contains("is not what was written"))
        #expect(try reason { $0.bytes[places[record] + 1] = 1 }.contains("is not what was written"))
        // An entry that says of itself how long it is: the key of a record, and the value.
        func sized(_ code: DatabaseName, key: Int, value: Int, sealed: Bool = true) throws -> String {
            try reason { changed in
                let keyBytes = [UInt8](repeating: 0, count: key)
                var entry: [UInt8] = [UInt8(code.rawValue), 0]
                entry.appendInteger(UInt16(key))
                entry.appendInteger(UInt32(value))
                var stored = [UInt8](repeating: 0, count: value)
                if sealed, value >= SealedValue.sealBytes {
                    let seed = keyBytes.withUnsafeBytes { Database.seed(of: $0, in: code) }
                    let contents = [UInt8](repeating: 0, count: value - SealedValue.sealBytes)
                    stored = SealedValue.bytes(of: contents, version: 1, seed: seed).bytes
                }
                changed.bytes.insert(contentsOf: entry + keyBytes + stored, at: places[record])
            }
        }
        // These are read, and refused for what the whole contains; the next ones are not read.
        #expect(try sized(.records, key: 511, value: 40).contains("contradicts itself"))
        #expect(try sized(.records, key: 512, value: 40).contains("is not what was written"))
        #expect(try sized(.records, key: 0, value: 40).contains("is not what was written"))
        #expect(try sized(.records, key: 1, value: SealedValue.sealBytes).contains("contradicts itself"))
        #expect(try sized(.records, key: 1, value: SealedValue.sealBytes - 1).contains("is not what was written"))
        #expect(try sized(.records, key: 1, value: Limits.backupValueBytesMax).contains("contradicts itself"))
        #expect(try sized(.records, key: 1, value: Limits.backupValueBytesMax + 1).contains("is not what was written"))
        #expect(try reason { $0.bytes[places[record]] = 0x60 }.contains("is not what was written"))
        #expect(
            try reason { changed in
                changed.bytes[32] ^= 1
                changed.sealHeader()
            }.contains("not those that its beginning tells"))
    }

    @Test("Nothing is overwritten: only a directory that is missing or empty takes a backup")
    func targets() throws {
        let scene = try BackupScene(mutations: 20)
        let backup = try scene.backUp()
        let target = scene.scratch.path + "/target"
        try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: false)
        try Data("kept".utf8).write(to: URL(fileURLWithPath: target + "/note"))
        func code(_ name: String) -> ServiceError.Code? {
            do {
                try scene.restore(backup, to: name)
                return nil
            } catch { return (error as? ServiceError)?.code }
        }
        #expect(code("target") == .storageFailed)
        #expect(code("backup") == .storageFailed)
        #expect(code("data") == .storageFailed)
        #expect(code("missing/target") == .storageFailed)
        try FileManager.default.createDirectory(
            atPath: scene.scratch.path + "/empty", withIntermediateDirectories: false)
        #expect(symlink("empty", scene.scratch.path + "/link") == 0)
        for name in ["link", "empty/.", "empty/..", "link/"] { #expect(code(name) == .storageFailed, "\(name)") }
        #expect(try String(contentsOfFile: target + "/note", encoding: .utf8) == "kept")
        try FileManager.default.removeItem(atPath: target + "/note")
        #expect(code("target/") == nil)
        #expect(try scene.restore(backup, to: "another").summary.sequence == UInt64(scene.model.log.count))
        var status = stat()
        #expect(stat(target, &status) == 0 && status.st_mode & 0o777 == 0o700)
        let left = try FileManager.default.contentsOfDirectory(atPath: scene.scratch.path)
        #expect(!left.contains { $0.contains("restoring") }, "\(left)")
    }

    @Test("A file in the making is refused by a service, and a storage that is being filled has no format yet")
    func unfinished() throws {
        let scene = try BackupScene(mutations: 40)
        let reader = try BackupReader(open(try scene.backUp(), O_RDONLY | O_CLOEXEC))
        let folder = scene.scratch.path + "/unfinished"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        do {
            let storage = try UnfinishedStorage(directory: folder, mapBytes: 1 << 28)
            while let entry = try reader.next() {
                try storage.append(entry)
                // So much is one commit.
                let filler = [UInt8](repeating: 0, count: 4 << 20)
                if entry.database == .log {
                    try storage.append(BackupEntry(database: .mutations, key: Array("z".utf8), value: filler))
                    break
                }
            }
        }
        let code = ServiceError.code { () throws(ServiceError) in
            _ = try RootSets(RootSets.Configuration(directory: folder))
        }
        #expect(code == .storageDamaged)
    }

    @Test("While a restore has not ended, nothing starts, checks, repairs or backs up its folder")
    func unfinishedRestore() throws {
        let scene = try BackupScene(mutations: 40)
        let backup = open(try scene.backUp(), O_RDONLY | O_CLOEXEC)
        defer { close(backup) }
        var refusals: [ServiceError?] = []
        let plan = StorageRestore.Plan(backup: backup, directory: scene.scratch.path + "/restored")
        _ = try StorageRestore.restore(
            plan,
            finish: { folder, _ throws(ServiceError) in
                refusals = [
                    thrownServiceError { _ = try RootSets(RootSets.Configuration(directory: folder)) },
                    thrownServiceError { _ = try StorageInspection.findings(in: folder) },
                    thrownServiceError { _ = try LiveStorage(folder) },
                    thrownServiceError { _ = try StorageRepair.repair(folder) },
                ]
            })
        #expect(refusals.count == 4)
        for refusal in refusals {
            #expect(refusal?.reason.contains("ended before it was done") == true, "\(refusal?.reason ?? "")")
        }
        try RootSets(RootSets.Configuration(directory: plan.directory)).close()
    }

    @Test("A damaged storage makes no backup")
    func damagedStorage() throws {
        let scene = try BackupScene(mutations: 40)
        let environment = try #require(scene.environment)
        let transaction = try WriteTransaction(environment.handle)
        try transaction.deleteBytes(
            environment.records,
            try #require(transaction.entries(of: environment.records, after: [], countMax: 1, bytesMax: 1).first).key)
        try transaction.put(try transaction.totals(in: environment.meta), in: environment.meta)
        try transaction.commit()
        #expect(throws: StorageFailure.self) { try scene.backUp() }
    }

    @Test("A data file that has lost a commit makes no backup, and its log is applied only as far as somebody says")
    func lostCommit() throws {
        let scene = try BackupScene(mutations: 20)
        let first = try scene.backUp("first")
        while scene.model.log.count < 30 { try scene.change() }
        let file = URL(fileURLWithPath: scene.folder + "/data.mdb")
        scene.close()
        let before = try Data(contentsOf: file)
        try scene.reopen()
        try scene.apply(Mutation(.createCollaboration(try name("late"), .challenge)))
        scene.close()
        try before.write(to: file)
        let refused = #expect(throws: ServiceError.self) {
            try StorageBackup.write(scene.folder, to: -1, time: 0, rate: nil, progress: { _ in })
        }
        #expect(refused?.reason.contains("committed and acknowledged") == true, "\(refused?.reason ?? "")")
        #expect(try StorageInspection.findings(in: scene.folder).count == 1)
        #expect(scene.refusal(of: first, logs: [scene.folder])?.reason.contains("--until") == true)
        #expect(try scene.restore(first, logs: [scene.folder], until: 30).summary.sequence == 30)
    }

    @Test("A backup that takes the service's room is given up, also when the reader of a pipe does not read")
    func cost() throws {
        var pipes: [CInt] = [0, 0]
        try #require(pipe(&pipes) == 0)
        defer { for descriptor in pipes { close(descriptor) } }
        let output = BackupOutput(pipes[1], rate: nil, SnapshotCost(of: .backup) { .tooMuch })
        let error = #expect(throws: StorageFailure.self) {
            for _ in 0..<8 { try output.append([UInt8](repeating: 1, count: 128 << 10)) }
        }
        #expect(error?.text.contains("given up") == true)
    }

    @Test("A backup is slowed down to its rate, and no longer so when it takes much of the service's room")
    func rate() throws {
        let scratch = ScratchDirectory()
        let descriptor = open(scratch.path + "/output", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        func seconds(_ cost: SnapshotCost.Level) throws -> Double {
            let begun = ContinuousClock.now
            let output = BackupOutput(descriptor, rate: 1 << 20, SnapshotCost(of: .backup) { cost })
            for _ in 0..<24 { try output.append([UInt8](repeating: 1, count: 128 << 10)) }
            _ = try output.finish()
            return (ContinuousClock.now - begun) / .seconds(1)
        }
        #expect(try seconds(.little) >= 2.9)
        #expect(try seconds(.much) < 2.5)
    }

    @Test("A check beside a service is given up when it takes the service's room, whatever it has found")
    func costOfCheck() throws {
        let scene = try BackupScene(mutations: 100)
        let environment = try #require(scene.environment)
        let transaction = try ReadTransaction(environment)
        try transaction.renew()
        defer { transaction.reset() }
        let cost = SnapshotCost(of: .check, environment, transaction)
        #expect(try StorageInspection.findings(in: environment, transaction, cost).isEmpty)
        for level in [SnapshotCost.Level.little, .much] {
            #expect(
                try StorageInspection.findings(in: environment, transaction, SnapshotCost(of: .check) { level }).isEmpty
            )
        }
        let error = #expect(throws: StorageFailure.self) {
            try StorageInspection.findings(in: environment, transaction, SnapshotCost(of: .check) { .tooMuch })
        }
        #expect(error?.text.contains("the check was given up") == true, "\(error?.text ?? "")")
    }

    @Test("The cost of a snapshot is judged a hundred times a second at most, and a cost that can't be judged is none")
    func judging() throws {
        let judged = Shared(0)
        let cost = SnapshotCost(of: .log) {
            judged.increment()
            return .tooMuch
        }
        for _ in 0..<1000 { #expect(cost.isTooMuch) }
        #expect((1...20).contains(judged.value), "\(judged.value)")
        #expect(throws: StorageFailure.self) { try cost.check() }
        let isAwaited = Shared(false)
        let awaited = SnapshotCost(of: .log, isAwaited: { isAwaited.value }) { .little }
        #expect(!awaited.isTooMuch)
        isAwaited.with { $0 = true }
        #expect(becomesTrue { awaited.isTooMuch })
        #expect(throws: StorageFailure.self) { try awaited.check() }
        isAwaited.with { $0 = false }
        #expect(awaited.isTooMuch)
        let failing = SnapshotCost(of: .log) { () throws(StorageFailure) in throw StorageFailure(EIO, "counting") }
        #expect(!failing.isTooMuch)
        #expect(throws: Never.self) { try failing.check() }
    }

    @Test("The pages that are kept for a snapshot are counted")
    func pagesKept() throws {
        let scene = try BackupScene(mutations: 100)
        let environment = try #require(scene.environment)
        let transaction = try ReadTransaction(environment)
        try transaction.renew()
        defer { transaction.reset() }
        let number = Int(try transaction.totals().transaction)
        #expect(try environment.pagesKept(for: number) == 0)
        for _ in 0..<30 { try scene.change() }
        #expect(try environment.pagesKept(for: number) >= 60)
    }
}
