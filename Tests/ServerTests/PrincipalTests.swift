import Collaboration
import Core
import Foundation
import Hashing
import Identity
import Principals
import RootgateClient
import Server
import ServiceTestSupport
import TLS
import TestSupport
import Testing
import Transport
import Wire

@Suite("A service with principals")
struct PrincipalTests {
    private let every: [CollaborationPrefix] = [.every]

    /// The code of what `body` throws; `nil` when it does not.
    private func code(of body: () async throws -> Void) async -> ServiceError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? ServiceError)?.code
        }
    }

    @Test("Without a principal everything is open on this machine, and the first one closes it for good")
    func opening() async throws {
        let service = try TestService()
        let client = try service.client()
        _ = try await client.statistics()
        let guarded = try await GuardedService()
        let anonymous = try guarded.client(nil)
        #expect(await code { _ = try await anonymous.statistics() } == .roleMissing)
        try await anonymous.ping()
        _ = try await anonymous.hello()
        _ = try await guarded.administrator.send(RemovePrincipal(try GuardedService.name("root")))
        #expect(await code { _ = try await anonymous.statistics() } == .roleMissing)
        try guarded.service.restart()
        #expect(await code { _ = try await anonymous.statistics() } == .roleMissing)
    }

    @Test(
        "A wrong key gets key-refused, and nothing behind it is read", arguments: ["other", "short", "long", "expired"])
    func wrongKeys(kind: String) async throws {
        let calendar = TestCalendar()
        let guarded = try await GuardedService(calendar: calendar)
        var text = APIKey.random().text
        if kind == "short" { text = "rgk_" }
        if kind == "long" { text = guarded.administratorKey.text + "A" }
        if kind == "expired" {
            text = try await guarded.principal(
                "late", [LimitedRole(.observe, prefixes: every)], expiresAt: calendar.now + 60
            ).text
            calendar.advance(seconds: 60)
        }
        let peer = try RawPeer(guarded.service.endpoint)
        var bytes: [UInt8] = []
        for (id, key) in [text, guarded.administratorKey.text].enumerated() {
            FrameWriter.append(.request, Operation.hello.rawValue, requestID: UInt64(id), to: &bytes) {
                Request.hello(minimum: 1, maximum: 1, key: Array(key.utf8)).append(to: &$0)
            }
        }
        // What the right key allows is not done behind a wrong one.
        let sneaky = CreatePrincipal(try GuardedService.name("sneaky"), roles: [])
        FrameWriter.append(.request, Operation.collaborate.rawValue, requestID: 2, to: &bytes) {
            CollaborationCall(identifier: .random(), name: CreatePrincipal.name, json: (try? JSON.encode(sneaky)) ?? [])
                .append(to: &$0)
        }
        peer.send(bytes)
        let refusal = try #require(try peer.readError())
        #expect(refusal.error.code == .keyRefused && refusal.header.requestID == 0)
        #expect(refusal.header.operation == Operation.hello.rawValue)
        // Nothing tells what is wrong with the key.
        #expect(refusal.error.reason == "the key is not valid" && refusal.error.detail == 0)
        #expect(peer.isClosed)
        _ = try await guarded.principal("later", [])
        let names = try await guarded.administrator.send(ListPrincipals()).principals.map(\.name.text)
        #expect(!names.contains("sneaky") && names.contains("later"))
    }

    @Test("A client with a wrong key fails at once, with the service's reason")
    func wrongClient() async throws {
        let guarded = try await GuardedService()
        #expect(await code { try await guarded.client(.random()).ping() } == .keyRefused)
    }

    @Test("A connection may present 8 keys and no more")
    func presentations() async throws {
        let guarded = try await GuardedService()
        let peer = try RawPeer(guarded.service.endpoint)
        for number in 1...9 {
            peer.send(.hello(minimum: 1, maximum: 1, key: Array(guarded.administratorKey.text.utf8)), id: 1)
            if number <= 8 {
                #expect(peer.readFrame()?.header.kind == .answer)
            } else {
                let error = try #require(try peer.readError()).error
                #expect(error.code == .keyRefused && error.detail == 8)
            }
        }
        #expect(peer.isClosed)
    }

    @Test("A removal of a key, a role or a principal holds on open connections when it is answered")
    func removals() async throws {
        let guarded = try await GuardedService()
        let observe = LimitedRole(.observe, prefixes: every)
        for number in 0..<20 {
            let name = try GuardedService.name("p\(number)")
            let key = try await guarded.principal(name.text, [observe])
            let client = try guarded.client(key)
            _ = try await client.statistics()
            switch number % 3 {
            case 0: _ = try await guarded.administrator.send(RemoveKey(key.identifier))
            case 1: _ = try await guarded.administrator.send(RemovePrincipal(name))
            default: _ = try await guarded.administrator.send(UpdatePrincipal(name, roles: .clear))
            }
            #expect(await code { _ = try await client.statistics() } == .roleMissing, "\(number)")
            try await client.ping()
            guard number % 3 == 2 else { continue }
            _ = try await guarded.administrator.send(UpdatePrincipal(name, roles: .set([observe])))
            _ = try await client.statistics()
        }
    }

    @Test("A query that waits gets nothing when its sender has lost the role meanwhile")
    func waitingQueries() async throws {
        let guarded = try await GuardedService()
        let account = try #require(Account("ana"))
        let key = try await guarded.principal("p", [LimitedRole(.collaborate, prefixes: every)])
        let other = try guarded.client(
            try await guarded.principal(
                "q", [.collaborate, .observe].map { LimitedRole($0, prefixes: every) }))
        let waiting = try guarded.client(key)
        let shelf = try await other.send(ReadShelf(of: account, for: .everyApp, limit: 1))
        var query = ReadShelf(of: account, for: .everyApp, limit: 1)
        query.after = shelf.version
        query.waitMilliseconds = 30_000
        let answer = Task { [query] in await code { _ = try await waiting.send(query) } }
        let deadline = ContinuousClock.now + patience
        func waitingCount() async throws -> UInt64? {
            try await other.statistics().first { $0.name == "requests-following" }?.value
        }
        while try await waitingCount() != 1, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(5))
        }
        _ = try await guarded.administrator.send(RemoveKey(key.identifier))
        _ = try await other.send(SetConsent(of: account, .everything, isAllowed: true))
        #expect(await answer.value == .roleMissing)
    }

    @Test("The audit tells when keys are made, first used and removed, and what was refused, and has no key")
    func audited() async throws {
        let scratch = ScratchDirectory()
        let guarded = try await GuardedService { $0.auditPath = scratch.path + "/audit.jsonl" }
        let key = try await guarded.principal("p", [LimitedRole(.observe, prefixes: every)])
        let client = try guarded.client(key)
        _ = try await client.statistics()
        _ = try await guarded.administrator.send(RemoveKey(key.identifier))
        #expect(await code { _ = try await client.statistics() } == .roleMissing)
        guarded.service.stop()
        let lines = try String(contentsOfFile: scratch.path + "/audit.jsonl", encoding: .utf8).split(separator: "\n")
            .map { try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]) }
        func find(_ what: String, _ kind: String) -> [String: Any]? {
            lines.first { $0["what"] as? String == what && $0["kind"] as? String == kind }
        }
        let created = try #require(lines.last { $0["what"] as? String == "createPrincipal" })
        #expect(created["kind"] as? String == "key" && created["who"] as? String == "root")
        #expect(created["detail"] as? String == "p created, key \(key.identifier) added")
        let uses = lines.filter { $0["what"] as? String == "firstUse" && $0["who"] as? String == "p" }
        #expect(uses.count == 1)
        #expect((uses.first?["detail"] as? String)?.contains("\(key.identifier)") == true)
        #expect(find("removeKey", "key")?["detail"] as? String == "p changed, key \(key.identifier) removed")
        #expect(find("statistics", "refusal")?["outcome"] as? String == "role-missing")
        let whole = try String(contentsOfFile: scratch.path + "/audit.jsonl", encoding: .utf8)
        #expect(!whole.contains(key.text.suffix(43)) && !whole.contains(guarded.administratorKey.text.suffix(43)))
    }

    @Test("An expiry holds on open connections")
    func expiry() async throws {
        let calendar = TestCalendar()
        let guarded = try await GuardedService(calendar: calendar)
        let key = try await guarded.principal(
            "p", [LimitedRole(.observe, prefixes: every)], expiresAt: calendar.now + 60)
        let client = try guarded.client(key)
        calendar.advance(seconds: 59)
        _ = try await client.statistics()
        calendar.advance(seconds: 1)
        #expect(await code { _ = try await client.statistics() } == .roleMissing)
    }

    @Test("Two keys are valid while keys are rotated, also after a restart")
    func rotation() async throws {
        let guarded = try await GuardedService()
        let name = try GuardedService.name("p")
        let first = try await guarded.principal("p", [LimitedRole(.observe, prefixes: every)])
        let second = APIKey.random()
        _ = try await guarded.administrator.send(AddKey(NewKey(KeyHash(second)), to: name))
        for key in [first, second] { _ = try await guarded.client(key).statistics() }
        try guarded.service.restart()
        for key in [first, second] { _ = try await guarded.client(key).statistics() }
        _ = try await guarded.administrator.send(RemoveKey(first.identifier))
        #expect(await code { _ = try await guarded.client(first).statistics() } == .keyRefused)
        _ = try await guarded.client(second).statistics()
    }

    @Test("The last use of a key is known, and is stored again after an hour")
    func lastUse() async throws {
        let calendar = TestCalendar()
        let guarded = try await GuardedService(calendar: calendar)
        let key = try await guarded.principal("p", [LimitedRole(.observe, prefixes: every)])
        func use() async throws -> Date? {
            let listed = try await guarded.administrator.send(ListPrincipals()).principals
            return try #require(listed.first { $0.name.text == "p" }).keys[0].lastUsedAt
        }
        func expectUse(_ date: Date) async throws {
            let deadline = ContinuousClock.now + patience
            while try await use() != date, ContinuousClock.now < deadline {
                try await Task.sleep(for: .milliseconds(5))
            }
            #expect(try await use() == date)
        }
        #expect(try await use() == nil)
        let client = try guarded.client(key)
        let begin = calendar.now
        _ = try await client.statistics()
        try await expectUse(begin)
        calendar.advance(seconds: 3599)
        _ = try await client.statistics()
        // The writer keeps the order: what was queued before is stored when this is.
        _ = try await guarded.principal("later", [])
        #expect(try await use() == begin)
        calendar.advance(seconds: 1)
        _ = try await client.statistics()
        try await expectUse(begin + 3600)
    }

    @Test("A limited observer lists what its role covers, page by page, and sees no other change")
    func filteredLists() async throws {
        let guarded = try await GuardedService()
        let owner = try guarded.client(
            try await guarded.principal("owner", [LimitedRole(.enrol, prefixes: every)]))
        var expected: Set<String> = []
        for number in 0..<300 {
            let name = number % 3 == 0 ? "a/\(number)" : "b/\(number)"
            if number % 3 == 0 { expected.insert(name) }
            try await owner.createCollaboration(try #require(CollaborationIdentifier(name)))
        }
        let observer = try guarded.client(
            try await guarded.principal(
                "observer", [LimitedRole(.observe, prefixes: [try #require(CollaborationPrefix("a/"))])]))
        for limit in [1, 7, 100, 1024] {
            var names: [String] = []
            var after: CollaborationIdentifier?
            repeat {
                let page = try await observer.collaborations(after: after, limit: limit)
                #expect(page.items.count <= limit)
                names += page.items.map { "\($0.identifier)" }
                after = page.hasMore ? page.items.last?.identifier : nil
            } while after != nil
            #expect(names.count == expected.count && Set(names) == expected, "pages of \(limit)")
            var changed: [String] = []
            var sequence: UInt64? = 0
            while let from = sequence {
                let page = try await observer.changes(after: from, limit: limit)
                #expect(page.items.count <= limit)
                changed += page.items.map { $0.mutation.change.collaboration?.description ?? "records" }
                sequence = page.hasMore ? page.items.last?.sequence : nil
            }
            #expect(changed.count == expected.count && Set(changed) == expected, "pages of \(limit)")
        }
    }

    @Test("A certificate's names identify a principal, and a key that is presented decides instead")
    func certificates() async throws {
        let directory = ScratchDirectory()
        let authority = SimulatedAuthority()
        let authorityPath = try authority.write(to: directory.path)
        let paths = try authority.issue().write(to: directory.path, as: "server")
        let plain = Endpoint(host: "127.0.0.1", port: 0)
        let guarded = try await GuardedService()
        let identity: Principals.CertificateName? = .init("spiffe://example.org/watcher")
        _ = try await guarded.administrator.send(
            CreatePrincipal(
                try GuardedService.name("watcher"), roles: [LimitedRole(.observe, prefixes: every)],
                certificates: [try #require(identity)]))
        guarded.service.stop()
        let encrypted = try TestService(directory: guarded.service.directory) {
            $0.tls = ServerTLSSettings(
                certificatePath: paths.certificate, keyPath: paths.key, clientAuthoritiesPath: authorityPath)
            $0.endpoints = [plain]
        }
        func client(_ uris: [String], key: APIKey? = nil) throws -> RootgateClient {
            let issued = authority.issue(
                CertificatePlan { plan in
                    plan.commonName = "watcher"
                    plan.names = uris.map { .uri($0) } + [.dns("watcher.example")]
                })
            let paths = try issued.write(to: directory.path, as: "client\(UInt64.random(in: 0 ... .max))")
            let options = TLSOptions(
                authoritiesPath: authorityPath, certificatePath: paths.certificate, keyPath: paths.key)
            return try RootgateClient(
                Endpoint(host: "localhost", port: encrypted.endpoint.port),
                configuration: .init(requestTimeout: patience, tls: options, key: key))
        }
        _ = try await client(["spiffe://example.org/watcher"]).statistics()
        for others in [
            [], ["spiffe://example.org/watcher/x"], ["spiffe://example.org/watche"], ["spiffe://example.com/watcher"],
            ["spiffe://example.org/watcher", "spiffe://example.org/other"],
        ] {
            #expect(await code { _ = try await client(others).statistics() } == .roleMissing, "\(others)")
        }
        let administrator = try client(["spiffe://example.org/watcher"], key: guarded.administratorKey)
        #expect(await code { _ = try await administrator.statistics() } == .roleMissing)
        let other = APIKey.random()
        _ = try await administrator.send(
            CreatePrincipal(
                try GuardedService.name("z"), roles: [LimitedRole(.observe, prefixes: every)],
                key: NewKey(KeyHash(other))))
        let both = try client(["spiffe://example.org/watcher"], key: other)
        _ = try await both.statistics()
        _ = try await administrator.send(RemovePrincipal(try GuardedService.name("z")))
        #expect(await code { _ = try await both.statistics() } == .roleMissing)
        let listed = try await administrator.send(ListPrincipals()).principals
        #expect(listed.map(\.name.text) == ["root", "watcher"])
        #expect(listed[1].lastUsedAt != nil)
    }

    @Test("An administrator is created in a data directory that no service has open, and in no other one")
    func offline() async throws {
        let directory = ScratchDirectory()
        let data = directory.path + "/data"
        let key = APIKey.random()
        let request = CreatePrincipal(
            try GuardedService.name("root"), roles: [LimitedRole(.administer, prefixes: every)],
            key: NewKey(KeyHash(key)))
        #expect(try OfflinePrincipals.send(request, dataDirectory: data).changed == 1)
        let service = try TestService(directory: directory)
        #expect(
            thrownServiceError { _ = try OfflinePrincipals.send(request, dataDirectory: data) }?.code == .storageInUse)
        #expect(await code { _ = try await service.client().statistics() } == .roleMissing)
        let client = try RootgateClient(service.endpoint, configuration: .init(requestTimeout: patience, key: key))
        #expect(try await client.send(ListPrincipals()).principals.map(\.name.text) == ["root"])
    }

    @Test("The mutation identifiers of one principal mean nothing to another one")
    func identifiers() async throws {
        let guarded = try await GuardedService()
        let identifier = MutationIdentifier.random()
        let account = try #require(Account("ana"))
        for name in ["one", "two"] {
            let client = try guarded.client(
                try await guarded.principal(name, [LimitedRole(.collaborate, prefixes: every)]))
            let isAllowed = name == "one"
            let receipt = try await client.send(
                SetConsent(of: account, .everything, isAllowed: isAllowed), identifier: identifier)
            #expect(receipt.changed == 1)
        }
        let observer = try guarded.client(
            try await guarded.principal("observer", [LimitedRole(.observe, prefixes: every)]))
        let logged = Set(try await observer.changes(after: 0).items.map { "\($0.mutation.identifier)" })
        for name in ["one", "two"] {
            let caller = Array(ReferenceSHA256.hash(Array("principal \(name)".utf8)).prefix(16))
            let own = withUnsafeBytes(of: identifier.value.littleEndian) { Array($0) }
            let content: [UInt8] = caller + own + [2, 0x61, 0x6e, 0x61]
            let expected = ReferenceSHA256.hash(content).prefix(16)
            #expect(logged.contains(Array(expected).hexadecimal))
        }
    }

    @Test("The mutation identifiers of one principal mean nothing to another one, outside of the layer either")
    func identifiersOutsideTheLayer() async throws {
        let guarded = try await GuardedService()
        let roles = [LimitedRole(.enrol, prefixes: every), LimitedRole(.observe, prefixes: every)]
        let keys = [try await guarded.principal("one", roles), try await guarded.principal("two", roles)]
        let (one, two) = (try guarded.client(keys[0]), try guarded.client(keys[1]))
        let deck = try #require(CollaborationIdentifier("b/x"))
        let digest = try #require(Digest(Array(ReferenceSHA256.hash([1]))))
        try await two.createCollaboration(deck)
        try await two.addRoots([digest], to: deck)
        let identifier = MutationIdentifier.random()
        let creation = Mutation(
            identifier: identifier, .createCollaboration(try #require(CollaborationIdentifier("a/q")), .challenge))
        let first = try await one.apply(creation)
        let removal = Mutation(identifier: identifier, .removeRoots(deck, [digest]))
        #expect(try await two.apply(removal).changed == 1)
        #expect(try await two.testRoots([digest], in: deck) == [false])
        // Each gets its own first receipt, on another connection and after a restart, too.
        #expect(try await guarded.client(keys[0]).apply(creation).isRepeat)
        try guarded.service.restart()
        let again = try await guarded.client(keys[0]).apply(creation)
        #expect(again == MutationReceipt(sequence: first.sequence, changed: 1, isRepeat: true))
        #expect(await code { _ = try await guarded.client(keys[0]).apply(removal) } == .mutationConflict)
        let logged = try await guarded.client(keys[0]).changes(after: 0).items.map { "\($0.mutation.identifier)" }
        for name in ["one", "two"] {
            let caller = Array(ReferenceSHA256.hash(Array("principal \(name)".utf8)).prefix(16))
            let own = withUnsafeBytes(of: identifier.value.littleEndian) { Array($0) }
            #expect(logged.contains(Array(ReferenceSHA256.hash(caller + own + [0]).prefix(16)).hexadecimal))
        }
    }

    @Test("A mutation that has the identifier of a request of the layer in the log does not keep it from being made")
    func claimedIdentifiers() async throws {
        let service = try TestService()
        let client = try service.client()
        let identifier = MutationIdentifier.random()
        let own = withUnsafeBytes(of: identifier.value.littleEndian) { Array($0) }
        let derived = ReferenceSHA256.hash([UInt8](repeating: 0, count: 16) + own + [2, 0x61, 0x6e, 0x61]).prefix(16)
        let claimed = MutationIdentifier(derived.reversed().reduce(UInt128(0)) { $0 << 8 | UInt128($1) })
        let deck = try #require(CollaborationIdentifier("deck"))
        _ = try await client.apply(Mutation(identifier: claimed, .createCollaboration(deck, .challenge)))
        let account = try #require(Account("ana"))
        let receipt = try await client.send(
            SetConsent(of: account, .everything, isAllowed: true), identifier: identifier)
        #expect(receipt.changed == 1)
    }
}
