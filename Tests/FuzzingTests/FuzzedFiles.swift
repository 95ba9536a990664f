import Core
import Foundation
import TestSupport

@testable import Collaboration
@testable import Secrets
@testable import rootgate

/// Files that the commands and a start read. The first byte says which kind of file the rest is.
enum FuzzedFiles {
    static let subject = FuzzSubject("files", bytesMax: 4096, seeds: seeds) { input in
        guard let first = input.first, Int(first) < kinds.count else { return }
        do {
            try kinds[Int(first)].read(Array(input.dropFirst()))
        } catch let error as UsageError {
            try demand(error.text.contains(file.path), "the error “\(error.text)” names no file")
        }
    }

    private struct Kind: Sendable {
        let read: @Sendable ([UInt8]) throws -> Void
        let seeds: [[UInt8]]
    }

    private static let kinds = [
        Kind(read: readRoots, seeds: rootSeeds), Kind(read: readTransfer, seeds: transferSeeds.map { $0 + [10] }),
        Kind(read: { try readTransfer(ended($0)) }, seeds: transferSeeds), Kind(read: readRecord, seeds: recordSeeds),
        Kind(read: readOptions, seeds: optionSeeds), Kind(read: readSecret, seeds: secretSeeds),
    ]

    private static func seeds() -> [[UInt8]] {
        kinds.enumerated().flatMap { number, kind in kind.seeds.map { [UInt8(number)] + $0 } }
    }

    /// The file that has the input, mode 0600.
    private static let file = ScratchFile()

    private final class ScratchFile: Sendable {
        let path: String
        private let folder = ScratchDirectory()

        init() { path = folder.path + "/file" }

        func write(_ bytes: [UInt8]) throws {
            let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            defer { close(file) }
            let count = bytes.withUnsafeBytes { Foundation.write(file, $0.baseAddress, $0.count) }
            try demand(count == bytes.count, "a file can't be written")
        }
    }

    // MARK: Root hashes

    private static let root = String(repeating: "0a", count: 32)
    private static let rootSeeds = ["\(root)\n# \n\n{\"rootHash\":\"\(root)\"}", "\(root)", " \(root)\r\n", "{}"].map {
        Array($0.utf8)
    }

    /// Each line that counts is one root hash, and an import goes on where another one has ended.
    private static func readRoots(_ bytes: [UInt8]) throws {
        try file.write(bytes)
        let lines = try RootLines(file.path, hashes: true)
        var portions: [RootLines.Portion] = []
        while let portion = try lines.next(3) { portions.append(portion) }
        let roots = portions.flatMap(\.roots)
        let texts = bytes.split(separator: 10).map { $0.filter { ![9, 13, 32].contains($0) } }
            .filter { !$0.isEmpty && $0.first != UInt8(ascii: "#") }
        try demand(roots.count == texts.count, "\(texts.count) lines became \(roots.count) root hashes")
        for (root, text) in zip(roots, texts) where text.first != UInt8(ascii: "{") {
            let same = "\(root)".utf8.elementsEqual(text.map { $0 < 97 && $0 > 64 ? $0 + 32 : $0 })
            try demand(same, "a line became another root hash")
        }
        guard let first = portions.first else { return }
        let rest = try RootLines(file.path, hashes: true)
        try demand(try rest.skip(to: first.end), "a file does not begin with what was read of it")
        var others: [Digest] = []
        while let portion = try rest.next(2) { others += portion.roots }
        try demand(others == Array(roots.dropFirst(first.roots.count)), "another run goes on elsewhere")
    }

    // MARK: What collab export writes

    private static let transferSeeds = [
        """
        {"format":"rootgate-collaboration","version":1}
        {"rootSet":{"collaboration":"deck","nonceWindowSeconds":9}}
        {"root":"\(root)"}
        """,
        """
        {"format":"rootgate-collaboration","version":1}
        {"collaboration":{"collaboration":"deck","url":"https://example.com/c/deck","owner":"olga",\
        "localIdentifier":"here","creationDate":"2026-01-01T00:00:00.000Z","shareOptions":{"groups":[]},\
        "customItems":[]}}
        {"participant":{"identity":"\(root)","role":"owner","state":"joined",\
        "invitedAt":"2026-01-01T00:00:00.000Z","isInSet":true}}
        """,
        "{\"format\":\"rootgate-collaboration\",\"version\":2}\n{}",
    ].map { Array($0.utf8) }

    /// Lines with the last one that belongs to them.
    private static func ended(_ bytes: [UInt8]) throws -> [UInt8] {
        var tally = TransferTally()
        for line in bytes.split(separator: 10) {
            if let line = try? JSON.decodeStrictly(TransferLine.self, from: Array(line)) { tally.count(line) }
        }
        let lines = bytes + [10]
        tally.hash(lines)
        var end = TransferLine()
        end.end = tally.summary
        return lines + Array(try end.text().utf8)
    }

    /// A whole file has as much as its last line says, in order.
    private static func readTransfer(_ bytes: [UInt8]) throws {
        try file.write(bytes)
        let read = try TransferFile(file.path)
        try demand(
            read.participants.count == read.end.participants && read.roots.count == read.end.roots
                && read.shares.count == read.end.shares, "a file has other counts than its last line")
        let identities = read.participants.map(\.identity.rootHash) + read.roots
        try demand(Set(identities).count == identities.count, "a root hash is in a file twice")
        try demand(read.participants.count { $0.role == .owner } <= 1, "a collaboration has two owners")
        guard case .rootSet = read.subject else { return }
        try demand(read.participants.isEmpty && read.shares.isEmpty, "a set of root hashes has people")
    }

    // MARK: How far an import has come

    private static let recordSeeds = [
        #"{"collaboration":"deck","lines":3,"bytes":7,"sha256":"\#(root)"}"#,
        #"{"collaboration":"duck","lines":-3,"bytes":7,"sha256":"\#(root)"}"#,
    ].map { Array($0.utf8) }

    /// What is read is written again as the same.
    private static func readRecord(_ bytes: [UInt8]) throws {
        try file.write(bytes)
        guard let deck = CollaborationIdentifier("deck") else { throw Finding("an identifier is not valid") }
        let record = ImportRecord(file.path, of: deck)
        guard let position = try record.position() else { throw Finding("a file was not read") }
        try record.note(position)
        try demand(try record.position() == position && position.lines >= 0, "a place became another one")
    }

    // MARK: Options of a service

    private static let optionSeeds = [
        "# all\nlisten = 127.0.0.1:7570\n\n drain-seconds=5\nopen = on\nlinsten = 7\n", "listen = a\nlisten = b",
        "data = a = b\r\n",
    ].map { Array($0.utf8) }

    /// Each line that counts is one option, with the rest of the line as its value.
    private static func readOptions(_ bytes: [UInt8]) throws {
        try file.write(bytes)
        let options = try ConfigurationFile(file.path, options: serviceOptions)
        let given = serviceOptions.compactMap { option in options[option.name].map { (option.name, $0) } }
        let texts = String(decoding: bytes, as: UTF8.self).split { $0.unicodeScalars.contains("\n") }
            .map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }.filter { !$0.isEmpty && !$0.hasPrefix("#") }
        try demand(given.count == texts.count, "\(texts.count) lines became \(given.count) options")
        for (name, value) in given {
            let isThere = texts.contains { text in
                text.hasPrefix(name) && text.hasSuffix(value) && text.utf8.count > name.utf8.count + value.utf8.count
            }
            try demand(isThere, "--\(name) became “\(value)”, which no line says")
        }
    }

    // MARK: The secret

    private static let secretSeeds: [[UInt8]] = [1, 2, 3, 4].map { holds in
        var bytes = Array("rootgate secret\n".utf8)
        bytes.appendInteger(UInt32(1))
        bytes.appendInteger(UInt32(holds))
        return bytes + (0..<96).map { UInt8($0) }
    }

    /// A file with the digest that belongs to its bytes. Its generations are the numbers that stand in it.
    private static func readSecret(_ bytes: [UInt8]) throws {
        try file.write(bytes + ReferenceSHA256.hash(bytes))
        let secret: RootSecret
        do throws(SecretFailure) {
            secret = try SecretFile(path: file.path).load()
        } catch {
            return try demand("\(error)".contains(file.path), "a failure names no file")
        }
        var parts = InputParts(bytes)
        try demand(
            parts.take(16) == Array("rootgate secret\n".utf8) && parts.number(4) == 1, "another file was read")
        let holds = parts.number(4)
        try demand(holds.map { (1...3).contains($0) } == true, "a file holds \(holds ?? 0)")
        for generation in secret.generations {
            try demand(
                parts.number(8) == generation.identifier && parts.number(8) == generation.inUseAt,
                "a generation became another one")
            let own = parts.take(32) ?? []
            try demand(generation.secret.withBytes { $0.elementsEqual(own) }, "a secret became another one")
        }
        try demand(secret.generations.count == (holds == 1 ? 1 : 2), "a file has another number of generations")
        try demand((secret.next != nil) == (holds == 3), "a generation is taken for a prepared one")
    }
}
