import Core
import Foundation
import Hashing
import TestSupport

@testable import RootSets

/// Backups. The first byte says what is done with the rest: 0: they are a backup as they stand. 1 and 2: they are
/// entries, which get their seals, a header, an end and the sum, so that the fuzzer gets behind those; then they are
/// restored (1), or their change log is applied to the backup of a small storage (2).
///
/// An entry: database (1), bytes of the key (1), bytes of the contents (2), version (2), key, contents.
enum FuzzedBackups {
    static let subject = FuzzSubject("backups", bytesMax: 2048, seeds: seeds) { input in
        guard let first = input.first else { return }
        let rest = Array(input.dropFirst())
        switch first {
        case 0: try read(rest)
        case 1: try restore(sealed(rest))
        case 2: try replay(sealed(rest))
        default: break
        }
    }

    private static let scratch = ScratchDirectory()

    private static func read(_ bytes: [UInt8]) throws {
        try withFile(bytes) { file, _ in
            do throws(ServiceError) {
                _ = try StorageRestore.check(file)
            } catch {
                try demand([.storageDamaged, .storageFailed].contains(error.code), "the error is \(error)")
            }
        }
    }

    private static func restore(_ bytes: [UInt8]) throws {
        try withFile(bytes) { file, _ in try restore(StorageRestore.Plan(backup: file, directory: target)) }
    }

    private static func replay(_ bytes: [UInt8]) throws {
        try withFile(bytes) { _, path in
            try withFile(base.get()) { file, _ in
                try restore(StorageRestore.Plan(backup: file, directory: target, logs: [path]))
            }
        }
    }

    private static var target: String { scratch.path + "/restored" }

    /// What is restored has no finding, and a refusal leaves nothing.
    private static func restore(_ plan: StorageRestore.Plan) throws {
        defer { try? FileManager.default.removeItem(atPath: target) }
        do throws(ServiceError) {
            _ = try StorageRestore.restore(plan)
        } catch {
            try demand([.storageDamaged, .storageFailed].contains(error.code), "the error is \(error)")
            let left = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
            return try demand(!left.contains { $0.hasPrefix("restored") }, "a refusal has left \(left)")
        }
        let findings = try StorageInspection.findings(in: target)
        try demand(findings.isEmpty, "what was restored is damaged: \(findings.map(\.line))")
    }

    private static func withFile(_ bytes: [UInt8], _ body: (CInt, _ path: String) throws -> Void) throws {
        let path = scratch.path + "/input-" + UUID().uuidString
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let file = open(path, O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        try demand(file >= 0, "a file can't be opened")
        try body(file, path)
    }

    // MARK: Making backups

    /// A backup of the entries, whose header is what their totals say.
    private static func sealed(_ input: [UInt8]) throws -> [UInt8] {
        var parts = InputParts(input)
        var stream: [UInt8] = []
        var totals = Totals()
        var count: UInt64 = 0
        while let code = parts.number(1), let keyCount = parts.number(1), let valueCount = parts.number(2),
            let version = parts.number(2), let key = parts.take(Int(keyCount)),
            let contents = parts.take(Int(valueCount))
        {
            let database = DatabaseName(rawValue: Int(code)) ?? .meta
            let seed = key.withUnsafeBytes { Database.seed(of: $0, in: database) }
            let value = SealedValue.bytes(of: contents, version: version, seed: seed).bytes
            if key == Totals.key, let read = try? contents.withRawBytes({ try Totals(reading: $0) }) { totals = read }
            stream += [UInt8(code), 0]
            stream.appendInteger(UInt16(key.count))
            stream.appendInteger(UInt32(value.count))
            stream += key + value
            count += 1
        }
        stream = BackupHeader(time: 0, totals, usedBytes: 4096).bytes + stream
        let length = UInt64(stream.count)
        stream += [BackupHeader.end] + [UInt8](repeating: 0, count: 7)
        stream.appendInteger(count)
        stream.appendInteger(length)
        return stream + ReferenceSHA256.hash(stream)
    }

    /// A backup after one change, for logs that begin behind it.
    private static let base = Result { try backup(of: [.createCollaboration(deck, .challenge)]) }

    private static var deck: CollaborationIdentifier {
        get throws {
            guard let deck = CollaborationIdentifier("deck") else { throw Finding("an identifier is not valid") }
            return deck
        }
    }

    private static func backup(of changes: [Change]) throws -> [UInt8] {
        let folder = scratch.path + "/made-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let environment = try StorageEnvironment(directory: folder, bytesMax: 1 << 24, reserveBytes: 1 << 20)
        for (number, change) in changes.enumerated() {
            let transaction = try WriteTransaction(in: environment)
            var applier = try Applier(transaction, environment)
            _ = try applier.apply(Mutation(identifier: MutationIdentifier(UInt128(number)), change), lack: nil).get()
            try applier.finish(trimmingLogTo: .max, count: 64)
            try transaction.commit()
        }
        let path = folder + "/backup"
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(file) }
        let transaction = try ReadTransaction(environment)
        try transaction.renew()
        defer { transaction.reset() }
        _ = try StorageBackup.write(environment, transaction, to: file, time: 0)
        return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    private static func seeds() throws -> [[UInt8]] {
        let roots = (0..<3).map { Digest([UInt8](repeating: UInt8($0 + 1), count: 32)) ?? .zero }
        var edit = Edit(try deck)
        edit.records = [RecordEdit([1], value: [2], expecting: .absent)]
        let changes: [Change] = try [
            .createCollaboration(deck, .challenge), .addRoots(deck, roots), .removeRoots(deck, [roots[0]]),
            .edit(edit), .dropCollaboration(deck),
        ]
        var seeds: [[UInt8]] = []
        for count in [1, 3, 4, 5] {
            let stream = try backup(of: Array(changes.prefix(count)))
            var parts: [UInt8] = []
            try withFile(stream) { file, _ in
                let reader = try BackupReader(file)
                while let entry = try reader.next() {
                    try entry.value.withRawBytes { value in
                        guard let sealed = SealedValue(value) else { throw Finding("a seed has no seal") }
                        parts += [UInt8(entry.database.rawValue), UInt8(entry.key.count)]
                        parts.appendInteger(UInt16(sealed.contents.count))
                        parts.appendInteger(UInt16(sealed.version))
                        parts += entry.key + Array(sealed.contents)
                    }
                }
            }
            seeds += [[0] + stream, [1] + parts, [2] + parts]
        }
        return seeds
    }
}
