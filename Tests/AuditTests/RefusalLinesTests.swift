import Core
import Foundation
import TestSupport
import Testing

@testable import Audit

@Suite("The lines about refusals")
struct RefusalLinesTests {
    private let scene = AuditScene()
    private let disk = TestDisk()

    private func admitted(
        _ lines: inout RefusalLines, _ peers: [Holder], _ kind: RefusalLines.Kind = .request, at now: UInt64
    ) -> Int {
        peers.count { lines.admit(kind, of: $0, at: now) }
    }

    @Test("A peer gets 16 lines at once and one in a second from then on, and others still get theirs")
    func peers() {
        var lines = RefusalLines(at: 0)
        let flood = [Holder](repeating: .address(UInt32(1)), count: 1000)
        let counts = [0, 999, 1000].map { admitted(&lines, flood, at: $0) }
        let others = admitted(&lines, [.address(UInt32(2)), .user(1), .principal(1)], at: 1000)
        let later = admitted(&lines, flood, at: 11_000)
        #expect(counts == [16, 0, 1] && others == 3 && later == 10)
    }

    @Test("A peer's slowed keys have as many lines of their own, which its wrong keys don't use up")
    func slowedKeys() {
        var lines = RefusalLines(at: 0)
        let flood = [Holder](repeating: .address(UInt32(1)), count: 1000)
        let counts = [RefusalLines.Kind.wrongKey, .request, .slowedKey].map { admitted(&lines, flood, $0, at: 0) }
        let later = [RefusalLines.Kind.slowedKey, .wrongKey].map { admitted(&lines, flood, $0, at: 1000) }
        #expect(counts == [16, 0, 16] && later == [1, 1])
    }

    @Test("All addresses together get 128 lines at once and four in a second, and principals have as many of their own")
    func everybody() {
        var lines = RefusalLines(at: 0)
        let addresses = (0..<10_000).map { Holder.address(UInt32($0)) }
        let principals = (0..<1000).map { Holder.principal(UInt128($0)) }
        let atOnce = [addresses, principals].map { admitted(&lines, $0, at: 0) }
        let later = [addresses, principals].map { admitted(&lines, $0, at: 1000) }
        #expect(atOnce == [128, 128] && later == [4, 4])
    }

    @Test("Peers that are counted are bounded")
    func bound() {
        var lines = RefusalLines(at: 0)
        for peer in 0..<5000 { _ = lines.admit(.request, of: .address(UInt32(peer)), at: UInt64(peer) * 1000) }
        #expect(lines.count == Limits.auditRefusalPeersMax)
    }

    @Test("What is left out is summed up after a second, by kind and with the time")
    func summary() throws {
        var lines = RefusalLines(at: 0)
        let none = lines.takeSummary()
        #expect(lines.wait(at: 0) == nil && none == nil)
        let first = lines.leaveOut(.request, at: 500, date: 0)
        let second = lines.leaveOut(.wrongKey, at: 700, date: 1500)
        let third = lines.leaveOut(.request, at: 800, date: 1000)
        let fourth = (0..<3).map { _ in lines.leaveOut(.slowedKey, at: 800, date: 1000) }
        #expect([first, second, third] + fourth == [true, false, false, false, false, false])
        #expect(lines.wait(at: 600) == 900 && lines.wait(at: 1500) == 0 && lines.wait(at: 9000) == 0)
        let (told, rest) = (lines.takeSummary(), lines.takeSummary())
        let record = try #require(told)
        #expect(record.kind == .refusal && record.principal == "service" && record.operation == "left-out")
        #expect(
            record.detail == "2 refusals, 1 wrong key and 3 slowed keys have no line, "
                + "from 1970-01-01T00:00:00.000Z to 1970-01-01T00:00:01.500Z")
        #expect(rest == nil)
    }

    @Test("Refusals in masses make few lines, which tell within seconds how many there were")
    func flood() throws {
        let trail = try scene.open { $0.aheadBytes = 1 << 20 }
        for _ in 0..<20_000 { trail.noteRefusal(.request, of: .address(UInt32(1))) { .refusal } }
        for _ in 0..<30 { trail.noteRefusal(.wrongKey, of: .address(UInt32(1))) { .refusal } }
        #expect(becomesTrue { (try? leftOut().isEmpty) == false })
        // The last ones are told at the end.
        for _ in 0..<20 { trail.noteRefusal(.request, of: .address(UInt32(1))) { .refusal } }
        trail.close()
        let written = try scene.lines().count { $0.contains("role-missing") }
        let summaries = try leftOut()
        #expect(written >= 16 && written < 100 && summaries.count < 20, "\(written), \(summaries)")
        #expect(summaries.reduce(0) { $0 + $1.refusals + $1.keys } + written == 20_050)
        #expect(summaries.reduce(0) { $0 + $1.keys } >= 20)
        let result = try scene.verify()
        #expect(result.findings == [] && result.coveredBy == result.last?.number)
    }

    @Test("Refusals use neither the room of changes nor the reserve of removals, and are told when there is room")
    func nearlyFullDisk() throws {
        disk.room.with { $0 = 200 << 10 }
        let trail = try scene.open(calls: disk.calls)
        try trail.apply(.change(1))
        disk.room.with { $0 = 0 }
        for peer in 0..<2000 { trail.noteRefusal(.request, of: .principal(UInt128(peer))) { .refusal } }
        for peer in 0..<2000 { trail.noteRefusal(.request, of: .address(UInt32(peer))) { .refusal } }
        // A quarter of 64 KiB is left: far more than twenty lines.
        for sequence in 2...21 { #expect(try trail.apply(.change(UInt64(sequence))) == nil) }
        #expect(scene.logged.value.count { $0.contains("no room for lines about refusals") } >= 1)
        let written = try scene.lines().count { $0.contains("role-missing") }
        disk.room.with { $0 = nil }
        #expect(becomesTrue { (try? leftOut().reduce(written) { $0 + $1.refusals }) == 4000 })
        trail.close()
        #expect(try scene.verify().findings == [])
    }

    /// What the lines say that sum refusals up.
    private func leftOut() throws -> [(refusals: Int, keys: Int)] {
        try scene.lines().filter { $0.contains("\"what\":\"left-out\"") }.map { line in
            let words = try #require(line.components(separatedBy: "\"detail\":\"").last).split(separator: " ")
            return (try #require(Int(words[0])), try #require(Int(words[2])))
        }
    }
}
