@testable import Audit
import Core
import Foundation
import Hashing
import TestSupport
import Testing

@Suite("Finding what was done to an audit")
struct AuditVerificationTests {
    private let scene = AuditScene()
    private let good: [String]

    init() throws {
        let trail = try scene.open()
        for sequence in 1...6 { try trail.apply(.change(UInt64(sequence), in: "c\(sequence)")) }
        trail.close()
        good = try scene.lines()
        try #require(good.count == 8)
    }

    private func findings(_ lines: [String], hasKeys: Bool = true, known: Digest? = nil) throws -> [String] {
        try scene.write(lines)
        return try scene.verify(hasKeys: hasKeys, known: known).findings
    }

    @Test("An untouched audit has no findings, with the secret and without it")
    func untouched() throws {
        for hasKeys in [true, false] {
            let result = try scene.verify(hasKeys: hasKeys)
            #expect(result.findings == [] && result.lineCount == 8)
            #expect(result.last?.hash.bytes == ReferenceSHA256.hash(Array(good[7].utf8)))
            #expect(result.coveredBy == (hasKeys ? 8 : nil))
            #expect(result.notes.contains { $0.contains("no secret was given") } != hasKeys)
        }
    }

    @Test("Any changed byte of any line is found with the secret, and that line is named")
    func changedBytes() throws {
        for line in good.indices {
            let bytes = Array(good[line].utf8)
            for place in stride(from: 0, to: bytes.count, by: 3) + [bytes.count - 1, bytes.count - 3] {
                var changed = bytes
                changed[place] = changed[place] == UInt8(ascii: "b") ? UInt8(ascii: "c") : UInt8(ascii: "b")
                var lines = good
                lines[line] = String(decoding: changed, as: UTF8.self)
                let found = try findings(lines)
                #expect(!found.isEmpty, "byte \(place) of line \(line + 1)")
                // A changed number makes the line another one: then it is missing or moved.
                // The last line with another key is none that the known key vouches for.
                if place > 12, !found.contains(where: { $0.contains("can't be vouched for") }) {
                    #expect(found.contains { $0.contains("line \(line + 1)") }, "byte \(place): \(found)")
                }
            }
        }
    }

    @Test("Without the secret a changed line is found by the hash that the next one names")
    func changedWithoutSecret() throws {
        for line in 0..<7 {
            var lines = good
            lines[line] = lines[line].replacingOccurrences(of: "\"done\"", with: "\"none\"")
            let found = try findings(lines, hasKeys: false)
            #expect(found.count == 1 && found.joined().contains("line \(line + 1) was changed"), "\(found)")
        }
        var lines = good
        lines[3] = lines[3].replacingOccurrences(of: "\"before\":\"", with: "\"before\":\"00").replacingOccurrences(
            of: "\",\"tag\"", with: "\",\"tag\"")
        #expect(!(try findings(lines, hasKeys: false)).isEmpty)
        // Nothing names the hash of the last line, so only its tag tells.
        lines = good
        lines[7] = lines[7].replacingOccurrences(of: "\"done\"", with: "\"none\"")
        #expect(try findings(lines, hasKeys: false).isEmpty)
        #expect(try findings(lines).contains { $0.contains("line 8 was changed") })
    }

    @Test("Digits of the last line that are the same number but were not written so are found")
    func largeDigits() throws {
        for name in ["tag", "before"] {
            var lines = good
            let last = lines.removeLast()
            let start = try #require(last.range(of: "\"\(name)\":\"")).upperBound
            let end = try #require(last[start...].firstIndex(of: "\""))
            let large = last.replacingCharacters(in: start..<end, with: last[start..<end].uppercased())
            #expect(large != last)
            #expect(try !findings(lines + [large]).isEmpty, "\(name)")
        }
    }

    @Test("Hashes that were computed anew behind a change are found with the secret only")
    func renewedHashes() throws {
        var lines = good
        lines[2] = lines[2].replacingOccurrences(of: "\"c2\"", with: "\"c9\"")
        for index in 3..<lines.count {
            let hash = ReferenceSHA256.hash(Array(lines[index - 1].utf8)).hexadecimal
            let start = try #require(lines[index].range(of: "\"before\":\"")).upperBound
            let end = lines[index].index(start, offsetBy: 64)
            lines[index].replaceSubrange(start..<end, with: hash)
        }
        #expect(try findings(lines, hasKeys: false).isEmpty)
        let found = try findings(lines)
        #expect(found.count == 6 && found.allSatisfy { $0.contains("its tag is not genuine") }, "\(found)")
    }

    @Test("A dropped line is found, also several in a row and the first one")
    func dropped() throws {
        for hasKeys in [true, false] {
            for line in 1..<7 {
                var lines = good
                lines.remove(at: line)
                let found = try findings(lines, hasKeys: hasKeys)
                #expect(found.count == 1 && found.joined().contains("line number \(line + 1) was dropped"), "\(found)")
            }
            let found = try findings(Array(good[..<2] + good[5...]), hasKeys: hasKeys)
            #expect(found.count == 1 && found.joined().contains("lines number 3 to 5 were dropped"), "\(found)")
            #expect(
                try findings(Array(good[1...]), hasKeys: hasKeys).contains {
                    $0.contains("at the beginning of the file")
                })
        }
    }

    @Test("A line that was moved, swapped, repeated or inserted is found")
    func moved() throws {
        for hasKeys in [true, false] {
            var lines = good
            lines.insert(lines.remove(at: 1), at: 6)
            #expect(try findings(lines, hasKeys: hasKeys).count == 1)
            #expect(
                try findings(lines, hasKeys: hasKeys).joined(separator: "; ").contains(
                    "line 7 was moved: its number is 2"))
            lines = good
            lines.insert(lines.remove(at: 6), at: 1)
            #expect(
                try findings(lines, hasKeys: hasKeys).joined(separator: "; ").contains(
                    "line 2 was moved: its number is 7"))
            lines = good
            lines.swapAt(3, 4)
            #expect(try findings(lines, hasKeys: hasKeys).count == 1)
            #expect(try findings(lines, hasKeys: hasKeys).joined(separator: "; ").contains("was moved"))
            lines = good
            lines.insert(lines[2], at: 5)
            #expect(try findings(lines, hasKeys: hasKeys).joined(separator: "; ").contains("was inserted"))
            lines = good
            lines.insert("{\"n\":3}", at: 3)
            #expect(
                try findings(lines, hasKeys: hasKeys).joined(separator: "; ").contains(
                    "line 4 was changed: it is no line of an audit"))
        }
    }

    @Test("Lines that were dropped at the end are not told from a crash, but a known hash and a later start tell them")
    func truncated() throws {
        let last = try #require(AuditScene.hash(good[7]))
        try scene.write(Array(good[..<5]))
        var result = try scene.verify()
        #expect(result.findings.isEmpty && result.notes.contains { $0.contains("dropped at the end") })
        #expect(try findings(Array(good[..<5]), known: last).contains { $0.contains("no line has the hash") })
        #expect(try findings(good, known: last).isEmpty)
        // The service starts again and says how far the storage is.
        try scene.write(Array(good[..<5]))
        try scene.open(sequence: 6).close()
        result = try scene.verify()
        #expect(result.findings.count == 1, "\(result.findings)")
        #expect(result.findings.first?.contains("the changes 5 to 6 were made before this start") == true)
        // A line that is cut in the middle is seen at once.
        try Data((good[0] + "\n" + good[1].dropLast(9)).utf8).write(to: URL(fileURLWithPath: scene.path))
        #expect(try scene.verify().findings.contains { $0.contains("is unfinished") })
    }

    @Test("An audit that begins when the storage had changes says so, and so does one without lines")
    func begunAnew() throws {
        #expect(try !scene.verify().notes.contains { $0.contains("the audit begins here") })
        try scene.write([])
        #expect(try scene.verify().notes == ["there are no lines"])
        try FileManager.default.removeItem(atPath: scene.path)
        try scene.open(sequence: 6).close()
        let result = try scene.verify()
        let note = result.notes.first { $0.contains("the audit begins here") }
        #expect(result.findings.isEmpty && note?.contains("the change 6 already") == true, "\(result.notes)")
        #expect(note?.contains("line 1: ") == true)
    }

    @Test("The tag of the last line vouches for nothing when something was found")
    func noVouching() throws {
        #expect(try scene.verify().notes.contains { $0.contains("vouches for all lines") })
        var lines = good
        lines[4] = lines[4].replacingOccurrences(of: "\"done\"", with: "\"none\"")
        try scene.write(lines)
        #expect(try scene.verify().findings.count == 1)
        #expect(try !scene.verify().notes.contains { $0.contains("vouches") })
        try scene.write(good)
        #expect(try !scene.verify(known: .zero).notes.contains { $0.contains("vouches") })
    }

    @Test("A start on an older copy of the storage is noted and logged, and later losses are found as before")
    func olderStorage() throws {
        // The lines end with the change 6 and a stop; the copy has the changes up to 2.
        var trail = try scene.open(sequence: 2)
        #expect(scene.logged.value.filter { $0.contains("the storage is older than its audit") }.count == 1)
        #expect(scene.logged.value.last?.contains("the change 2 of 6") == true)
        for sequence in 3...4 { try trail.apply(.change(UInt64(sequence))) }
        trail.close()
        var result = try scene.verify()
        #expect(result.findings == [])
        let notes = result.notes.filter { $0.contains("an older copy was restored") }
        #expect(notes.count == 1 && notes[0].contains("line 9:") && notes[0].contains("3 to 6"), "\(result.notes)")
        #expect(try scene.lines()[8].contains("the storage is older than this audit, which has the change 6"))
        // A start on the storage as it is now is no older copy, and changes without lines are found behind it.
        trail = try scene.open(sequence: 4)
        trail.close()
        #expect(try scene.verify().notes.filter { $0.contains("older copy") }.count == 1)
        try scene.open(sequence: 5).close()
        result = try scene.verify()
        #expect(result.findings.count == 1 && result.findings[0].contains("the changes 5 to 5"), "\(result.findings)")
        #expect(scene.logged.value.filter { $0.contains("older than its audit") }.count == 1)
    }

    @Test("A stop tells the sequence, so changes before it that have no line are not taken for dropped ones")
    func stopWithSequence() throws {
        let scene = AuditScene()
        var trail = try scene.open(sequence: 1)
        try trail.apply(.change(2))
        trail.close(sequence: 3)
        try scene.open(sequence: 3).close()
        #expect(try scene.verify().findings.isEmpty)
        trail = try scene.open(sequence: 5)
        trail.close()
        let found = try scene.verify().findings
        #expect(found.count == 1 && found[0].contains("the changes 4 to 5 were made before this start"), "\(found)")
    }

    @Test("An older storage is noticed also when the last sequence is in a file that was moved aside")
    func olderStorageBehindMovedFile() throws {
        let trail = try scene.open(sequence: 6)
        trail.beginNewFile()
        #expect(becomesTrue { (try? scene.files().count) == 2 })
        trail.close()
        #expect(scene.logged.value.contains { $0.contains("goes on in a new file") && $0.contains("audit.jsonl.0") })
        try scene.open(sequence: 6).close()
        #expect(!scene.logged.value.contains { $0.contains("is older than its audit") })
        // That start has told its sequence in the present file. Without it there is the moved one.
        try scene.write(Array(try scene.lines().prefix(1)))
        try scene.open(sequence: 5).close()
        #expect(scene.logged.value.contains { $0.contains("the change 5 of 6") })
    }

    @Test("Files are put in order by their numbers, and a file that is missing between others is found")
    func severalFiles() throws {
        let scene = AuditScene()
        let trail = try scene.open { $0.fileBytesMax = 1500 }
        for sequence in 1...15 { try trail.apply(.change(UInt64(sequence))) }
        trail.close()
        let files = try scene.files().map { (path: $0, contents: try Data(contentsOf: URL(fileURLWithPath: $0))) }
        try #require(files.count >= 4)
        for order in [files, files.reversed()] {
            #expect(AuditVerification(order, keys: scene.keys).findings == [])
        }
        var some = files
        some.remove(at: 1)
        #expect(AuditVerification(some, keys: scene.keys).findings.contains { $0.contains("were dropped before") })
        // Without the oldest ones, the rest holds by itself.
        let rest = AuditVerification(Array(files[2...]), keys: scene.keys)
        #expect(rest.findings == [] && rest.notes.contains { $0.contains("were not given") })
        #expect(AuditVerification([], keys: [:]).findings == [])
    }
}

extension AuditScene {
    static func hash(_ line: String) -> Digest? { Digest(ReferenceSHA256.hash(Array(line.utf8))) }
}

private func + (indices: StrideTo<Int>, more: [Int]) -> [Int] { Array(indices) + more }
