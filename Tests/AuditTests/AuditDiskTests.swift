@testable import Audit
import Core
import Foundation
import TestSupport
import Testing

@Suite("The audit's files and the disk")
struct AuditDiskTests {
    private let scene = AuditScene()
    private let disk = TestDisk()

    @Test("A file that has reached its size is moved aside, and the chain goes on in the next one")
    func rotationBySize() throws {
        let trail = try scene.open { $0.fileBytesMax = 1500 }
        for sequence in 1...12 { try trail.apply(.change(UInt64(sequence))) }
        trail.close()
        let files = try scene.files()
        try #require(files.count >= 3 && files.last == scene.path)
        for file in files {
            let data = try Data(contentsOf: URL(fileURLWithPath: file))
            #expect(data.count < 1500 + Limits.auditLineBytesMax && data.last == 10)
        }
        for file in files.dropFirst() { #expect(try scene.lines(file)[0].contains("\"what\":\"continue\"")) }
        // A file's name ends with the number of its last line.
        let first = try scene.lines(files[0])
        #expect(files[0].hasSuffix(".00000000000\(first.count)"))
        let result = try scene.verify()
        #expect(result.findings == [])
        #expect(result.lineCount == 14 + files.count - 1)
    }

    @Test("Another file is begun when that is asked for, and a moved file is not written to any more")
    func rotationOnDemand() throws {
        let trail = try scene.open()
        try trail.apply(.change(1))
        trail.beginNewFile()
        try trail.apply(.change(2))
        #expect(try scene.files().count == 2)
        // As logrotate does: it moves the file, then sends the signal.
        let moved = scene.scratch.path + "/audit.jsonl.old"
        #expect(rename(scene.path, moved) == 0)
        trail.beginNewFile()
        try trail.apply(.change(3))
        trail.close()
        #expect(try scene.lines().count == 3 && scene.lines(moved).count == 2)
        let result = try scene.verify()
        #expect(result.findings == [] && result.lineCount == 7)
    }

    /// A trail whose writer has written the first line, and waits until the disk is let go.
    private func openHeld() throws -> AuditTrail {
        disk.hold()
        let trail = try scene.open(calls: disk.calls)
        #expect(becomesTrue { (try? scene.lines().count) == 1 })
        return trail
    }

    @Test("Lines that waited when another file was asked for are in the file before, the later ones in the new one")
    func waitingLinesOfARotation() throws {
        let trail = try openHeld()
        trail.note(.change(1))
        trail.beginNewFile()
        trail.note(.change(2))
        trail.beginNewFile()
        disk.letGo()
        trail.close()
        let files = try scene.files()
        try #require(files.count == 2)
        #expect(try scene.lines(files[0]).count == 2 && scene.lines(files[0])[1].contains("\"sequence\":1,"))
        #expect(try scene.lines(files[1]).count == 3 && scene.lines(files[1])[1].contains("\"sequence\":2,"))
        #expect(try scene.verify().findings == [])
    }

    @Test("Behind the last line a new file is begun only when another program has moved the one before")
    func rotationAtTheEnd() throws {
        try rotateAtTheEnd()
        #expect(try scene.files() == [scene.path] && scene.lines().count == 2)
        let moved = scene.scratch.path + "/audit.jsonl.old"
        unlink(scene.path)
        try rotateAtTheEnd { rename(scene.path, moved) }
        #expect(try scene.files() == [moved, scene.path] && scene.lines(moved).count == 2 && scene.lines().count == 1)
        // The next service continues the chain.
        try scene.open().close()
        #expect(try scene.verify().findings == [])
    }

    /// Asks for another file when the last line waits for the disk.
    private func rotateAtTheEnd(_ before: () -> CInt = { 0 }) throws {
        let isClosed = Shared(false)
        let trail = try openHeld()
        Thread {
            trail.close()
            isClosed.with { $0 = true }
        }.start()
        func refusal() -> ServiceError? { thrownServiceError { _ = try trail.reserve(.change(1), isRemoval: true) } }
        #expect(becomesTrue { refusal()?.code == .shuttingDown })
        #expect(before() == 0)
        trail.beginNewFile()
        disk.letGo()
        #expect(becomesTrue { isClosed.value })
    }

    @Test("A new file that is asked for before the first line is written has that line before it")
    func rotationAtTheStart() throws {
        for _ in 0..<20 {
            let scene = AuditScene()
            let trail = try scene.open()
            trail.beginNewFile()
            trail.close()
            #expect(try scene.files().count == 2 && scene.lines().count == 2)
            #expect(scene.logged.value.contains { $0.contains("goes on in a new file") })
        }
    }

    @Test("A file that was removed is noticed with the next line, which goes to a new file")
    func removedFile() throws {
        let trail = try scene.open()
        try trail.apply(.change(1))
        unlink(scene.path)
        try trail.apply(.change(2))
        trail.close()
        let lines = try scene.lines()
        // A line that says it, the change, and the end.
        #expect(lines.count == 3 && lines[0].contains("another program removed the file before"))
        #expect(lines[1].contains("\"sequence\":2,"))
    }

    @Test("While a removed file can't be replaced, changes are told that their lines are not written")
    func removedFolder() throws {
        let trail = try scene.open()
        try trail.apply(.change(1))
        try FileManager.default.removeItem(atPath: scene.scratch.path)
        #expect(try trail.apply(.change(2))?.code == .storageFailed)
        trail.close()
    }

    @Test("A service that was killed between the two renames of a rotation continues the chain")
    func killedRotation() throws {
        let trail = try scene.open()
        try trail.apply(.change(1))
        trail.close()
        #expect(rename(scene.path, scene.path + ".000000000003") == 0)
        try Data("remains".utf8).write(to: URL(fileURLWithPath: scene.path + ".new"))
        try scene.open(sequence: 1).close()
        unlink(scene.path + ".new")
        #expect(try scene.lines()[0].contains("\"n\":4,"))
        #expect(try scene.verify().findings == [])
    }

    @Test("Without room for lines, changes are refused before they are made, and removals use the reserve")
    func fullDisk() throws {
        disk.room.with { $0 = 40 << 10 }
        let trail = try scene.open(calls: disk.calls)
        try trail.apply(.change(1))
        disk.room.with { $0 = 0 }
        var admitted = 0
        var refusal: ServiceError?
        while refusal == nil, admitted < 1000 {
            do throws(ServiceError) {
                try trail.apply(.change(2))
                admitted += 1
            } catch {
                refusal = error
            }
        }
        // What was reserved before the disk became full is used, up to the reserve.
        #expect(refusal?.code == .storageFull && admitted > 0 && admitted < 200, "\(admitted)")
        #expect(refusal?.reason.hasSuffix("removals still work") == true)
        #expect(trail.fault?.contains("too little room") == true)
        let told = { self.scene.logged.value.map { String($0.prefix { $0 != ":" }) } }
        #expect(told() == ["WARNING"])
        var removals = 0
        refusal = nil
        while refusal == nil, removals < 1000 {
            do throws(ServiceError) {
                #expect(try trail.apply(.change(3), isRemoval: true) == nil)
                removals += 1
            } catch {
                refusal = error
            }
        }
        #expect(removals >= 8 && removals < 60, "\(removals)")
        #expect(refusal?.code == .storageFull && refusal?.reason.hasSuffix("used up") == true)
        // Each is told once in a minute, however many are refused.
        for isRemoval in [false, true] {
            #expect(throws: ServiceError(.storageFull, "")) {
                _ = try trail.apply(.change(4), isRemoval: isRemoval)
            }
        }
        #expect(told() == ["WARNING", "CRITICAL"])
        disk.room.with { $0 = nil }
        // A service that is not ready gets no changes. So whoever asks how it is makes the writer look again.
        #expect(becomesTrue { trail.fault == nil })
        #expect(trail.isApplied(.change(4)))
        #expect(trail.fault == nil && told() == ["WARNING", "CRITICAL", "the disk has room for the audit again"])
        trail.close()
        #expect(try scene.verify().findings == [])
    }

    @Test("While the disk is full, changes that come together are told so, and not to come again")
    func fullForMany() throws {
        disk.room.with { $0 = 40 << 10 }
        let trail = try scene.open(calls: disk.calls)
        disk.room.with { $0 = 0 }
        var reservations: [AuditTrail.Reservation] = []
        var codes: [ServiceError.Code] = []
        for _ in 0..<400 {
            do throws(ServiceError) {
                guard let reservation = try trail.reserve(.change(1), isRemoval: false) else { continue }
                reservations.append(reservation)
            } catch {
                codes.append(error.code)
                // The writer looks meanwhile.
                usleep(1000)
            }
        }
        #expect(!reservations.isEmpty && codes.last == .storageFull)
        for reservation in reservations { trail.withdraw(reservation) }
        trail.close()
    }

    @Test("A line that says how many were lost comes before the end")
    func lostAtTheEnd() throws {
        let trail = try scene.open()
        try trail.apply(.change(1))
        for _ in 0..<3 { trail.noteLost("a test says so") }
        trail.close(sequence: 1)
        let lines = try scene.lines()
        // The writer may have taken one of them meanwhile.
        #expect(lines.count >= 4 && lines[2].contains("\"what\":\"lost-lines\""), "\(lines)")
        #expect(lines.last?.contains("\"what\":\"stop\"") == true)
        #expect(try scene.verify().findings == [])
    }

    @Test("Refusals without room are counted, and a later line tells how many were lost")
    func lostLines() throws {
        disk.room.with { $0 = 0 }
        let trail = try scene.open(calls: disk.calls)
        for _ in 0..<5 { trail.note(.ofService("something")) }
        // While the first line is on its way, the answer is busy.
        var refusal: ServiceError?
        for _ in 0..<1_000_000 where refusal == nil || refusal?.code == .busy {
            do throws(ServiceError) {
                try trail.apply(.change(1))
                break
            } catch {
                refusal = error
            }
        }
        #expect(refusal?.code == .storageFull)
        disk.room.with { $0 = nil }
        #expect(becomesTrue { trail.isApplied(.change(2)) })
        trail.close()
        #expect(
            try scene.lines().contains { $0.contains("\"what\":\"lost-lines\"") && $0.contains("\"detail\":\"5\"") })
        #expect(try scene.verify().findings == [])
    }

    @Test("A stop while lines are lost vouches for no change, so those without lines are found")
    func stopWithLostLines() throws {
        let trail = try scene.open(calls: disk.calls) { $0.isOptional = true }
        disk.room.with { $0 = 0 }
        for sequence in UInt64(1)...1000 { #expect(try trail.apply(.change(sequence)) == nil) }
        // The last line fits into the reserve, which lines about lost ones leave alone.
        trail.close(sequence: 1000)
        let lines = try scene.lines()
        #expect(lines.last?.contains("\"what\":\"stop\"") == true && !lines.contains { $0.contains("lost-lines") })
        disk.room.with { $0 = nil }
        try scene.open(sequence: 1000, calls: disk.calls).close(sequence: 1000)
        let found = try scene.verify().findings
        #expect(found.count == 1 && found[0].contains("to 1000 were made before this start"), "\(found)")
    }

    @Test("A failing disk is told to who waits, stops changes, and gets the line when it works again")
    func failingDisk() throws {
        let trail = try scene.open(calls: disk.calls)
        try trail.apply(.change(1))
        disk.failure.with { $0 = EIO }
        #expect(try trail.apply(.change(2))?.code == .storageFailed)
        for isRemoval in [false, true] {
            #expect(throws: ServiceError(.storageFailed, "")) { try trail.apply(.change(3), isRemoval: isRemoval) }
        }
        let size = try Data(contentsOf: URL(fileURLWithPath: scene.path)).count
        disk.failure.with { $0 = 0 }
        #expect(becomesTrue { trail.isApplied(.change(3)) })
        trail.close()
        let lines = try scene.lines()
        #expect(size == lines[..<2].reduce(0) { $0 + $1.utf8.count + 1 })
        #expect(lines.filter { $0.contains("addRoots") }.count == 3)
        let result = try scene.verify()
        #expect(result.findings == [] && result.lineCount == 5)
        #expect(scene.logged.value.contains { $0.contains("can't be written") })
    }

    @Test("With an optional audit changes go on without lines, which a later line tells")
    func optionalAudit() throws {
        let trail = try scene.open(calls: disk.calls) { $0.isOptional = true }
        try trail.apply(.change(1))
        disk.failure.with { $0 = ENOSPC }
        #expect(try trail.apply(.change(2)) == nil)
        for sequence in 3...6 { #expect(try trail.apply(.change(UInt64(sequence))) == nil) }
        disk.failure.with { $0 = 0 }
        #expect(
            becomesTrue {
                (try? scene.lines().contains { $0.contains("lost-lines") && $0.contains("\"detail\":\"4\"") }) == true
            })
        trail.close()
        #expect(try scene.verify().findings == [])
        #expect(try scene.lines().contains { $0.contains("\"sequence\":2,") })
    }

    @Test("A rotation that the disk has no room for goes on in the present file")
    func rotationOnAFullDisk() throws {
        let trail = try scene.open()
        try trail.apply(.change(1))
        mkdir(scene.path + ".new", 0o700)
        trail.beginNewFile()
        try trail.apply(.change(2))
        trail.close()
        rmdir(scene.path + ".new")
        #expect(try scene.files() == [scene.path] && scene.lines().count == 4)
        #expect(scene.logged.value.contains { $0.contains("goes on in the same file") })
        #expect(try scene.verify().findings == [])
    }

    @Test("A rotation replaces no file, and goes on in the present one")
    func rotationOntoAFile() throws {
        let trail = try scene.open()
        try trail.apply(.change(1))
        let taken = scene.path + ".000000000002"
        try Data("mine\n".utf8).write(to: URL(fileURLWithPath: taken))
        trail.beginNewFile()
        try trail.apply(.change(2))
        trail.close()
        #expect(try scene.lines(taken) == ["mine"] && scene.lines().count == 4)
        #expect(scene.logged.value.contains { $0.contains("goes on in the same file") && $0.contains(taken) })
    }

    @Test("A closed audit takes nothing any more, and answers who waits")
    func closed() throws {
        let trail = try scene.open()
        let reservation = try #require(try trail.reserve(.change(1), isRemoval: false))
        trail.close()
        trail.close()
        let told = Shared<ServiceError?>(nil)
        trail.append(.change(1), reservation) { failure in told.with { $0 = failure } }
        #expect(told.value?.code == .shuttingDown)
        #expect(throws: ServiceError(.shuttingDown, "")) { try trail.reserve(.change(1), isRemoval: true) }
        #expect(try scene.lines().count == 2)
    }
}
