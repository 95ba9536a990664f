import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

/// A storage that this process alone has open, changed one mutation a commit, with what it ought to hold.
final class BackupScene {
    /// An entry as it is stored.
    struct Entry: Equatable {
        let database: DatabaseName
        let key: [UInt8]
        let value: [UInt8]
    }

    let scratch = ScratchDirectory()
    var folder: String { scratch.path + "/data" }
    private(set) var environment: StorageEnvironment?
    private(set) var model = RootModel()
    var steps: Steps

    /// Applies `count` random mutations and, unless that is 0, further ones until there are a root and a record.
    init(mutations count: Int, seed: UInt64 = runSeed) throws {
        steps = try Steps(seed: seed)
        try reopen()
        for _ in 0..<count { try change() }
        while count > 0, model.records.isEmpty || model.entries.values.allSatisfy({ $0.roots.isEmpty }) {
            try change()
        }
    }

    /// Applies a random mutation, if it is not refused, and removes log records above `logBytes`.
    func change(logBytes: UInt64 = .max) throws {
        let mutation = steps.next(growth: 0.7, model.records)
        guard case .success(let receipt) = model.apply(mutation), !receipt.isRepeat else { return }
        try apply(mutation, logBytes: logBytes)
    }

    func apply(_ mutation: Mutation, logBytes: UInt64 = .max) throws {
        try BackupScene.apply(mutation, to: try #require(environment), logBytes: logBytes)
    }

    static func apply(_ mutation: Mutation, to environment: StorageEnvironment, logBytes: UInt64 = .max) throws {
        let transaction = try WriteTransaction(in: environment)
        var applier = try Applier(transaction, environment)
        guard case .success = try applier.apply(mutation, lack: nil) else {
            Issue.record("a mutation was refused")
            return
        }
        try applier.finish(trimmingLogTo: logBytes, count: 64)
        try transaction.commit()
    }

    func close() { environment = nil }

    func reopen() throws {
        environment = try StorageEnvironment(directory: folder, bytesMax: 1 << 34, reserveBytes: 1 << 20)
    }

    /// Writes a backup to a new file. Returns its path.
    @discardableResult
    func backUp(_ name: String = "backup") throws -> String {
        let path = scratch.path + "/" + name
        try BackupScene.backUp(try #require(environment), to: path)
        return path
    }

    /// Writes a backup of a storage to a new file.
    static func backUp(_ environment: StorageEnvironment, to path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        defer { Foundation.close(descriptor) }
        let transaction = try ReadTransaction(environment)
        try transaction.renew()
        defer { transaction.reset() }
        _ = try StorageBackup.write(environment, transaction, to: descriptor, time: 1_700_000_000_000)
    }

    /// Restores a backup. `name`: of the new directory.
    @discardableResult
    func restore(
        _ backup: String, to name: String = "restored", logs: [String] = [], until: UInt64? = nil
    ) throws -> (directory: String, summary: StorageRestore.Summary) {
        let directory = scratch.path + "/" + name
        return (directory, try BackupScene.restore(backup, toDirectory: directory, logs: logs, until: until))
    }

    /// Restores a backup to a new directory.
    @discardableResult
    static func restore(
        _ backup: String, toDirectory directory: String, logs: [String] = [], until: UInt64? = nil
    ) throws -> StorageRestore.Summary {
        let descriptor = open(backup, O_RDONLY | O_CLOEXEC)
        defer { Foundation.close(descriptor) }
        return try StorageRestore.restore(
            StorageRestore.Plan(backup: descriptor, directory: directory, logs: logs, until: until))
    }

    /// Why a restore is refused. Records an issue when it isn't, or when it leaves anything behind.
    func refusal(of backup: String, logs: [String] = [], until: UInt64? = nil, _ context: String = "") -> ServiceError?
    {
        let before = Set((try? FileManager.default.contentsOfDirectory(atPath: scratch.path)) ?? [])
        let error = #expect(throws: ServiceError.self, "\(context)") {
            try restore(backup, to: "refused", logs: logs, until: until)
        }
        let after = Set((try? FileManager.default.contentsOfDirectory(atPath: scratch.path)) ?? [])
        #expect(after == before, "\(context): something was left behind")
        for name in after.subtracting(before) { try? FileManager.default.removeItem(atPath: scratch.path + "/" + name) }
        return error
    }

    /// Every entry of a directory but the totals, which have the number of their transaction.
    static func entries(of directory: String) throws -> [Entry] {
        let environment = try StorageInspection.open(directory)
        var entries: [Entry] = []
        var walk = try StorageWalk(
            environment, isInterrupted: { false }, report: { Issue.record("\($0.line)") },
            visit: { name, key, value throws(StorageFailure) in
                guard !key.elementsEqual(Totals.key) else { return }
                entries.append(Entry(database: name, key: Array(key), value: Array(value)))
            })
        _ = try walk.run()
        return entries
    }
}

/// Bytes of a backup that a test changes, with sums that fit again.
struct ForgedBackup {
    var bytes: [UInt8]

    init(bytes: [UInt8]) { self.bytes = bytes }

    init(_ path: String) throws {
        bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    func write(_ path: String) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }

    private func number(at place: Int, count: Int) -> Int {
        bytes[place..<place + count].reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    /// Where the entries and the end begin.
    var places: [Int] {
        var places = [80]
        while let place = places.last, bytes[place] != 0xff {
            places.append(place + 8 + number(at: place + 2, count: 2) + number(at: place + 4, count: 4))
        }
        return places
    }

    /// Writes the counts and the digest at the end anew, by the tests' own SHA-256.
    mutating func seal() {
        let places = places
        let end = places[places.count - 1]
        bytes.removeSubrange((end + 8)...)
        for number in [places.count - 1, end] {
            bytes += withUnsafeBytes(of: UInt64(number).littleEndian) { Array($0) }
        }
        bytes += ReferenceSHA256.hash(bytes)
    }

    /// Writes the checksum of the header anew.
    mutating func sealHeader() {
        let sum = bytes.withUnsafeBytes { Checksum.of(UnsafeRawBufferPointer(rebasing: $0[..<72]), seed: 0) }
        bytes.replaceSubrange(72..<80, with: withUnsafeBytes(of: sum.littleEndian) { Array($0) })
    }
}
