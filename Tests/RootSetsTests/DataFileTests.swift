import CLMDB
import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

@Suite("The data file")
struct DataFileTests {
    @Test("A start with a damaged page is refused, and the reason names the page")
    func damagedPage() throws {
        let storage = try ClosedStorage()
        let root = Int(try storage.metaPages().newer.main.root)
        try storage.change("data.mdb") { $0[root * 4096 + 12] ^= 0x80 }
        let refusal = try #require(storage.refusal())
        #expect(refusal.contains("structure is damaged") && refusal.contains("page \(root)"), "\(refusal)")
        // An operator can't accept what is not whole; the commit before has the same page or an older one of its own.
        try storage.write("newest-commit", Array("accept".utf8))
        #expect(storage.rootCount != 5)
    }

    @Test("A data file that a power cut has left unreadable while it was made is made anew, and no other one is")
    func unfinished() throws {
        let storage = try ClosedStorage()
        let (whole, note) = (try storage.bytes("data.mdb"), try storage.bytes("newest-commit"))
        // Both meta pages are torn, or one, before the first commit.
        let torn = Array(repeating: UInt8(0), count: 512) + whole[512..<4096] + Array(repeating: 0, count: 4096)
        var first = Array(whole[..<8192])
        for slot in [0, 4096] { first.replaceSubrange(slot + 144..<slot + 152, with: repeatElement(0, count: 8)) }
        let (one, other) = (first[..<4096] + torn[4096...], torn[..<4096] + first[4096...])
        let large = torn + Array(repeating: 0, count: Limits.unfinishedDataFileBytesMax)
        for (isNew, hasNote, data) in [
            (false, false, torn), (true, true, torn), (false, true, torn), (true, false, whole), (true, false, torn),
            (true, false, Array(one)), (true, false, Array(other)), (true, false, large),
        ] {
            try storage.write("data.mdb", data)
            try storage.write("owner.lock", Array((isNew ? "new\n" : "").utf8))
            if hasNote {
                try storage.write("newest-commit", note)
            } else {
                try? FileManager.default.removeItem(atPath: storage.folder + "/newest-commit")
            }
            if data == whole {
                #expect(storage.rootCount == 5)
            } else if isNew, !hasNote, data.count < large.count {
                #expect(storage.rootCount == 0)
                #expect(try storage.bytes("owner.lock").starts(with: Array("rootgate ".utf8)))
            } else {
                #expect(storage.refusal()?.contains("both meta pages of the data file are damaged") == true)
                #expect(try storage.bytes("data.mdb") == data)
            }
        }
    }

    @Test("Free pages at the end of the file need not be there, used ones do; other impossible sizes are no pages")
    func shortFile() throws {
        let storage = try ClosedStorage()
        let newest = try storage.metaPages().newer
        let place = storage.offset(of: newest)
        let whole = try storage.bytes("data.mdb")
        // What a commit leaves that took pages at the end and gave them back.
        try storage.change("data.mdb") { bytes in
            bytes.removeSubrange(newest.fileBytes...)
            let last = (newest.lastPage + 40).littleEndian
            withUnsafeBytes(of: last) { bytes.replaceSubrange(place + 136..<place + 144, with: $0) }
        }
        try FileManager.default.removeItem(atPath: storage.folder + "/newest-commit")
        #expect(storage.rootCount == 5)
        #expect(try storage.bytes("data.mdb").count >= newest.fileBytes + 40 * 4096)
        try storage.write("data.mdb", whole)
        let used = Int(newest.main.root) + 1
        try storage.change("data.mdb") { $0.removeSubrange((used * 4096 - 1)...) }
        try FileManager.default.removeItem(atPath: storage.folder + "/newest-commit")
        #expect(storage.refusal()?.contains("shorter than its contents") == true)
        #expect(try storage.bytes("data.mdb").count == used * 4096 - 1)
        // Only the first meta page is left, and it was the newest.
        for count in [4096, 8191] {
            try storage.write("data.mdb", Array(whole[..<count]))
            try storage.write("newest-commit", CommitMark.Note(try storage.firstMetaPage()).bytes)
            #expect(storage.refusal()?.contains("shorter than its contents") == true, "\(count)")
        }
        var bytes = newest.bytes
        bytes.replaceSubrange(40..<44, with: [0, 0, 1, 0])
        #expect(MetaPage(bytes, slot: Int(newest.transaction & 1)) == nil)
        bytes = newest.bytes
        for last in [UInt64(1) << 46, 1 << 47, .max, UInt64(newest.lastPage + 200_000)] {
            withUnsafeBytes(of: last.littleEndian) { bytes.replaceSubrange(136..<144, with: $0) }
            let page = try #require(MetaPage(bytes, slot: Int(newest.transaction & 1)))
            #expect(page.fault(fileBytes: whole.count) != nil, "\(last)")
        }
    }

    @Test("A copy that was made of the file alone has a flag of its own, and is opened")
    func fileAlone() throws {
        let storage = try ClosedStorage()
        try storage.change("data.mdb") { bytes in
            for slot in 0..<2 { bytes[slot * 4096 + 45] |= 0x40 }
        }
        try FileManager.default.removeItem(atPath: storage.folder + "/newest-commit")
        #expect(storage.rootCount == 5)
        try storage.change("data.mdb") { bytes in
            for slot in 0..<2 { bytes[slot * 4096 + 45] |= 0x80 }
        }
        try FileManager.default.removeItem(atPath: storage.folder + "/newest-commit")
        #expect(storage.refusal() != nil)
    }

    @Test("A file that was removed or replaced is displaced, until it is back in its place")
    func displacement() throws {
        let storage = try ClosedStorage()
        let path = storage.folder + "/data.mdb"
        let environment = try StorageEnvironment(directory: storage.folder, bytesMax: 1 << 24, reserveBytes: 1 << 20)
        #expect(environment.displacement == nil)
        try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
        #expect(environment.displacement?.text.contains("removed or replaced") == true)
        try FileManager.default.copyItem(atPath: path + ".away", toPath: path)
        #expect(environment.displacement != nil)
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.moveItem(atPath: path + ".away", toPath: path)
        #expect(environment.displacement == nil)
        try FileManager.default.removeItem(atPath: path)
        #expect(environment.displacement != nil)
    }

    @Test("A start whose data lack a database is refused, and makes none")
    func missingDatabase() throws {
        let storage = try ClosedStorage()
        do {
            let environment = try StorageEnvironment(
                directory: storage.folder, bytesMax: 1 << 24, reserveBytes: 1 << 20)
            let transaction = try WriteTransaction(in: environment)
            try transaction.put(try transaction.totals(in: environment.meta), in: environment.meta)
            try check(mdb_drop(transaction.handle, environment.records.handle, 1), "dropping a database")
            try transaction.commit()
        }
        for _ in 0..<2 {
            #expect(storage.refusal()?.contains("the database records is missing") == true)
        }
    }
}
