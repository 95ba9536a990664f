@testable import Audit
import Core
import Foundation
import Hashing
import TestSupport
import Testing

@Suite("The audit's lines")
struct AuditTrailTests {
    private let scene = AuditScene()

    private func object(_ line: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }

    @Test("A line says when, who, what, where and what came of it, and follows the hash of the line before")
    func oneLine() throws {
        let trail = try scene.open(sequence: 41)
        try trail.apply(.change(42, in: "deck-42"))
        trail.note(
            AuditRecord(
                .refusal, principal: "anonymous", peer: "[::1]:9", operation: "addParticipants",
                outcome: "not-permitted", detail: "why"))
        trail.close()
        let lines = try scene.lines()
        try #require(lines.count == 4)
        let objects = try lines.map(object)
        #expect(objects.map { $0["n"] as? Int } == [1, 2, 3, 4])
        #expect(objects.map { $0["what"] as? String } == ["start", "addRoots", "addParticipants", "stop"])
        #expect(
            objects.map { $0["kind"] as? String } == ["administration", "mutation", "refusal", "administration"])
        let change = objects[1]
        #expect(change["at"] as? String == "2027-01-15T08:00:00.123Z")
        #expect(change["who"] as? String == "anonymous" && change["peer"] as? String == "127.0.0.1:4000")
        #expect(change["collaboration"] as? String == "deck-42" && change["sequence"] as? Int == 42)
        #expect(change["outcome"] as? String == "done")
        #expect(objects[0]["sequence"] as? Int == 41)
        #expect(objects[2]["outcome"] as? String == "not-permitted" && objects[2]["detail"] as? String == "why")
        #expect(objects[0]["before"] as? String == String(repeating: "0", count: 64))
        for (line, next) in zip(lines, objects.dropFirst()) {
            #expect(next["before"] as? String == ReferenceSHA256.hash(Array(line.utf8)).hexadecimal)
        }
        #expect(try scene.verify().findings == [])
        #expect(try FileManager.default.attributesOfItem(atPath: scene.path)[.posixPermissions] as? Int == 0o600)
    }

    @Test("Texts of peers are escaped as JSON, without raw control characters, and long ones are cut")
    func hostileTexts() throws {
        let hostile = "\",\"sequence\":99,\"tag\":\"\\\n\r\t\u{0}\u{7f}\u{85}\u{2028}\u{202e}é漢🙂"
        let trail = try scene.open()
        for text in [hostile, String(repeating: "\u{1}", count: 5000), String(repeating: "漢", count: 5000)] {
            var record = AuditRecord.change(1, in: text)
            record.detail = text
            record.principal = text
            #expect(record.lineBytesMax <= Limits.auditLineBytesMax)
            try trail.apply(record)
        }
        trail.close()
        let lines = try scene.lines()
        try #require(lines.count == 5)
        #expect(try object(lines[1])["detail"] as? String == hostile)
        #expect(try object(lines[1])["collaboration"] as? String == hostile)
        for line in lines {
            #expect(!line.unicodeScalars.contains { $0.isControl })
            #expect(line.utf8.count <= Limits.auditLineBytesMax)
        }
        #expect(try (object(lines[2])["detail"] as? String)?.utf8.count == Limits.auditTextBytesMax)
        let result = try scene.verify()
        #expect(result.findings == [] && result.lineCount == 5)
    }

    @Test("A line is never longer than the room that was reserved for it")
    func reservedBytes() throws {
        var record = AuditRecord.change(.max, in: String(repeating: "\"", count: 128))
        record.outcome = ServiceError.Code.unknownCollaboration.name
        let line = AuditLine.bytes(
            of: record, number: .max, at: 9_999_999_999_999, key: scene.key.name, before: .zero,
            scene.key.authenticator)
        #expect(line.count + 1 <= record.lineBytesMax)
    }

    @Test("Many threads get one chain, and each its answer after its line is in the file")
    func manyThreads() throws {
        let trail = try scene.open { $0.aheadBytes = 4 << 20 }
        let missing = Shared(0)
        onThreads(8) { thread in
            for step in 0..<50 {
                let name = "c\(thread)-\(step)"
                guard trail.isApplied(.change(UInt64(thread * 50 + step), in: name)),
                    let data = FileManager.default.contents(atPath: scene.path),
                    String(decoding: data, as: UTF8.self).contains("\"\(name)\"")
                else {
                    missing.increment()
                    continue
                }
            }
        }
        trail.close()
        #expect(missing.value == 0)
        let result = try scene.verify()
        #expect(result.lineCount == 402 && result.findings == [])
    }

    @Test("A restart continues the chain")
    func restart() throws {
        for sequence in 1...3 {
            let trail = try scene.open(sequence: UInt64(sequence - 1))
            try trail.apply(.change(UInt64(sequence)))
            trail.close()
        }
        let result = try scene.verify()
        #expect(result.lineCount == 9 && result.findings == [] && result.last?.number == 9)
        #expect(result.coveredBy == 9)
    }

    @Test("An unfinished last line is cut off, which the next start says", arguments: [1, 20, 200])
    func tornLine(_ bytes: Int) throws {
        let trail = try scene.open()
        try trail.apply(.change(1))
        trail.close()
        let whole = try Data(contentsOf: URL(fileURLWithPath: scene.path))
        let handle = try #require(FileHandle(forWritingAtPath: scene.path))
        try handle.seekToEnd()
        try handle.write(contentsOf: whole.prefix(bytes))
        #expect(try scene.verify().findings.contains { $0.contains("unfinished") })
        try scene.open(sequence: 1).close()
        #expect(scene.logged.value.contains { $0.contains("cut off \(bytes) bytes") })
        #expect(try scene.lines()[3].contains("cut off \(bytes) bytes of an unfinished line"))
        #expect(try scene.verify().findings == [])
    }

    @Test("A file whose last line was changed, or is none of an audit, is not continued")
    func damagedEnd() throws {
        let trail = try scene.open()
        try trail.apply(.change(1))
        trail.close()
        let lines = try scene.lines()
        for last in [lines[2].replacingOccurrences(of: "stop", with: "halt"), "{}", "", "x"] {
            try scene.write(Array(lines.dropLast()) + [last])
            #expect(throws: AuditFailure.self) { try scene.open() }
        }
        try scene.write(lines)
        try scene.open().close()
    }

    @Test("A file without a line of an audit is refused and keeps its bytes; an unfinished first line is cut off")
    func filesOfOthers() throws {
        for text in ["do not lose me", "\u{7b}\"name\":1", "x\0\0"] {
            try Data(text.utf8).write(to: URL(fileURLWithPath: scene.path))
            #expect(throws: AuditFailure.self) { try scene.open() }
            #expect(try String(contentsOfFile: scene.path, encoding: .utf8) == text)
        }
        for text in ["", "{", "{\"n\":1,\"at\":\"2026", "\0\0\0"] {
            try Data(text.utf8).write(to: URL(fileURLWithPath: scene.path))
            try scene.open().close()
            #expect(try scene.lines().count == 2 && scene.verify().findings == [])
            unlink(scene.path)
        }
    }

    @Test("So many lines may wait for the disk, and for one more the answer is busy")
    func waitingLines() throws {
        let disk = TestDisk()
        let trail = try scene.open(calls: disk.calls) { $0.aheadBytes = 1 << 30 }
        #expect(becomesTrue { (try? scene.lines().count) == 1 })
        // The writer has done with the first line.
        try trail.apply(.change(0))
        disk.hold()
        func append(_ sequence: UInt64) throws {
            let reservation = try #require(try trail.reserve(.change(sequence), isRemoval: false))
            trail.append(.change(sequence), reservation) { _ in }
        }
        try append(1)
        // The writer holds the first line, and no more is taken from those that wait.
        #expect(becomesTrue { (try? scene.lines().count) == 3 })
        for sequence in 0..<UInt64(Limits.auditLinesWaitingMax) { try append(2 + sequence) }
        #expect(throws: ServiceError(.busy, "")) { try trail.reserve(.change(0), isRemoval: true) }
        disk.letGo()
        trail.close()
        #expect(try scene.lines().count == Limits.auditLinesWaitingMax + 4)
    }

    @Test("A file that another process writes to, a folder and a link are refused")
    func refusedFiles() throws {
        let trail = try scene.open()
        #expect(throws: AuditFailure.self) { try scene.open() }
        trail.close()
        let other = AuditScene()
        mkdir(other.path, 0o700)
        #expect(throws: AuditFailure.self) { try other.open() }
        rmdir(other.path)
        #expect(symlink(scene.path, other.path) == 0)
        #expect(throws: AuditFailure.self) { try other.open() }
    }

    @Test("Lines behind a new key are signed with it, and the newest key vouches for all lines")
    func anotherKey() throws {
        let next = AuditScene(keyByte: 9)
        let trail = try scene.open()
        try trail.apply(.change(1))
        trail.use(next.key)
        try trail.apply(.change(2))
        trail.close()
        let lines = try scene.lines()
        #expect(lines[1].contains(scene.key.name) && lines[2].contains(next.key.name))
        let contents = try Data(contentsOf: URL(fileURLWithPath: scene.path))
        let file = [(path: scene.path, contents: contents)]
        for keys in [next.keys, next.keys.merging(scene.keys) { a, _ in a }] {
            let result = AuditVerification(file, keys: keys)
            #expect(result.findings == [] && result.coveredBy == 4)
        }
        // The old one vouches only for what was signed with it, which is a finding.
        let old = AuditVerification(file, keys: scene.keys)
        #expect(old.coveredBy == 2 && old.findings.count == 1)
        #expect(old.findings.joined().contains("the lines behind number 2 can't be vouched for"))
        // The new key finds what was changed under the old one.
        try scene.write(lines.map { $0.replacingOccurrences(of: "\"sequence\":1,", with: "\"sequence\":7,") })
        let changed = try Data(contentsOf: URL(fileURLWithPath: scene.path))
        #expect(!AuditVerification([(path: scene.path, contents: changed)], keys: next.keys).findings.isEmpty)
    }

    @Test("Python finds the same chain and the same tags", .enabled(if: programPath("python3") != nil, "no python3"))
    func python() throws {
        let script = packageFile("Tests/Python/audit_chain.py")
        let secret: [UInt8] = (0..<32).map { $0 }
        let derived = try KeyDerivation.hkdf(secret: secret, info: Array("rootgate audit v1".utf8), count: 32)
        let name = [UInt8](repeating: 5, count: 8)
        var file = Array("rootgate secret\n".utf8) + [1, 0, 0, 0, 1, 0, 0, 0] + name
        file += [UInt8](repeating: 0, count: 8) + secret + [UInt8](repeating: 0, count: 48)
        file += ReferenceSHA256.hash(file)
        let secretPath = scene.scratch.path + "/secret"
        try Data(file).write(to: URL(fileURLWithPath: secretPath))
        var settings = AuditTrail.Settings(path: scene.path)
        settings.fileBytesMax = 2000
        let trail = try AuditTrail(
            settings, key: AuditTrail.Key(name: name.hexadecimal, MessageAuthenticator(key: derived)), sequence: 0,
            date: { 0 }, log: .none)
        trail.begin()
        for sequence in 1...20 { try trail.apply(.change(UInt64(sequence), in: "\u{1}\"\\\(sequence)")) }
        for _ in 0..<100 { trail.noteRefusal(.request, of: .address(UInt32(1))) { .refusal } }
        trail.close()
        let files = try scene.files()
        try #require(files.count > 2)
        let python = try #require(programPath("python3"))
        let good = try runProgram(python, [script, secretPath] + files)
        let result = AuditVerification(
            try files.map { (path: $0, contents: try Data(contentsOf: URL(fileURLWithPath: $0))) }, keys: [:])
        let last = try #require(result.last)
        #expect(
            good.code == 0
                && good.output == "\(last.number) lines, \(last.number) covered by tags, last hash \(last.hash)\n",
            "\(good.output)\(good.errors)")
        let lines = try scene.lines(files[1])
        try scene.write(lines.map { $0.replacingOccurrences(of: "addRoots", with: "addRootz") }, to: files[1])
        #expect(try runProgram(python, [script, secretPath] + files).code == 1)
    }
}
