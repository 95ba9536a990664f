import Core
import EtcdTestSupport
import Foundation
import Identity
import TLS
import TestSupport
import Testing
import Transport

@testable import Etcd

@Suite("Requests to etcd", .serialized, .enabled(if: etcd != nil, "there is no program etcd"))
struct EtcdSessionTests {
    private let range = EtcdSession.KeyRange(from: Array("k/".utf8), to: Array("k0".utf8))
    private let patient: UInt64 = 20_000

    private func key(_ text: String) -> [UInt8] { Array("k/\(text)".utf8) }

    private func refusal(_ body: () throws -> Void) -> EtcdFailure.Refusal? {
        guard case .refused(let refusal, _)? = thrown(EtcdFailure.self, body) else { return nil }
        return refusal
    }

    private func create(
        _ session: EtcdSession, _ name: String, _ value: [UInt8], after predecessor: EtcdSession.Predecessor? = nil
    ) throws -> EtcdSession.Creation {
        let after = predecessor ?? .nothing(in: EtcdSession.KeyRange(from: Array("none".utf8), to: Array("nonf".utf8)))
        return try session.create(
            key(name), value, after: after, readingTo: range.end, limit: 2, milliseconds: patient)
    }

    @Test("A key is created once, behind what must be there, and whoever is late reads on from it")
    func creation() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        let session = try processes.session()
        let bytes = (0...255).map { UInt8($0) }
        guard case .created(let revision) = try create(session, "1", bytes, after: .nothing(in: range)) else {
            Issue.record("it was not created")
            return
        }
        #expect(revision > 1)
        #expect(try create(session, "2", [], after: .nothing(in: range)) == .misplaced)
        #expect(try create(session, "3", [], after: .key(key("2"))) == .misplaced)
        for name in ["2", "3"] {
            let before = try #require(Int(name)) - 1
            guard case .created = try create(session, name, [7], after: .key(key("\(before)"))) else {
                Issue.record("\(name) was not created")
                return
            }
        }
        guard case .exists(let page) = try create(session, "1", [9]) else {
            Issue.record("it was created twice")
            return
        }
        #expect(page.entries.map(\.key) == [key("1"), key("2")] && page.hasMore)
        #expect(page.entries[0] == EtcdSession.Entry(key: key("1"), value: bytes, revision: revision))
        #expect(try session.read(key("1"), milliseconds: patient)?.value == bytes)
        #expect(try session.read(key("4"), milliseconds: patient) == nil)
        let all = try session.read(range, limit: 10, milliseconds: patient)
        #expect(all.entries.map(\.value) == [bytes, [7], [7]] && !all.hasMore && all.revision == revision + 2)
        #expect(try !session.remove(range, ifExists: key("4"), milliseconds: patient))
        #expect(try session.remove(range, ifExists: key("3"), milliseconds: patient))
        #expect(try session.read(range, limit: 10, milliseconds: patient).entries.isEmpty)
    }

    @Test("A lease keeps its keys until it ends")
    func leases() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        let session = try processes.session()
        let lease = try session.beginLease(seconds: 60, milliseconds: patient)
        try session.put(key("a"), [1], lease: lease, milliseconds: patient)
        #expect(try session.keepAlive(lease: lease, milliseconds: patient).seconds == 60)
        #expect(try session.read(key("a"), milliseconds: patient)?.value == [1])
        try session.end(lease: lease, milliseconds: patient)
        #expect(try session.read(key("a"), milliseconds: patient) == nil)
        try session.end(lease: lease, milliseconds: patient)
        #expect(refusal { _ = try session.keepAlive(lease: lease, milliseconds: patient) } == .noLease)
        #expect(refusal { try session.put(key("a"), [1], lease: lease, milliseconds: patient) } == .noLease)
    }

    @Test("What is too large, and what is compacted, is refused by its name")
    func refusals() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        let session = try processes.session()
        for bytes in [1_600_000, 2_200_000] {
            #expect(refusal { _ = try create(session, "1", [UInt8](repeating: 1, count: bytes)) } == .tooLarge)
        }
        _ = try create(session, "1", [1])
        for value in 0..<5 { try session.put(key("1"), [UInt8(value)], lease: nil, milliseconds: patient) }
        let revision = try session.read(range, limit: 1, milliseconds: patient).revision
        try session.compact(before: revision, milliseconds: patient)
        try session.compact(before: revision, milliseconds: patient)
        let watch = try session.watch(range, from: 1, milliseconds: patient)
        var event = EtcdWatch.Event.silence
        #expect(
            becomesTrue {
                event = watch.next(milliseconds: 100); return event != .silence
            })
        guard case .ended(let reason) = event else {
            Issue.record("\(event)")
            return
        }
        #expect(reason.contains("compacted") || reason.contains("kept"), "\(reason)")
        #expect(watch.next(milliseconds: 1) == .ended(reason: "the watch has ended"))
    }

    @Test("A watch tells of changes in its range and of no others")
    func watching() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        let (session, watcher) = (try processes.session(), try processes.session())
        let watch = try watcher.watch(range, from: 0, milliseconds: patient)
        #expect(watch.next(milliseconds: 100) == .silence)
        try session.put(Array("other".utf8), [1], lease: nil, milliseconds: patient)
        #expect(watch.next(milliseconds: 200) == .silence)
        for _ in 0..<3 {
            try session.put(key("1"), [1], lease: nil, milliseconds: patient)
            #expect(watch.next(milliseconds: patient) == .changed)
        }
        processes.kill(0)
        guard case .ended = watch.next(milliseconds: patient) else {
            Issue.record("the watch goes on")
            return
        }
    }

    @Test("The next watch is at another member when one is not reached, or is given up")
    func watchingElsewhere() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        let dead = Endpoint(host: "127.0.0.1", port: try EtcdProcesses.freePorts(1)[0])
        let members = try EtcdMembers([dead] + processes.endpoints)
        let session = EtcdSession(members, first: 0)
        func begins() -> EtcdWatch? { try? session.watch(range, from: 0, milliseconds: patient) }
        #expect(begins() == nil)
        for _ in 0..<2 {
            let watch = try #require(begins())
            #expect(watch.next(milliseconds: 100) == .silence)
            watch.giveUp()
            watch.giveUp()
            #expect(watch.next(milliseconds: 1) == .ended(reason: "the watch has ended"))
            #expect(begins() == nil)
        }
    }

    @Test("A full database takes no changes until there is room and the alarm is ended")
    func noSpace() throws {
        let processes = try EtcdProcesses(["--quota-backend-bytes=4000000"])
        defer { processes.end() }
        let session = try processes.session()
        var count = 0
        let failure = thrown(EtcdFailure.self) {
            while count < 100 {
                let name = "\(count)"
                _ = try create(session, name, [UInt8](repeating: 1, count: 200_000))
                count += 1
            }
        }
        guard case .refused(.noSpace, _)? = failure else {
            Issue.record("\(failure.map { "\($0)" } ?? "no failure")")
            return
        }
        #expect(try session.read(key("0"), milliseconds: patient) != nil)
        #expect(try session.remove(range, ifExists: key("0"), milliseconds: patient))
        let revision = try session.read(range, limit: 1, milliseconds: patient).revision
        try session.compact(before: revision, milliseconds: patient)
        #expect(refusal { _ = try create(session, "a", [1]) } == .noSpace)
        try session.defragment(milliseconds: patient)
        #expect(refusal { _ = try create(session, "a", [1]) } == .noSpace)
        // etcd removes in the background what was compacted. A database that is full again raises the alarm again.
        var creation: EtcdSession.Creation?
        let takesChanges = becomesTrue {
            let refused = refusal {
                try session.defragment(milliseconds: patient)
                try session.endAlarms(milliseconds: patient)
                creation = try create(session, "a", [1])
            }
            return refused == nil
        }
        guard takesChanges, case .created? = creation else {
            Issue.record("it takes no changes")
            return
        }
    }

    @Test("Without most of its members etcd has no leader, and says so instead of waiting")
    func noLeader() throws {
        let processes = try EtcdProcesses(members: 3)
        defer { processes.end() }
        let session = try processes.session()
        #expect(session.survey(milliseconds: 1000).count { $0?.isLeader == true } == 1)
        for member in 1...2 { processes.kill(member) }
        // Until the member knows, it waits for the others.
        #expect(
            becomesTrue {
                refusal { _ = try session.read(key("1"), milliseconds: 400) } == .noLeader
            })
        for member in 1...2 { try processes.start(member) }
        #expect(try session.read(key("1"), milliseconds: 60_000) == nil)
    }

    @Test("A user gets in with the password, a token that is lost is renewed, and rights have limits")
    func users() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        for (path, body) in [
            ("user/add", #"{"name":"root","password":"r"}"#), ("role/add", #"{"name":"root"}"#),
            ("user/grant", #"{"user":"root","role":"root"}"#), ("user/add", #"{"name":"u","password":"p"}"#),
            ("role/add", #"{"name":"u"}"#), ("user/grant", #"{"user":"u","role":"u"}"#),
            ("role/grant", #"{"name":"u","perm":{"permType":"READWRITE","key":"ay8=","range_end":"azA="}}"#),
            ("auth/enable", "{}"),
        ] {
            let connection = MemberConnection(try Dialer(processes.endpoints[0], tls: nil, for: .http))
            let end = MonotonicClock.system.milliseconds + patient
            let prefix = path.hasPrefix("auth/") ? "/v3/" : "/v3/auth/"
            #expect(try connection.exchange(prefix + path, Array(body.utf8), [], until: end).status == 200)
        }
        let user = try processes.session(EtcdMembers.Credentials(name: "u", password: "p"))
        try user.put(key("1"), [1], lease: nil, milliseconds: patient)
        #expect(refusal { try user.put(Array("l".utf8), [1], lease: nil, milliseconds: patient) } == .forbidden)
        for (name, password) in [("u", "q"), ("v", "p")] {
            let other = try processes.session(EtcdMembers.Credentials(name: name, password: password))
            #expect(refusal { _ = try other.read(key("1"), milliseconds: patient) } == .unauthenticated)
        }
        #expect(refusal { _ = try processes.session().read(key("1"), milliseconds: patient) } == .unauthenticated)
        // Tokens are in the member's memory.
        processes.kill(0)
        try processes.start(0)
        #expect(becomesTrue { (try? user.read(key("1"), milliseconds: 1000))?.value == [1] })
    }

    @Test("With certificates the client and etcd know each other, and strangers get no connection")
    func certificates() throws {
        let folder = ScratchDirectory()
        let authority = SimulatedAuthority()
        let authorityPath = try authority.write(to: folder.path)
        // The gateway is a client of its own member, with the member's certificate.
        let server = try authority.issue(CertificatePlan { $0.usages = [.server, .client] }).write(
            to: folder.path, as: "server")
        let client = try authority.issue(CertificatePlan { $0.usages = [.client] }).write(to: folder.path, as: "client")
        let options = TLSOptions(
            authoritiesPath: authorityPath, certificatePath: client.certificate, keyPath: client.key)
        let processes = try EtcdProcesses(
            [
                "--client-cert-auth", "--trusted-ca-file", authorityPath, "--cert-file", server.certificate,
                "--key-file", server.key,
            ], tls: options)
        defer { processes.end() }
        let session = try processes.session()
        try session.put(key("1"), [1], lease: nil, milliseconds: patient)
        #expect(try session.read(key("1"), milliseconds: patient)?.value == [1])
        let anonymous = EtcdSession(
            try EtcdMembers(processes.endpoints, tls: TLSOptions(authoritiesPath: authorityPath)))
        #expect(thrown(EtcdFailure.self) { _ = try anonymous.read(key("1"), milliseconds: 500) } != nil)
        let otherPath = try SimulatedAuthority().write(to: folder.path, as: "other")
        let stranger = EtcdSession(try EtcdMembers(processes.endpoints, tls: TLSOptions(authoritiesPath: otherPath)))
        guard
            case .unreachable? = thrown(
                EtcdFailure.self, { _ = try stranger.read(key("1"), milliseconds: 500) })
        else {
            Issue.record("a member of another authority is trusted")
            return
        }
    }
}
