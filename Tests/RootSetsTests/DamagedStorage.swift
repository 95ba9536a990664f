import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

/// A storage with small and large sets and records, closed, and its entries to be damaged.
final class DamagedStorage {
    let storage: Storage
    let deck: CollaborationIdentifier
    let crowd: CollaborationIdentifier
    let members: [Digest]
    let crowdMembers: [Digest]
    let identifier = MutationIdentifier(77)
    let lines = Lines()

    /// What the service would log.
    final class Lines: Sendable {
        let texts = Lock<[String]>([])
    }

    init() throws {
        var random = SeededGenerator(seed: runSeed)
        let storage = try Storage()
        self.storage = storage
        deck = try storage.create("deck")
        crowd = try storage.create("crowd")
        members = (0..<4).map { _ in random.digest() }
        crowdMembers = (0..<300).map { _ in random.digest() }
        try storage.sets.apply(Mutation(.addRoots(deck, members)))
        try storage.sets.apply(Mutation(.addRoots(crowd, crowdMembers)))
        var edit = Edit()
        edit.records = (0..<30).map { RecordEdit([UInt8($0), 1], value: [UInt8($0), 2, 3]) }
        try storage.sets.apply(Mutation(identifier: identifier, .edit(edit)))
        storage.close()
    }

    /// Changes entries as they stand in the file.
    func tamper(_ body: (WriteTransaction, StorageEnvironment) throws -> Void) throws {
        let environment = try StorageEnvironment(
            directory: storage.directory, bytesMax: 1 << 30, reserveBytes: 1 << 20)
        let transaction = try WriteTransaction(in: environment)
        let totals = try? transaction.totals(in: environment.meta)
        let before = try transaction.bytes(environment.meta, Totals.key).map { Array($0) }
        try body(transaction, environment)
        // The commit that damages something counts like every other one, unless the totals are what it damages.
        if var totals, try transaction.bytes(environment.meta, Totals.key).map({ Array($0) }) == before {
            totals.transaction += 1
            try transaction.put(
                environment.meta, Totals.key, totals.bytes, version: totals.sequence, isCounted: false)
        }
        try transaction.commit()
    }

    /// The key and the bytes of an entry.
    func entry(_ name: DatabaseName, _ place: Int = 0) throws -> (key: [UInt8], value: [UInt8]) {
        var found: [(key: [UInt8], value: [UInt8])] = []
        try tamper { transaction, environment in
            found = try transaction.entries(
                of: environment.databases[name], after: [], countMax: 1000, bytesMax: .max)
        }
        return found[place]
    }

    /// Flips one bit of an entry's value.
    func flip(_ name: DatabaseName, _ key: [UInt8], bit: Int) throws {
        try tamper { transaction, environment in
            let database = environment.databases[name]
            var bytes = Array(try #require(try transaction.bytes(database, key)))
            let bit = bit % (bytes.count * 8)
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            try transaction.putBytes(database, key, bytes)
        }
    }

    /// Opens the storage and waits until it was checked.
    func checked(logRetentionBytes: Int = 32 << 20) throws -> RootSets {
        let lines = lines
        let sets = try RootSets(
            RootSets.Configuration(
                directory: storage.directory, sizeLimitBytes: 1 << 30, reserveBytes: 1 << 20,
                logRetentionBytes: logRetentionBytes),
            log: Log { line in lines.texts.withLock { $0.append("\(line)") } })
        #expect(becomesTrue { sets.health.isChecked })
        return sets
    }

    /// What reading from a database answers: nothing but what was written, or `storageDamaged`.
    func outcome(of name: DatabaseName, _ sets: RootSets) -> ServiceError.Code? {
        ServiceError.code { () throws(ServiceError) in
            try sets.read { snapshot throws(ServiceError) in try expectRight(name, snapshot) }
        }
    }

    func expectRight(_ name: DatabaseName, _ snapshot: borrowing Snapshot) throws(ServiceError) {
        switch name {
        case .packed: #expect(try snapshot.test(members, in: deck) == members.map { _ in true })
        case .large: #expect(try snapshot.test(crowdMembers, in: crowd) == crowdMembers.map { _ in true })
        case .log: #expect(try snapshot.changes(after: 0, limit: 100).items.count == 5)
        case .mutations: #expect(try snapshot.applied(identifier)?.sequence == 5)
        case .records:
            for number in 0..<30 as Range<UInt8> {
                #expect(try snapshot.record([number, 1])?.value == [number, 2, 3])
            }
        case .meta: #expect(try snapshot.statistics().roots == 304)
        }
    }
}
