import Collaboration
import Core
import Foundation
import RootgateClient
import Secrets
import Server
import ServiceTestSupport
import TestSupport
import Testing

private let day: UInt64 = 24 * 3600 * 1000

@Suite("A service and its secret")
struct SecretTests {
    private let calendar = TestCalendar()
    private var now: UInt64 { UInt64(calendar.now.timeIntervalSince1970 * 1000) }

    private func file(of service: TestService) -> SecretFile {
        SecretFile(dataDirectory: service.directory.path + "/data")
    }

    @Test("A service makes its secret with mode 0600, and does not start when others can read it")
    func openSecret() throws {
        let service = try TestService()
        let path = file(of: service).path
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        service.stop()
        chmod(path, 0o644)
        let failure = #expect(throws: StartupFailure.self) { try service.start() }
        #expect(failure?.description.contains("\(path): its mode is 0644") == true)
        chmod(path, 0o600)
        try service.start()
    }

    @Test("A service does not start with a torn secret, and does not replace it")
    func tornSecret() throws {
        let service = try TestService()
        service.stop()
        let path = file(of: service).path
        let torn = try Data(contentsOf: URL(fileURLWithPath: path)).prefix(100)
        try torn.write(to: URL(fileURLWithPath: path))
        #expect(throws: StartupFailure.self) { try service.start() }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == torn)
    }

    @Test("A service with a file of its operator reads it, makes none, and never writes it")
    func operatorsFile() throws {
        let scratch = ScratchDirectory()
        let named = SecretFile(path: scratch.path + "/named")
        #expect(throws: StartupFailure.self) { try TestService { $0.secretPath = named.path } }
        let secret = try named.rotate(at: now)
        let service = try TestService(calendar: calendar) {
            $0.secretPath = named.path
            $0.secretDays = 1
        }
        calendar.advance(seconds: 10 * 24 * 3600)
        service.service.maintain()
        #expect(try named.load().current.identifier == secret.current.identifier)
        #expect(!FileManager.default.fileExists(atPath: file(of: service).path))
    }

    @Test("Grants and challenges of before a rotation are valid, and those of before a second one are forged")
    func rotation() async throws {
        let service = try TestService(calendar: calendar) {
            $0.secretDays = 0
            $0.grantSeconds = 86_400
            $0.challengeSeconds = 86_400
        }
        let scene = try await GrantHolder(service)
        let challenges = try await scene.client.challenges(3).challenges
        #expect(try await scene.status() == .valid)
        _ = try file(of: service).rotate(at: now)
        // Until the signal the service knows nothing of it.
        service.service.reload()
        #expect(try await scene.status() == .valid)
        #expect(try await scene.open(challenges[0]) == .granted)
        let later = try await GrantHolder(service, "later")
        // The clock by which grants expire stays where it is, because the rotation is what is tested.
        _ = try file(of: service).rotate(at: now + day)
        service.service.reload()
        #expect(try await scene.status() == .forged)
        #expect(try await scene.open(challenges[1]) == .challengeForged)
        #expect(try await later.status() == .valid)
    }

    @Test("A rotation that drops what was before ends every grant at once")
    func dropping() async throws {
        let service = try TestService(calendar: calendar)
        let scene = try await GrantHolder(service)
        _ = try file(of: service).rotate(at: now, dropsPrevious: true)
        service.service.reload()
        #expect(try await scene.status() == .forged)
    }

    @Test("A file that can't be used when it is read again leaves the keys as they are")
    func badReload() async throws {
        let service = try TestService(calendar: calendar)
        let scene = try await GrantHolder(service)
        chmod(file(of: service).path, 0o666)
        service.service.reload()
        #expect(try await scene.status() == .valid)
    }

    @Test("A generation that has reached its age is rotated, and the one before it is forgotten in time")
    func rotationByAge() async throws {
        let service = try TestService(calendar: calendar) { $0.secretDays = 2 }
        let made = try file(of: service).load()
        calendar.advance(seconds: 2 * 24 * 3600 - 1)
        service.service.maintain()
        #expect(try file(of: service).load().current.identifier == made.current.identifier)
        let scene = try await GrantHolder(service)
        calendar.advance(seconds: 1)
        service.service.maintain()
        let rotated = try file(of: service).load()
        #expect(rotated.previous?.identifier == made.current.identifier)
        #expect(try await scene.status() == .valid)
        // A day later everything of the generation before has expired, and a grant of it is not even genuine.
        calendar.advance(seconds: 24 * 3600)
        service.service.maintain()
        #expect(try await scene.status() == .forged)
        try service.restart()
        #expect(try await scene.status() == .forged)
    }

    @Test(
        "A generation of the own file that has reached its age is not rotated while one is prepared, until it is used")
    func ageWhilePrepared() async throws {
        let service = try TestService(calendar: calendar) { $0.secretDays = 2 }
        let file = file(of: service)
        // The service is not told: it learns of it by what the file says.
        let prepared = try file.prepare(at: now)
        calendar.advance(seconds: 10 * 24 * 3600)
        for isTold in [false, true] {
            if isTold { service.service.reload() }
            service.service.maintain()
            let loaded = try file.load()
            #expect(loaded.generations.map(\.identifier) == prepared.generations.map(\.identifier), "told: \(isTold)")
        }
        let scene = try await GrantHolder(service)
        _ = try file.usePrepared(at: now)
        service.service.reload()
        service.service.maintain()
        #expect(try file.load().current.identifier == prepared.next?.identifier)
        #expect(try await scene.status() == .valid)
    }

    @Test("The audit tells when a generation is prepared, and when it is used")
    func auditOfSteps() throws {
        let scratch = ScratchDirectory()
        let (named, audit) = (SecretFile(path: scratch.path + "/named"), scratch.path + "/audit")
        _ = try named.rotate(at: now)
        let service = try TestService(calendar: calendar) {
            $0.secretPath = named.path
            $0.auditPath = audit
        }
        let next = try #require(try named.prepare(at: now).next)
        service.service.reload()
        service.service.reload()
        _ = try named.usePrepared(at: now)
        service.service.reload()
        service.stop()
        let files = try FileManager.default.contentsOfDirectory(atPath: scratch.path).filter { $0.hasPrefix("audit") }
        let lines = try files.flatMap {
            try String(contentsOfFile: scratch.path + "/" + $0, encoding: .utf8).split(separator: "\n")
        }
        for what in ["prepare-secret", "rotate-secret"] {
            let found = lines.filter { $0.contains("\"what\":\"\(what)\"") }
            #expect(found.count == 1 && found.allSatisfy { $0.contains("\"detail\":\"\(next.name)\"") }, "\(lines)")
        }
    }

    @Test("A grant expires after a restart as it would have without one, also with a date that was set back")
    func expiryOverRestarts() async throws {
        let service = try TestService(calendar: calendar, clock: MonotonicClock { 0 }) { $0.grantSeconds = 100 }
        let scene = try await GrantHolder(service)
        calendar.advance(seconds: 60)
        service.service.maintain()
        service.stop()
        calendar.advance(seconds: -1_000_000)
        try service.start()
        // 60 of the 100 seconds are over, and the time in which no service ran does not count.
        #expect(try await scene.millisecondsLeft() == 40_000)
        calendar.advance(seconds: 1_000_000 + 40)
        #expect(try await scene.status() == .valid)
        calendar.advance(seconds: 1)
        #expect(try await scene.status() == .expired)
        try service.restart()
        #expect(try await scene.status() == .expired)
    }

    @Test("With a date before 1970 the service starts, gives grants and keeps its audit; they expire when it is right")
    func before1970() async throws {
        let calendar = TestCalendar(milliseconds: -31_536_000_000)
        let scratch = ScratchDirectory()
        let service = try TestService(directory: scratch, calendar: calendar) {
            $0.grantSeconds = 100
            $0.auditPath = scratch.path + "/audit"
        }
        let scene = try await GrantHolder(service)
        #expect(try await scene.status() == .valid)
        service.service.maintain()
        try service.restart()
        #expect(try await scene.status() == .valid)
        let audit = try String(contentsOfFile: scratch.path + "/audit", encoding: .utf8)
        #expect(audit.contains("1970-01-01T00:00:00.000Z"), "\(audit.prefix(500))")
        calendar.advance(seconds: 31_536_000 + 1_800_000_000)
        #expect(try await scene.status() == .expired)
    }

    @Test("A date that goes an hour forth and back makes no expired grant valid, and new ones as long as ever")
    func anHour() async throws {
        let service = try TestService(calendar: calendar, clock: MonotonicClock { 0 }) { $0.grantSeconds = 100 }
        let scene = try await GrantHolder(service)
        for _ in 0..<3 {
            calendar.advance(seconds: -3600)
            #expect(try await scene.millisecondsLeft() == 100_000)
            calendar.advance(seconds: 3600)
            #expect(try await scene.millisecondsLeft() == 100_000)
        }
        calendar.advance(seconds: 3600)
        #expect(try await scene.status() == .expired)
        calendar.advance(seconds: -3600)
        #expect(try await scene.status() == .expired)
    }

    @Test("A generation of the secret that has ended does not come back with the date, also over a restart")
    func generationAndDate() async throws {
        let service = try TestService(calendar: calendar)
        let scene = try await GrantHolder(service)
        _ = try file(of: service).rotate(at: now)
        service.service.reload()
        calendar.advance(seconds: 25 * 3600)
        service.service.reload()
        #expect(try await scene.status() == .forged)
        calendar.advance(seconds: -25 * 3600)
        service.service.reload()
        #expect(try await scene.status() == .forged)
        try service.restart()
        #expect(try await scene.status() == .forged)
    }

    @Test("What a leap of the date has ended is over, also when the service is killed and the date is set back")
    func leapAndKill() async throws {
        let service = try TestService(calendar: calendar, clock: MonotonicClock { 0 }) { $0.grantSeconds = 100 }
        let scene = try await GrantHolder(service)
        calendar.advance(seconds: 3600)
        #expect(try await scene.status() == .expired)
        let file = URL(fileURLWithPath: service.directory.path + "/data/clock")
        let left = try Data(contentsOf: file)
        service.stop()
        // What a process would have left that was killed after the answer.
        try left.write(to: file)
        calendar.advance(seconds: -3600)
        try service.start()
        #expect(try await scene.status() == .expired)
    }

    @Test("A damaged file with the time counts as missing, and never stops the service")
    func damagedClock() async throws {
        let service = try TestService(calendar: calendar)
        let scene = try await GrantHolder(service)
        service.stop()
        // A time that is so late that nothing can be added to it.
        let far = [UInt8](repeating: 0xff, count: 8) + [UInt8](repeating: 0, count: 8)
        for bytes in [[], [1], [UInt8](repeating: 0xff, count: 16), [UInt8](repeating: 0, count: 16), far] {
            try Data(bytes).write(to: URL(fileURLWithPath: service.directory.path + "/data/clock"))
            try service.start()
            #expect(try await scene.status() == .valid)
            service.stop()
        }
        try service.start()
    }
}

/// A person with a grant for a collaboration.
struct GrantHolder {
    let client: RootgateClient
    let person: SimulatedPerson
    let collaboration: CollaborationIdentifier
    let grant: AccessGrant

    init(_ service: TestService, _ name: String = "deck") async throws {
        client = try service.client()
        person = SimulatedPerson("ana", devices: 1)
        let owner = try #require(Account("owner"))
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: name))
        metadata.defaultPermission = .readWrite
        collaboration = try await client.send(PrepareCollaboration(owner: owner, metadata: metadata))
            .collaborationIdentifier
        _ = try await client.send(
            AddParticipants([NewParticipant(try person.identity(in: collaboration))], to: collaboration))
        grant = try #require(try await person.open(collaboration, client).grant)
    }

    func status() async throws -> GrantStatus? {
        try await client.check([GrantCheck(grant, in: collaboration)]).first?.status
    }

    func millisecondsLeft() async throws -> Int64? {
        try await client.check([GrantCheck(grant, in: collaboration)]).first?.timeLeft.map {
            $0.components.seconds * 1000 + $0.components.attoseconds / 1_000_000_000_000_000
        }
    }

    func open(_ challenge: [UInt8]) async throws -> Verdict {
        let proof = try await person.device(0).signedIdentityProof(in: collaboration, signing: challenge)
        return try await client.verify(proof, in: collaboration)
    }
}
