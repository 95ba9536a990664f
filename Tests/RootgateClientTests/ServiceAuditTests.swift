import Audit
import Collaboration
import Core
import Foundation
import Hashing
import RootgateClient
import Secrets
import Server
import ServiceTestSupport
import TestSupport
import Testing

@Suite("The audit of a service")
struct ServiceAuditTests {
    private let scratch = ScratchDirectory()
    private var path: String { scratch.path + "/audit.jsonl" }

    private func service(_ adjust: (inout Configuration) -> Void = { _ in }) throws -> TestService {
        try TestService {
            $0.auditPath = path
            adjust(&$0)
        }
    }

    /// The fields of the lines, those of other files before those of the present one.
    private func lines() throws -> [[String: Any]] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
    }

    private func verify(_ service: TestService) throws -> AuditVerification {
        let secret = try SecretFile(dataDirectory: service.directory.path + "/data").load()
        var keys = [secret.current.name: try secret.current.authenticator(for: .audits)]
        if let previous = secret.previous { keys[previous.name] = try previous.authenticator(for: .audits) }
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path).filter {
            $0.hasPrefix("audit.jsonl")
        }
        return try AuditVerification(names, keys: keys) { name in
            try Data(contentsOf: URL(fileURLWithPath: scratch.path + "/" + name))
        }
    }

    @Test("Each change has a line when its answer arrives, with its name, its sequence and the peer")
    func changes() async throws {
        let service = try service()
        let client = try service.client()
        let deck = try #require(CollaborationIdentifier("deck \"42\" é"))
        let root = SHA256.hash([1])
        let steps: [(name: String, run: () async throws -> MutationReceipt)] = [
            ("createCollaboration", { try await client.createCollaboration(deck) }),
            ("addRoots", { try await client.addRoots([root], to: deck) }),
            ("removeRoots", { try await client.removeRoots([root], from: deck) }),
            ("dropCollaboration", { try await client.dropCollaboration(deck) }),
        ]
        for step in steps {
            let receipt = try await step.run()
            let line = try #require(try lines().last)
            #expect(line["what"] as? String == step.name && line["kind"] as? String == "mutation")
            #expect(line["sequence"] as? UInt64 == receipt.sequence)
            #expect(line["collaboration"] as? String == "\(deck)")
            #expect(line["who"] as? String == "anonymous" && line["outcome"] as? String == "done")
            #expect((line["peer"] as? String)?.hasPrefix("127.0.0.1:") == true)
        }
        service.stop()
        #expect(try lines().first?["what"] as? String == "start" && lines().last?["what"] as? String == "stop")
        let result = try verify(service)
        #expect(result.findings == [] && result.coveredBy == 6)
    }

    @Test("A refused change has a line with the error's name, and a repetition has none")
    func refusalsOfTheStorage() async throws {
        let service = try service()
        let client = try service.client()
        let nowhere = try #require(CollaborationIdentifier("nowhere"))
        await #expect(throws: ServiceError(.unknownCollaboration, "")) {
            _ = try await client.addRoots([SHA256.hash([1])], to: nowhere)
        }
        let creation = Mutation(.createCollaboration(nowhere, .challenge))
        for _ in 0..<2 { _ = try await client.apply(creation) }
        let written = try lines().dropFirst()
        #expect(written.map { $0["outcome"] as? String } == ["unknown-collaboration", "done"])
    }

    @Test("The layer's changes and joinings have lines, and so has each refusal by role")
    func layer() async throws {
        let service = try service()
        let holder = try await GrantHolder(service)
        await #expect(throws: ServiceError(.notPermitted, "")) {
            _ = try await holder.client.send(
                AddParticipants(
                    [NewParticipant(try SimulatedPerson("bo").identity(in: holder.collaboration))],
                    to: holder.collaboration, by: holder.grant))
        }
        #expect(becomesTrue { (try? lines().contains { $0["kind"] as? String == "refusal" }) == true })
        let written = try lines()
        #expect(
            written.map { $0["what"] as? String }
                == ["start", "prepare", "addParticipants", "open", "addParticipants"])
        let refusal = try #require(written.last)
        #expect(refusal["outcome"] as? String == "not-permitted" && refusal["sequence"] == nil)
        #expect(refusal["collaboration"] as? String == "\(holder.collaboration)")
        for line in written[1...3] {
            #expect(line["collaboration"] as? String == "\(holder.collaboration)" && line["sequence"] is Int)
        }
    }

    @Test("A start that fails leaves no line, so the one that succeeds tells that the storage is older than its audit")
    func failedStart() async throws {
        let service = try service()
        let client = try service.client()
        let deck = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(deck)
        service.stop()
        let folder = service.directory.path + "/data"
        let (older, files) = (scratch.path + "/older", FileManager.default)
        try files.copyItem(atPath: folder, toPath: older)
        try service.start()
        try await client.addRoots([SHA256.hash([1])], to: deck)
        service.stop()
        try files.removeItem(atPath: folder)
        try files.moveItem(atPath: older, toPath: folder)
        let before = try lines().count
        let occupant = try TestService()
        var configuration = Configuration(dataDirectory: folder, workers: 1)
        (configuration.auditPath, configuration.endpoints) = (path, [occupant.endpoint])
        for _ in 0..<2 {
            do throws(StartupFailure) {
                _ = try Service(configuration)
                Issue.record("two services have one port")
            } catch {
                guard case .portTaken = error else {
                    Issue.record("\(error)")
                    return
                }
            }
        }
        #expect(try lines().count == before)
        try service.start()
        #expect(becomesTrue { (try? lines().count) == before + 1 })
        let line = try #require(try lines().last)
        #expect((line["detail"] as? String)?.contains("older than this audit, which has the change 2") == true)
        #expect(line["what"] as? String == "start" && line["sequence"] as? Int == 1)
    }

    @Test("A restart and a rotation of the secret continue the chain, and the newest key vouches for it")
    func restartAndRotation() async throws {
        let service = try service()
        let client = try service.client()
        _ = try await client.createCollaboration(try #require(CollaborationIdentifier("a")))
        try service.restart()
        let file = SecretFile(dataDirectory: service.directory.path + "/data")
        _ = try file.rotate(at: UInt64(Date().timeIntervalSince1970 * 1000))
        service.service.reload()
        _ = try await client.createCollaboration(try #require(CollaborationIdentifier("b")))
        service.stop()
        let result = try verify(service)
        #expect(result.findings == [] && result.coveredBy == result.last?.number)
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path).sorted()
        // The signal has also begun another file.
        try #require(names.count == 2 && names[0] == "audit.jsonl")
        let earlier = try String(contentsOfFile: scratch.path + "/" + names[1], encoding: .utf8)
        #expect((earlier + (try String(contentsOfFile: path, encoding: .utf8))).contains("\"what\":\"rotate-secret\""))
    }

    @Test("Lines that are dropped while no service runs are found after the next start")
    func droppedBetweenStarts() async throws {
        let service = try service()
        let client = try service.client()
        for name in ["a", "b", "c"] {
            _ = try await client.createCollaboration(try #require(CollaborationIdentifier(name)))
        }
        service.stop()
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        try Data(lines.prefix(2).map { $0 + "\n" }.joined().utf8).write(to: URL(fileURLWithPath: path))
        try service.start()
        service.stop()
        #expect(try verify(service).findings.contains { $0.contains("the changes 2 to 3 were made before this start") })
    }

    @Test("A service does not start with an audit that it can't continue")
    func damagedAudit() throws {
        try Data("no line\n".utf8).write(to: URL(fileURLWithPath: path))
        let failure = #expect(throws: StartupFailure.self) { try service() }
        #expect(failure?.description.contains("refused to continue the audit") == true)
        #expect(throws: StartupFailure.self) { try service { $0.auditPath = scratch.path + "/none/audit" } }
    }

    @Test(
        "When the disk of the audit is full, additions are refused before they are made, and removals still work",
        .enabled(if: geteuid() == 0 && succeeds("mount", ["--version"]), "only root can make a small disk"))
    func fullDisk() async throws {
        let folder = scratch.path + "/small"
        mkdir(folder, 0o700)
        guard succeeds("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", folder]) else { return }
        defer { _ = succeeds("umount", ["-l", folder]) }
        let service = try TestService { $0.auditPath = folder + "/audit.jsonl" }
        let client = try service.client()
        let deck = try #require(CollaborationIdentifier("deck"))
        let first = try await client.createCollaboration(deck)
        // Somebody else takes the rest of the disk. What the audit has reserved stays.
        let filler = open(folder + "/filler", O_WRONLY | O_CREAT, 0o600)
        let block = [UInt8](repeating: 1, count: 64 << 10)
        while write(filler, block, block.count) == block.count {}
        close(filler)
        var sequence = first.sequence
        var refusal: ServiceError?
        for number in 0..<10_000 where refusal == nil {
            do throws(ServiceError) {
                sequence = try await client.addRoots(
                    [SHA256.hash([UInt8(number % 256), UInt8(number / 256)])], to: deck
                )
                .sequence
            } catch {
                refusal = error
            }
        }
        #expect(refusal?.code == .storageFull)
        // Nothing was changed by the refused one, and a removal is the next change.
        let removal = try await client.removeRoots([SHA256.hash([0, 0])], from: deck)
        #expect(removal.sequence == sequence + 1 && removal.changed == 1)
        unlink(folder + "/filler")
        var isBack = false
        for _ in 0..<500 where !isBack {
            isBack = (try? await client.addRoots([SHA256.hash([9])], to: deck)) != nil
            if !isBack { try await Task.sleep(for: .milliseconds(20)) }
        }
        #expect(isBack)
    }
}
