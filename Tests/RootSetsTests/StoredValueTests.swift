import Core
import Foundation
@testable import RootSets
import TestSupport
import Testing

private let withoutMeta: [DatabaseName] = [.packed, .large, .log, .mutations, .records]

@Suite("Damage of stored values")
struct StoredValueTests {
    @Test("A storage without damage is checked soon after it was opened, and nothing is found")
    func intact() throws {
        let damaged = try DamagedStorage()
        let sets = try damaged.checked()
        #expect(sets.health.level == .intact && sets.health.unreadiness == nil)
        #expect(damaged.lines.texts.withLock { $0 } == [])
        for name in DatabaseName.allCases { #expect(damaged.outcome(of: name, sets) == nil, "\(name)") }
        try sets.apply(Mutation(.addRoots(damaged.deck, [.zero])))
        sets.close()
    }

    @Test("A flipped bit of any stored value is an error for who needs it, and for additions", arguments: withoutMeta)
    func flippedBit(name: DatabaseName) throws {
        var random = SeededGenerator(seed: runSeed)
        for round in 0..<6 {
            let damaged = try DamagedStorage()
            let place = name == .mutations ? try mutationPlace(damaged) : round % (name == .packed ? 1 : 4)
            let key = try damaged.entry(name, place).key
            try damaged.flip(name, key, bit: Int.random(in: 0..<100_000, using: &random))
            let sets = try damaged.checked()
            #expect(damaged.outcome(of: name, sets) == .storageDamaged, "seed \(runSeed), \(name), round \(round)")
            #expect(sets.health.level == .damaged)
            #expect(sets.refusal(of: .addRoots(damaged.deck, [.zero])) == .storageDamaged)
            let lines = damaged.lines.texts.withLock { $0 }
            #expect(lines.count == 1 && lines[0].hasPrefix("CRITICAL: the storage is damaged: "), "\(lines)")
            sets.close()
        }
    }

    @Test(
        "An entry whose key was damaged is not taken for absent",
        arguments: [DatabaseName.packed, .records, .mutations])
    func damagedKey(name: DatabaseName) throws {
        let damaged = try DamagedStorage()
        let key = try damaged.entry(name, name == .mutations ? mutationPlace(damaged) : 0).key
        try damaged.tamper { transaction, environment in
            let database = environment.databases[name]
            let value = Array(try #require(try transaction.bytes(database, key)))
            try transaction.deleteBytes(database, key)
            var other = key
            // The last bit of the bytes is the first of an integer key: it stays in its place among the others.
            other[name == .packed ? 0 : key.count - 1] ^= 1
            try transaction.putBytes(database, other, value)
        }
        let sets = try damaged.checked()
        #expect(damaged.outcome(of: name, sets) == .storageDamaged, "\(name)")
        sets.close()
    }

    @Test(
        "A removal gets through while the sums show that nothing else is damaged; additions and other removals do not")
    func removals() throws {
        let damaged = try DamagedStorage()
        try damaged.flip(.records, [3, 1], bit: 16 * 8 + 3)
        do {
            let sets = try damaged.checked()
            #expect(sets.refusal(of: .removeRoots(damaged.deck, [damaged.members[0]])) == nil)
            #expect(try sets.test(damaged.members, in: damaged.deck) == [false, true, true, true])
            #expect(sets.refusal(of: .addRoots(damaged.deck, [.zero])) == .storageDamaged)
            var edit = Edit()
            edit.records = [RecordEdit([3, 1], value: nil)]
            #expect(sets.refusal(of: .edit(edit)) == .storageDamaged)
            sets.close()
        }
        // The same damage is found again, and no other.
        #expect(try StorageInspection.findings(in: damaged.storage.directory).map(\.kind) == [.entry])
        // With entries out of date nobody can tell what a removal would be built on.
        try damaged.tamper { transaction, environment in
            try transaction.deleteBytes(environment.log, bigEndianBytes(2))
        }
        let distrusted = try damaged.checked()
        #expect(distrusted.refusal(of: .removeRoots(damaged.deck, [damaged.members[1]])) == .storageDamaged)
        distrusted.close()
    }

    @Test(
        "A removal gets through when the log is to become shorter, and its beginning is damaged",
        arguments: [DatabaseName.log, .mutations])
    func damagedBeginning(name: DatabaseName) throws {
        let damaged = try DamagedStorage()
        var key = bigEndianBytes(1)
        if name == .mutations {
            try damaged.tamper { transaction, environment in
                let record = try #require(try transaction.get(environment.log, key))
                key = try LogRecord.identifier(in: record.contents)
            }
        }
        try damaged.flip(name, key, bit: 16 * 8 + 3)
        let sets = try damaged.checked(logRetentionBytes: 1)
        for member in damaged.members[..<2] {
            #expect(sets.refusal(of: .removeRoots(damaged.deck, [member])) == nil)
        }
        #expect(try sets.test(damaged.members, in: damaged.deck) == [false, false, true, true])
        #expect(try sets.statistics().firstSequence == 1)
        #expect(sets.refusal(of: .addRoots(damaged.deck, [.zero])) == .storageDamaged)
        sets.close()
        #expect(try StorageInspection.findings(in: damaged.storage.directory).contains { $0.kind == .entry })
    }

    @Test("Who reads a database waits until the check has left it, and the writer until it has left all")
    func waiting() throws {
        let damaged = try DamagedStorage()
        let environment = try StorageEnvironment(
            directory: damaged.storage.directory, bytesMax: 1 << 30, reserveBytes: 1 << 20)
        environment.trust.beginCheck()
        let pool = ReadTransactionPool(environment)
        let queue = CommitQueue(pool, RootSets.Configuration(directory: damaged.storage.directory)) {
            () throws(ServiceError) in throw ServiceError(.storageFailed, "it is not opened again")
        }
        queue.start()
        let isRead = Lock(false)
        let isWritten = Lock(false)
        let (deck, members) = (damaged.deck, damaged.members)
        queue.submit(Mutation(.addRoots(damaged.deck, [.zero])), of: .service, isUrgent: false) { result in
            if case .success = result { isWritten.withLock { $0 = true } }
        }
        onThreads(2) { thread in
            if thread == 0 {
                try? pool.withTransaction { transaction throws(StorageFailure) in
                    let snapshot = Snapshot(transaction, environment)
                    let tests = try? snapshot.test(members, in: deck)
                    isRead.withLock { $0 = tests == members.map { _ in true } }
                }
            } else {
                for name in [DatabaseName.meta, .records] { environment.trust.noteChecked(name) }
                usleep(100_000)
                #expect(!isRead.withLock { $0 })
                environment.trust.noteChecked(.packed)
                #expect(becomesTrue { isRead.withLock { $0 } })
                #expect(!isWritten.withLock { $0 })
                for name in DatabaseName.allCases { environment.trust.noteChecked(name) }
                #expect(becomesTrue { isWritten.withLock { $0 } })
            }
        }
        queue.close()
    }

    @Test("Readers whose wait is bounded don't wait on, and are refused what the check has not come to alone")
    func boundedWait() throws {
        let damaged = try DamagedStorage()
        let environment = try StorageEnvironment(
            directory: damaged.storage.directory, bytesMax: 1 << 30, reserveBytes: 1 << 20)
        environment.health.boundsWaits = true
        environment.trust.beginCheck()
        environment.trust.noteChecked(.meta)
        let transaction = try ReadTransaction(environment)
        try transaction.renew()
        defer { transaction.reset() }
        let snapshot = Snapshot(transaction, environment)
        let begin = ContinuousClock.now
        #expect(try snapshot.statistics().roots == 304)
        for name in withoutMeta {
            let error = thrownServiceError { try damaged.expectRight(name, snapshot) }
            #expect(error?.code == .busy && error?.detail == Limits.uncheckedMilliseconds, "\(name)")
        }
        #expect(.now - begin >= .milliseconds(900))
        #expect(environment.trust.isOverdue([.packed, .large]) && !environment.trust.isOverdue([.meta]))
        for name in withoutMeta { environment.trust.noteChecked(name) }
        #expect(!environment.trust.isOverdue(DatabaseName.allCases))
        for name in withoutMeta { try damaged.expectRight(name, snapshot) }
        #expect(environment.health.level == .intact)
    }

    @Test("What a check that was ended did not come to is not answered")
    func endedCheck() throws {
        let damaged = try DamagedStorage()
        let environment = try StorageEnvironment(
            directory: damaged.storage.directory, bytesMax: 1 << 30, reserveBytes: 1 << 20)
        environment.trust.beginCheck()
        environment.trust.noteChecked(.meta)
        environment.trust.endCheck()
        let transaction = try ReadTransaction(environment)
        try transaction.renew()
        defer { transaction.reset() }
        let snapshot = Snapshot(transaction, environment)
        #expect(try snapshot.statistics().roots == 304)
        for name in withoutMeta {
            let code = ServiceError.code { () throws(ServiceError) in try damaged.expectRight(name, snapshot) }
            #expect(code == .storageFailed, "\(name)")
        }
    }

    private func mutationPlace(_ damaged: DamagedStorage) throws -> Int {
        let key = withUnsafeBytes(of: damaged.identifier.value.littleEndian) { Array($0) }
        return try #require(try (0..<5).first { try damaged.entry(.mutations, $0).key == key })
    }

    @Test("Other values than the damaged one are still read, when the sums show that nothing else is damaged")
    func others() throws {
        let damaged = try DamagedStorage()
        try damaged.flip(.records, [3, 1], bit: 16 * 8 + 3)
        let sets = try damaged.checked()
        for number in 0..<30 as Range<UInt8> {
            let code = ServiceError.code { () throws(ServiceError) in
                try sets.read { snapshot throws(ServiceError) in
                    #expect(try snapshot.record([number, 1])?.value == [number, 2, 3])
                }
            }
            #expect(code == (number == 3 ? .storageDamaged : nil), "record \(number)")
        }
        for name in withoutMeta where name != .records { #expect(damaged.outcome(of: name, sets) == nil, "\(name)") }
        sets.close()
    }

    @Test("Each read checks what it reads, also before the check of the start", arguments: withoutMeta)
    func readsCheck(name: DatabaseName) throws {
        let damaged = try DamagedStorage()
        let place = name == .mutations ? try mutationPlace(damaged) : 0
        try damaged.flip(name, try damaged.entry(name, place).key, bit: 16 * 8 + 5)
        let environment = try StorageEnvironment(
            directory: damaged.storage.directory, bytesMax: 1 << 30, reserveBytes: 1 << 20)
        let transaction = try ReadTransaction(environment)
        try transaction.renew()
        defer { transaction.reset() }
        let snapshot = Snapshot(transaction, environment)
        let code = ServiceError.code { () throws(ServiceError) in try damaged.expectRight(name, snapshot) }
        #expect(code == .storageDamaged)
        #expect(environment.health.level == .damaged)
        if name == .records {
            for isVisit in [false, true] {
                let all = RecordRange([0], [0xff])
                let code = ServiceError.code { () throws(ServiceError) in
                    if isVisit {
                        try snapshot.visitRecords(in: all) { _, _ in true }
                    } else {
                        _ = try snapshot.records(in: all, limit: 100)
                    }
                }
                #expect(code == .storageDamaged)
            }
        }
        // No directory is made of a damaged bucket.
        if name == .packed { #expect(throws: StorageFailure.self) { try transaction.packedBuckets(in: environment) } }
    }

    @Test("A writer that meets damage changes nothing", arguments: [DatabaseName.packed, .large, .records, .log])
    func writerMeetsDamage(name: DatabaseName) throws {
        let damaged = try DamagedStorage()
        try damaged.flip(name, try damaged.entry(name).key, bit: 16 * 8 + 70)
        let environment = try StorageEnvironment(
            directory: damaged.storage.directory, bytesMax: 1 << 30, reserveBytes: 1 << 20)
        let transaction = try WriteTransaction(in: environment)
        var applier = try Applier(transaction, environment)
        var edit = Edit()
        edit.records = [RecordEdit([0, 1], value: nil)]
        let change: Change =
            switch name {
            case .large: .dropCollaboration(damaged.crowd)
            case .records: .edit(edit)
            default: .addRoots(damaged.deck, [.zero])
            }
        #expect(throws: StorageFailure.self) {
            _ = try applier.apply(Mutation(change), lack: nil)
            // The log becomes shorter from its damaged beginning on.
            try applier.finish(trimmingLogTo: 0, count: 100)
        }
    }

    @Test("Removals of what is intact get through beside one in the same commit that meets damage")
    func groupMeetsDamage() throws {
        let damaged = try DamagedStorage()
        try damaged.flip(.packed, try damaged.entry(.packed).key, bit: 16 * 8 + 70)
        let sets = try damaged.checked()
        let release = DispatchSemaphore(value: 0)
        let outcomes = Lock<[Int: ServiceError.Code?]>([:])
        func removal(_ number: UInt8) -> Change {
            var edit = Edit()
            edit.records = [RecordEdit([number, 1], value: nil)]
            return .edit(edit)
        }
        // The writer answers one removal until the others wait, so that it takes them together.
        sets.submit(Mutation(removal(9))) { _ in release.wait() }
        for number in 0..<5 {
            let change: Change =
                number == 2 ? .removeRoots(damaged.deck, [damaged.members[0]]) : removal(UInt8(number))
            sets.submit(Mutation(change)) { result in
                outcomes.withLock { $0[number] = ServiceError.code { () throws(ServiceError) in _ = try result.get() } }
            }
        }
        release.signal()
        #expect(becomesTrue { outcomes.withLock { $0.count } == 5 })
        #expect(outcomes.withLock { $0 } == [0: nil, 1: nil, 2: .storageDamaged, 3: nil, 4: nil])
        try sets.read { snapshot throws(ServiceError) in
            for number in [0, 1, 3, 4] as [UInt8] { #expect(try snapshot.record([number, 1]) == nil) }
        }
        sets.close()
    }

    @Test("An entry that is out of date, though intact, is found, and its database is no longer believed")
    func staleRecord() throws {
        let damaged = try DamagedStorage()
        let old = try damaged.entry(.records, 5)
        try damaged.storage.reopen()
        var edit = Edit()
        edit.records = [RecordEdit(old.key, value: [9])]
        try damaged.storage.sets.apply(Mutation(.edit(edit)))
        damaged.storage.close()
        try damaged.tamper { transaction, environment in
            try transaction.putBytes(environment.records, old.key, old.value)
        }
        let sets = try damaged.checked()
        #expect(damaged.outcome(of: .records, sets) == .storageDamaged)
        #expect(damaged.outcome(of: .packed, sets) == nil)
        sets.close()
    }

    @Test("A removed member who comes back with an old bucket is not let in")
    func staleBucket() throws {
        let damaged = try DamagedStorage()
        let old = try damaged.entry(.packed)
        try damaged.storage.reopen()
        try damaged.storage.sets.apply(Mutation(.removeRoots(damaged.deck, [damaged.members[0]])))
        damaged.storage.close()
        try damaged.tamper { transaction, environment in
            try transaction.putBytes(environment.packed, old.key, old.value)
        }
        let sets = try damaged.checked()
        let code = ServiceError.code { () throws(ServiceError) in
            _ = try sets.read { snapshot throws(ServiceError) in
                try snapshot.test([damaged.members[0]], in: damaged.deck)
            }
        }
        #expect(code == .storageDamaged)
        sets.close()
    }

    @Test(
        "An entry that has vanished is found, and nothing is answered as if it had never been", arguments: withoutMeta)
    func vanished(name: DatabaseName) throws {
        let damaged = try DamagedStorage()
        let key = try damaged.entry(name, name == .mutations ? mutationPlace(damaged) : 0).key
        try damaged.tamper { transaction, environment in
            try transaction.deleteBytes(environment.databases[name], key)
        }
        let sets = try damaged.checked()
        #expect(damaged.outcome(of: name, sets) == .storageDamaged, "\(name)")
        #expect(sets.refusal(of: .addRoots(damaged.deck, [.zero])) == .storageDamaged)
        sets.close()
        #expect(try StorageInspection.findings(in: damaged.storage.directory).contains { $0.kind == .count })
    }

    @Test("A record of the log that does not follow the one before is found by who reads it and by the check")
    func brokenChain() throws {
        let damaged = try DamagedStorage()
        // A record with a right seal and right sums that is not the one that was chained.
        try damaged.tamper { transaction, environment in
            let key = bigEndianBytes(3)
            var contents = Array(try #require(try transaction.get(environment.log, key)).contents)
            contents[40 - 8] ^= 1
            try transaction.put(environment.log, key, contents, version: 3)
            try transaction.put(try transaction.totals(in: environment.meta), in: environment.meta)
        }
        do {
            let environment = try StorageEnvironment(
                directory: damaged.storage.directory, bytesMax: 1 << 30, reserveBytes: 1 << 20)
            let transaction = try ReadTransaction(environment)
            try transaction.renew()
            defer { transaction.reset() }
            let snapshot = Snapshot(transaction, environment)
            let code = ServiceError.code { () throws(ServiceError) in
                _ = try snapshot.changes(after: 0, limit: 100)
            }
            #expect(code == .storageDamaged)
        }
        let sets = try damaged.checked()
        #expect(sets.health.level == .damaged)
        sets.close()
        #expect(try StorageInspection.findings(in: damaged.storage.directory).contains { $0.kind == .chain })
    }

    @Test("The log's chain holds when it is trimmed, and when it goes on")
    func trimmedChain() throws {
        var random = SeededGenerator(seed: runSeed)
        let storage = try Storage { $0.logRetentionBytes = 20_000 }
        let deck = try storage.create("deck")
        for _ in 0..<100 {
            try storage.sets.apply(Mutation(.addRoots(deck, (0..<10).map { _ in random.digest() })))
        }
        let statistics = try storage.sets.statistics()
        #expect(statistics.firstSequence > 1)
        try storage.reopen()
        let sets = try storage.sets
        #expect(becomesTrue { sets.health.isChecked })
        #expect(sets.health.level == .intact)
        #expect(try sets.allChanges(after: statistics.firstSequence - 1).last?.sequence == 101)
    }

    @Test("Damaged totals are an error for everything, a damaged hash key or format one for the start")
    func meta() throws {
        let damaged = try DamagedStorage()
        try damaged.flip(.meta, Totals.key, bit: 16 * 8 + 200)
        let sets = try damaged.checked()
        for name in DatabaseName.allCases { #expect(damaged.outcome(of: name, sets) == .storageDamaged, "\(name)") }
        #expect(sets.refusal(of: .addRoots(damaged.deck, [.zero])) == .storageDamaged)
        sets.close()
        for key in [StorageFormat.hashKey, StorageFormat.key] {
            let damaged = try DamagedStorage()
            try damaged.flip(.meta, key, bit: 16 * 8 + 1)
            #expect(ServiceError.code { () throws(ServiceError) in _ = try damaged.storage.open() } == .storageDamaged)
        }
        let vanished = try DamagedStorage()
        try vanished.tamper { transaction, environment in
            try transaction.deleteBytes(environment.meta, StorageFormat.key)
        }
        #expect(ServiceError.code { () throws(ServiceError) in _ = try vanished.storage.open() } == .storageDamaged)
    }

    @Test("A whole storage that is out of date is found, though everything in it agrees")
    func staleStorage() throws {
        let damaged = try DamagedStorage()
        // Another transaction that does not write the totals: as if their page was that of an older commit.
        let environment = try StorageEnvironment(
            directory: damaged.storage.directory, bytesMax: 1 << 30, reserveBytes: 1 << 20)
        let transaction = try WriteTransaction(in: environment)
        let key = StorageFormat.hashKey
        let bytes = Array(try #require(try transaction.bytes(environment.meta, key)))
        try transaction.putBytes(environment.meta, key, bytes)
        try transaction.commit()
        #expect(try StorageInspection.findings(in: environment).map(\.kind) == [.totals])
        let next = try WriteTransaction(in: environment)
        #expect(throws: StorageFailure.self) { _ = try Applier(next, environment) }
    }

    @Test("A walk ends when it is interrupted")
    func interruption() throws {
        let damaged = try DamagedStorage()
        let environment = try StorageEnvironment(
            directory: damaged.storage.directory, bytesMax: 1 << 30, reserveBytes: 1 << 20)
        for isInterrupted in [false, true] {
            var walk = try StorageWalk(
                environment, isInterrupted: { isInterrupted }, report: { Issue.record("\($0.line)") })
            let isDone = try walk.run()
            #expect(isDone != isInterrupted)
        }
    }
}
