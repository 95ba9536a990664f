import Core
import Foundation
import Principals
import Server
import ServiceTestSupport
import TestSupport
import Testing
import Wire

@Suite("The audit of refusals")
struct RefusalAuditTests {
    private let scratch = ScratchDirectory()
    private var path: String { scratch.path + "/audit.jsonl" }

    private func lines(with text: String) throws -> [String] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
            .filter { $0.contains(text) }
    }

    @Test("Whoever reaches the port writes few lines to the audit, and changes go on")
    func flood() async throws {
        let guarded = try await GuardedService { $0.auditPath = path }
        var body: [UInt8] = []
        for id in 0..<100 {
            FrameWriter.append(.request, Operation.countRoots.rawValue, requestID: UInt64(id), to: &body) {
                $0 += [1, 0x61]
            }
        }
        let peer = try RawPeer(guarded.service.endpoint)
        for _ in 0..<100 {
            peer.send(body)
            for _ in 0..<100 { #expect(try peer.readError()?.error.code == .roleMissing) }
        }
        #expect(becomesTrue { (try? lines(with: "\"what\":\"left-out\"").isEmpty) == false })
        _ = try await guarded.principal("later", [])
        guarded.service.stop()
        let written = try lines(with: "role-missing")
        #expect(written.count >= 16 && written.count < 200, "\(written.count)")
        let told = try lines(with: "\"what\":\"left-out\"").map { line in
            let detail = try #require(line.components(separatedBy: "\"detail\":\"").last)
            return try #require(Int(detail.prefix { $0 != " " }))
        }
        #expect(told.reduce(0, +) + written.count == 10_000)
        #expect(try !lines(with: "createPrincipal").isEmpty)
    }

    @Test("Keys that are not looked at have lines like wrong ones, and masses of both are summed up")
    func slowedKeys() async throws {
        let guarded = try await GuardedService(clock: MonotonicClock { 1000 }) { $0.auditPath = path }
        let tries = Limits.wrongKeysAtOnce + 100
        for _ in 0..<tries {
            let peer = try RawPeer(guarded.service.endpoint)
            peer.send(.hello(minimum: 1, maximum: 1, key: Array(APIKey.random().text.utf8)), id: 0)
            _ = try peer.readError()
        }
        guarded.service.stop()
        let wrong = try lines(with: "key-refused")
        let slowed = try lines(with: "was not looked at")
        #expect(wrong.count == Limits.wrongKeysAtOnce)
        #expect(wrong.allSatisfy { $0.contains("\"who\":\"anonymous\"") && $0.contains("\"what\":\"hello\"") })
        #expect(slowed.count == 16)
        #expect(slowed.allSatisfy { $0.contains("\"kind\":\"key\"") && $0.contains("\"outcome\":\"busy\"") })
        let told = try lines(with: "\"what\":\"left-out\"").map { line in
            let detail = try #require(line.components(separatedBy: "\"detail\":\"").last)
            return try #require(Int(detail.split(separator: " ")[6]))
        }
        #expect(told.reduce(0, +) + slowed.count == 100)
    }
}
