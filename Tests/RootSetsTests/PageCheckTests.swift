import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

@Suite("The check of a data file's pages")
struct PageCheckTests {
    private static let page = 4096

    /// A data file with trees of several levels, values of several pages, and free pages.
    private func dataFile() throws -> [UInt8] {
        var random = SeededGenerator(seed: runSeed)
        let scratch = ScratchDirectory()
        let sets = try RootSets(RootSets.Configuration(directory: scratch.path + "/data"))
        for index in 0..<120 {
            let name = try #require(CollaborationIdentifier("deck \(index)"))
            try sets.apply(Mutation(.createCollaboration(name, .challenge)))
            let roots = (0..<(index == 0 ? 4000 : index % 60)).map { _ in random.digest() }
            if !roots.isEmpty { try sets.apply(Mutation(.addRoots(name, roots))) }
            var edit = Edit()
            edit.records = [RecordEdit(Array("key \(index)".utf8), value: random.bytes(index % 6 == 0 ? 20_000 : 90))]
            try sets.apply(Mutation(.edit(edit)))
            if index % 5 == 4 { try sets.apply(Mutation(.dropCollaboration(name))) }
        }
        sets.close()
        return Array(try Data(contentsOf: URL(fileURLWithPath: scratch.path + "/data/data.mdb")))
    }

    private func newest(_ bytes: [UInt8]) throws -> MetaPage {
        let pages = [0, 1].compactMap {
            MetaPage(Array(bytes[$0 * Self.page..<$0 * Self.page + MetaPage.byteCount]), slot: $0)
        }
        return try #require(pages.max { $0.transaction < $1.transaction })
    }

    private func findings(_ bytes: [UInt8], _ meta: MetaPage) -> [PageCheck.Finding] {
        bytes.withUnsafeBytes { PageCheck($0, meta).findings }
    }

    @Test("A whole file has no findings")
    func whole() throws {
        let bytes = try dataFile()
        let meta = try newest(bytes)
        #expect(meta.fault(fileBytes: bytes.count) == nil)
        #expect(findings(bytes, meta).map(\.description) == [], "seed \(runSeed)")
    }

    @Test("Pages that change while they are checked lead the check nowhere outside of the file")
    func changing() throws {
        let whole = try dataFile()
        let meta = try newest(whole)
        var found = 0
        // Pages that begin as a branch does, also free ones.
        for page in 2...Int(meta.lastPage) where whole[page * Self.page + 10] == 1 {
            // The branch is at the end of what is there.
            var bytes = Array(whole.prefix((page + 1) * Self.page))
            bytes.withUnsafeMutableBytes { bytes in
                // It is asked when the nodes of a branch were judged, and they are read again for the children.
                let check = PageCheck(UnsafeRawBufferPointer(bytes), meta) {
                    for place in page * Self.page + 16..<page * Self.page + 512 { bytes[place] = 0xfe }
                    return false
                }
                found += check.findings.isEmpty ? 0 : 1
            }
        }
        #expect(found > 0, "seed \(runSeed)")
    }

    @Test("Each bit of the header of a page that is used counts, and so does each bit of its first node's place")
    func headers() throws {
        let whole = try dataFile()
        let meta = try newest(whole)
        var bytes = whole
        var used = 0
        for page in 2...Int(meta.lastPage) {
            let start = page * Self.page
            bytes.replaceSubrange(start..<start + Self.page, with: repeatElement(0, count: Self.page))
            let isUsed = !findings(bytes, meta).isEmpty
            bytes.replaceSubrange(start..<start + Self.page, with: whole[start..<start + Self.page])
            guard isUsed else { continue }
            used += 1
            let isOverflow = whole[start + 10] == 4
            // The first node's place is at 16; a page with one node has no second.
            for byte in Array(0..<8) + Array(10..<(isOverflow ? 12 : 18)) where (page + byte) % 3 == 0 {
                for bit in stride(from: UInt8(page % 4), to: 8, by: 4) {
                    bytes[start + byte] ^= 1 << bit
                    #expect(!findings(bytes, meta).isEmpty, "page \(page), byte \(byte), bit \(bit), seed \(runSeed)")
                    bytes[start + byte] ^= 1 << bit
                }
            }
        }
        #expect(used > 20)
    }

    @Test("Whatever the bytes are, the check ends and does not trap (ROOTGATE_TEST_PAGES trials)")
    func total() throws {
        let whole = try dataFile()
        let meta = try newest(whole)
        var random = SeededGenerator(seed: runSeed)
        for _ in 0..<trials("ROOTGATE_TEST_PAGES", usually: 300) {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let start = Int.random(in: 2...Int(meta.lastPage), using: &random) * Self.page
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bytes[start + Int.random(in: 0..<Self.page, using: &random)] = random.bytes(1)[0]
                case 1: bytes[start + Int.random(in: 8..<64, using: &random)] = random.bytes(1)[0]
                case 2: bytes.replaceSubrange(start + 10..<start + 40, with: random.bytes(30))
                default:
                    let other = Int.random(in: 2...Int(meta.lastPage), using: &random) * Self.page
                    bytes.replaceSubrange(start + 8..<start + Self.page, with: bytes[other + 8..<other + Self.page])
                }
            }
            _ = findings(bytes, meta)
        }
    }

    @Test("A check in parts finds damage in the trees of the part, and what it finds in all is what one check finds")
    func parts() throws {
        let whole = try dataFile()
        let meta = try newest(whole)
        var random = SeededGenerator(seed: runSeed)
        let later = Set(StructureCheck.deferred.map(\.text))
        var (early, late) = (0, 0)
        let count = trials("ROOTGATE_TEST_PAGES", usually: 100)
        var number = 0
        // Few pages are of the part that is checked first.
        while number < count || number < 40 * count && (early == 0 || late == 0) {
            number += 1
            var bytes = whole
            let page = Int.random(in: 2...Int(meta.lastPage), using: &random)
            bytes[page * Self.page + Int.random(in: 8..<20, using: &random)] ^=
                1 << UInt8.random(in: 0..<8, using: &random)
            let isWhole = findings(bytes, meta).isEmpty
            bytes.withUnsafeBytes { bytes in
                var check = PageCheck(bytes, meta, deferring: later)
                // A damaged page of names may hide trees.
                #expect(!check.isDone && (!check.findings.isEmpty || later.isSubset(of: check.trees.keys)))
                if !check.findings.isEmpty { early += 1 }
                let isFoundEarly = !check.findings.isEmpty
                check.walkDeferred()
                #expect(check.isDone && check.findings.isEmpty == isWhole, "page \(page), seed \(runSeed)")
                if !isFoundEarly, !isWhole { late += 1 }
            }
        }
        #expect(early > 0 && late > 0, "\(early) early, \(late) late, seed \(runSeed)")
    }

    @Test(
        "Impossible counts and places of a tree that is put off are found at once", arguments: StructureCheck.deferred)
    func places(_ database: DatabaseName) throws {
        let whole = try dataFile()
        let meta = try newest(whole)
        let page = Int(meta.main.root) * Self.page
        let name = Array(database.text.utf8)
        // The name of the tree, and then its place.
        let places = page..<page + Self.page - MetaPage.Tree.byteCount - name.count + 1
        let key = try #require(places.first { Array(whole[$0..<$0 + name.count]) == name })
        for field in stride(from: 8, to: MetaPage.Tree.byteCount, by: 8) {
            var bytes = whole
            bytes[key + name.count + field + 7] ^= 0x40
            let found = bytes.withUnsafeBytes {
                PageCheck($0, meta, deferring: Set(StructureCheck.deferred.map(\.text))).findings
            }
            #expect(!found.isEmpty, "byte \(field)")
        }
    }

    @Test("A meta page that leads anywhere else is a finding or a fault")
    func metaPages() throws {
        let bytes = try dataFile()
        let meta = try newest(bytes)
        var random = SeededGenerator(seed: runSeed)
        // The places of both trees, from their flags on, and the last page.
        for place in Array(44..<88) + Array(92..<144) {
            var changed = meta.bytes
            let bit = UInt8.random(in: 0..<8, using: &random)
            // A copy that was made of the file alone has this flag.
            if place == 45, bit == 6 { continue }
            changed[place] ^= 1 << bit
            let other = try #require(MetaPage(changed, slot: Int(meta.transaction & 1)))
            guard other.fault(fileBytes: bytes.count) == nil, other.lastPage >= meta.lastPage else { continue }
            #expect(!findings(bytes, other).isEmpty || other.lastPage > meta.lastPage, "byte \(place), seed \(runSeed)")
        }
    }
}
