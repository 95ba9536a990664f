import Cluster
import Core
import Etcd
import EtcdTestSupport
import Identity
import Principals
import RootgateClient
import Secrets
import Server
import ServiceTestSupport
import TestSupport
import Testing
import Wire

@Suite("Services of a cluster", .serialized, .enabled(if: etcd != nil, "there is no program etcd"))
struct ClusterServiceTests {
    /// The code of what `body` throws; `nil` when it does not.
    private func code(of body: () async throws -> Void) async -> ServiceError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? ServiceError)?.code
        }
    }

    /// The bytes 16 to 23 of a challenge.
    private func issuer(of challenge: [UInt8]) -> UInt64 {
        challenge[16..<24].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    @Test("A person who is added at one service opens at the other, and is refused there when removed")
    func membership() async throws {
        let cluster = try TestCluster()
        let clients = try cluster.clients()
        let small = try await SmallCollaboration(clients[0])
        func verdict() async throws -> Verdict {
            let proof = try small.person.proof(ofDevice: 0, signing: try await clients[1].challenge())
            return try await clients[1].verify(proof, in: small.collaboration)
        }
        #expect(try await comesTrue { try await verdict() == .granted })
        _ = try await clients[0].removeRoots([small.person.rootHash], from: small.collaboration)
        #expect(try await comesTrue { try await verdict() == .notParticipant })
    }

    @Test("A challenge is spent where it was issued, and elsewhere nothing is: hello tells whose it is")
    func challenges() async throws {
        let cluster = try TestCluster()
        let clients = try cluster.clients()
        let small = try await SmallCollaboration(clients[0])
        #expect(
            try await comesTrue {
                (try? await clients[1].testRoots([small.person.rootHash], in: small.collaboration)) == [true]
            })
        let challenge = try await clients[0].challenge()
        let proof = try small.person.proof(ofDevice: 0, signing: challenge)
        #expect(try await clients[1].verify(proof, in: small.collaboration) == .challengeElsewhere)
        #expect(try await clients[1].open(proof, in: small.collaboration).verdict == .challengeElsewhere)
        #expect(try await clients[0].verify(proof, in: small.collaboration) == .granted)
        #expect(try await clients[0].verify(proof, in: small.collaboration) == .challengeReplayed)
        #expect(try await clients[1].verify(proof, in: small.collaboration) == .challengeElsewhere)
        for client in clients {
            let number = try await client.hello().limits[15]
            #expect(number == issuer(of: try await client.challenge()))
        }
        #expect(try await clients[0].hello().limits[15] != clients[1].hello().limits[15])
    }

    @Test("A grant of one service is checked by the other, and revoked by a removal at either; followers wake")
    func grants() async throws {
        let cluster = try TestCluster()
        let clients = try cluster.clients()
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        metadata.defaultPermission = .readWrite
        let deck = try await clients[0].send(
            PrepareCollaboration(owner: try #require(Account("olga")), metadata: metadata)
        ).collaborationIdentifier
        let identity = try Person(deviceCount: 1).identity(in: deck)
        let person = PersonIdentity(rootHash: identity.rootHash)
        let added = try await clients[0].send(AddParticipants([NewParticipant(person)], to: deck))
        let proof = try identity.proof(ofDevice: 0, signing: try await clients[0].challenge())
        let opened = try await clients[0].open(proof, in: deck, atLeast: try #require(added.sequence))
        let grant = try #require(opened.grant)
        func status() async throws -> GrantStatus {
            let checks = try await clients[1].check([GrantCheck(grant, in: deck)])
            return try #require(checks.first).status
        }
        #expect(try await comesTrue { try await status() == .valid })
        // A query waits at the second service, and the notice is posted at the first.
        let after = try await clients[1].send(ReadNotices(.collaboration(deck))).next
        async let page = clients[1].send(ReadNotices(.collaboration(deck), after: after, waitMilliseconds: 30_000))
        #expect(becomesTrue { cluster.services[1].service.suspendedQueries == 1 })
        _ = try await clients[0].send(PostNotices([.change(trigger: .edit)], on: deck, by: grant))
        let began = ContinuousClock.now
        #expect(try await page.notices.count == 1)
        #expect(ContinuousClock.now - began < .seconds(20))
        _ = try await clients[0].send(UpdateParticipants(of: deck, removing: [person]))
        #expect(try await comesTrue { try await status() == .revoked })
    }

    @Test("A principal who is removed at one service is nobody at the other, on connections that are open, too")
    func principals() async throws {
        let cluster = try TestCluster()
        let (root, guest) = (APIKey.random(), APIKey.random())
        func client(_ number: Int, _ key: APIKey) throws -> RootgateClient {
            try RootgateClient(
                cluster.services[number].endpoint, configuration: .init(requestTimeout: patience, key: key))
        }
        let everything = [CollaborationPrefix.every]
        _ = try await cluster.services[0].client().send(
            CreatePrincipal(
                try GuardedService.name("root"), roles: [LimitedRole(.administer, prefixes: everything)],
                key: NewKey(KeyHash(root))))
        let administrator = try client(0, root)
        _ = try await administrator.send(
            CreatePrincipal(
                try GuardedService.name("guest"), roles: [LimitedRole(.observe, prefixes: everything)],
                key: NewKey(KeyHash(guest))))
        let anonymous = try cluster.services[1].client()
        #expect(try await comesTrue { await code { _ = try await anonymous.statistics() } == .roleMissing })
        #expect(try await comesTrue { await code { _ = try await client(1, guest).statistics() } == nil })
        let open = try client(1, guest)
        _ = try await open.statistics()
        _ = try await administrator.send(RemovePrincipal(try GuardedService.name("guest")))
        #expect(try await comesTrue { await code { _ = try await open.statistics() } != nil })
    }

    @Test("A removal that is confirmed everywhere is effective everywhere, also when a service was stopped in between")
    func everywhere() async throws {
        let cluster = try TestCluster(services: 3)
        let clients = try cluster.clients()
        let small = try await SmallCollaboration(clients[0])
        let others = [Digest.zero]
        var times: [Duration] = []
        for number in 0..<20 {
            let added = try await clients[0].addRoots([small.person.rootHash], to: small.collaboration)
            let receipt = try await clients[number % 3].removeRoots(
                [small.person.rootHash] + others, from: small.collaboration)
            #expect(receipt.sequence > added.sequence && receipt.changed == 1)
            let began = ContinuousClock.now
            try await clients[(number + 1) % 3].confirmEverywhere(receipt.sequence)
            times.append(ContinuousClock.now - began)
            for client in clients {
                let proof = try small.person.proof(ofDevice: 0, signing: try await client.challenge())
                #expect(try await client.verify(proof, in: small.collaboration) == .notParticipant)
            }
        }
        print("a removal is confirmed everywhere after \(times.sorted()[10]), \(times.max() ?? .zero) at most")
        // A change that nobody has made.
        #expect(await code { try await clients[0].confirmEverywhere(1 << 40) } == .behindSequence)
        // A service that has ended is not waited for.
        let last = try await clients[0].removeRoots(others, from: small.collaboration)
        cluster.services[2].stop()
        try await clients[1].confirmEverywhere(last.sequence)
    }

    @Test("A service that is new, or was away for longer than the log goes back, begins with a snapshot of another one")
    func joining() async throws {
        let keepsLittle: (inout Configuration) -> Void = { $0.logRetentionBytes = 64 << 10 }
        let cluster = try TestCluster(keepsLittle)
        let client = try cluster.services[0].client()
        let small = try await SmallCollaboration(client)
        cluster.services[1].stop()
        var random = SystemRandomNumberGenerator()
        for _ in 0..<80 {
            let roots = try (0..<100).map { _ in
                try #require(Digest((0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }))
            }
            try await client.addRoots(roots, to: small.collaboration)
        }
        let log = OrderedLog(EtcdSession(try EtcdMembers(cluster.etcd.endpoints), first: 0), name: TestCluster.name)
        #expect(
            try await comesTrue {
                guard case .removed = try log.read(from: 1, after: nil, milliseconds: 1000) else { return false }
                return true
            })
        // A service without room for a snapshot does not take what another one says that it has.
        let failure = thrown(StartupFailure.self) {
            try cluster.add {
                ($0.storageBytesMax, $0.storageReserveBytes) = (64 << 10, 64 << 10)
                $0.cluster?.joinMilliseconds = 0
            }
        }
        #expect(
            failure?.description.contains("this storage may have 131072: raise --storage-max") == true,
            "\(failure?.description ?? "")")
        try cluster.add(keepsLittle)
        try cluster.services[1].start()
        for service in cluster.services {
            let peer = try service.client()
            #expect(try await comesTrue { await code { try await peer.ping() } == nil })
            #expect(try await peer.state(of: small.collaboration).rootCount == 8001)
            let proof = try small.person.proof(ofDevice: 0, signing: try await peer.challenge())
            #expect(try await peer.verify(proof, in: small.collaboration) == .granted)
        }
        // They go on together.
        let removed = try await cluster.services[2].client().removeRoots(
            [small.person.rootHash], from: small.collaboration)
        try await cluster.services[1].client().confirmEverywhere(removed.sequence)
        let contents = try cluster.services.map { service in
            try service.service.resources.rootSets.read { snapshot throws(ServiceError) in
                try snapshot.sharedContents()
            }
        }
        #expect(contents[0] != nil && contents[0] == contents[1] && contents[0] == contents[2])
        // The operator's command compares the same.
        let settings = ClusterSettings(cluster.etcd.endpoints, name: TestCluster.name)
        #expect(
            try await comesTrue {
                let report = try ClusterReport(of: settings)
                return report.isComplete && report.services.count == 3
            })
        let report = try ClusterReport(of: settings)
        #expect(report.disagreements.isEmpty && !report.isLogLost && !report.isNothing)
        let unknown = ClusterSettings(cluster.etcd.endpoints, name: try #require(LogName("unknown")))
        #expect(try ClusterReport(of: unknown).isNothing)
        #expect(!report.hasForeignSecrets && report.services.allSatisfy { !$0.isSilent && $0.secondsLeft ?? 0 > 0 })
        #expect(report.services.allSatisfy { $0.record.contents == contents[0].map { "\($0.digest)" } })
    }

    @Test("A storage of another cluster is not replaced by a snapshot of one that a wrong name leads to")
    func otherCluster() async throws {
        let cluster = try TestCluster(services: 1) { $0.logRetentionBytes = 64 << 10 }
        let small = try await SmallCollaboration(try cluster.services[0].client())
        for byte in UInt8(0)..<80 {
            let roots = try (UInt8(0)..<100).map { number in
                try #require(Digest([byte, number] + [UInt8](repeating: 7, count: 30)))
            }
            try await cluster.services[0].client().addRoots(roots, to: small.collaboration)
        }
        let log = OrderedLog(EtcdSession(try EtcdMembers(cluster.etcd.endpoints), first: 0), name: TestCluster.name)
        #expect(try await comesTrue { try log.first(milliseconds: 1000) ?? 0 > 2 })
        let elsewhere = try #require(LogName("elsewhere"))
        try cluster.add { $0.cluster?.name = elsewhere }
        let other = cluster.services[1]
        #expect(try await comesTrue { await code { try await other.client().ping() } == nil })
        let own = try await SmallCollaboration(try other.client(), named: "own")
        let place = other.service.resources.rootSets.sharing?.segment
        other.stop()
        let failure = thrown(StartupFailure.self) {
            _ = try TestService(directory: other.directory) {
                var settings = ClusterSettings(cluster.etcd.endpoints, name: TestCluster.name)
                settings.peers = ClusterSettings.Peers(address: other.endpoint, tls: nil)
                settings.joinMilliseconds = 0
                ($0.cluster, $0.secretPath) = (settings, cluster.secretPath)
            }
        }
        #expect(failure?.description.contains("is --cluster-name right?") == true, "\(failure?.description ?? "")")
        try other.start()
        #expect(try await comesTrue { await code { try await other.client().ping() } == nil })
        #expect(try await other.client().state(of: own.collaboration).rootCount == 1)
        #expect(other.service.resources.rootSets.sharing?.segment ?? 0 >= place ?? 0)
        // Who begins with a snapshot asks the next service when the first one's is of another cluster.
        let session = EtcdSession(try EtcdMembers(cluster.etcd.endpoints), first: 0)
        let record =
            "{\"segment\":99999,\"sequence\":0,\"founding\":\"\(Digest.zero)\",\"address\":\"\(other.endpoint)\"}"
        try session.put(
            Array("rootgate/\(TestCluster.name)/gate/stranger".utf8), Array(record.utf8),
            lease: try session.beginLease(seconds: 60, milliseconds: 5000), milliseconds: 5000)
        let words = Shared<[String]>([])
        try cluster.add(waiting: words)
        let joined = try cluster.services[2].client()
        #expect(try await comesTrue { await code { try await joined.ping() } == nil })
        #expect(try await joined.state(of: small.collaboration).rootCount == 8001)
        let sources = [other, cluster.services[0]].flatMap { service in
            ["getting", "restoring"].map { "\($0) a snapshot of \(service.endpoint)" }
        }
        #expect(words.value == sources)
    }

    @Test("When etcd has lost everything, services say so until the log goes on behind the one that has most")
    func lost() async throws {
        let cluster = try TestCluster { $0.cluster?.stalenessMilliseconds = 500 }
        let clients = try cluster.clients()
        let small = try await SmallCollaboration(clients[0])
        try await clients[0].confirmEverywhere(
            try await clients[0].addRoots([Digest.zero], to: small.collaboration).sequence)
        // The second one has less.
        cluster.services[1].stop()
        try await clients[0].addRoots([try #require(Digest([UInt8](repeating: 1, count: 32)))], to: small.collaboration)
        var settings = ClusterSettings(cluster.etcd.endpoints, name: TestCluster.name)
        let used = thrown(ServiceError.self) {
            _ = try ClusterReport.restartLog(of: settings, behind: cluster.services[0].directory.path + "/data")
        }
        #expect(used?.code == .storageInUse)
        // It has less, but the log is not empty.
        let present = thrown(ServiceError.self) {
            _ = try ClusterReport.restartLog(of: settings, behind: cluster.services[1].directory.path + "/data")
        }
        #expect(present?.reason.contains("is not empty") == true, "\(present?.reason ?? "")")
        try cluster.etcd.loseEverything()
        #expect(try await comesTrue { await code { try await clients[0].ping() } == .stale })
        settings.endpoints = cluster.etcd.endpoints
        #expect(try await comesTrue { try ClusterReport(of: settings).isLogLost })
        cluster.services[0].stop()
        let directory = cluster.services[0].directory.path + "/data"
        let number = try ClusterReport.restartLog(of: settings, behind: directory)
        #expect(number > 3)
        // It is done once.
        #expect(throws: ServiceError.self) { try ClusterReport.restartLog(of: settings, behind: directory) }
        for service in cluster.services { try service.start() }
        for client in clients {
            #expect(try await comesTrue { await code { try await client.ping() } == nil })
            #expect(try await client.state(of: small.collaboration).rootCount == 3)
        }
        let removed = try await clients[1].removeRoots([small.person.rootHash], from: small.collaboration)
        try await clients[0].confirmEverywhere(removed.sequence)
        let proof = try small.person.proof(ofDevice: 0, signing: try await clients[0].challenge())
        #expect(try await clients[0].verify(proof, in: small.collaboration) == .notParticipant)
    }

    @Test("A snapshot is only for those who have the cluster's secret")
    func strangers() async throws {
        let cluster = try TestCluster(services: 1)
        let client = try cluster.clients()[0]
        let token = [UInt8](repeating: 0, count: SnapshotRequest.tokenBytes)
        let request = SnapshotRequest(token: token, identifier: 0, offset: 0)
        #expect(await code { _ = try await client.readSnapshot(request) } == .roleMissing)
        let service = try TestService()
        let lone = try service.client()
        #expect(await code { _ = try await lone.readSnapshot(request) } == .unknownOperation)
    }

    @Test("A snapshot ends where it ends, and a piece of another one, or behind the end, is refused")
    func pieces() async throws {
        let cluster = try TestCluster(services: 2)
        let client = try cluster.clients()[0]
        func token(of service: TestService, at address: Endpoint? = nil) async throws -> [UInt8] {
            let issuer = try #require(try await service.client().hello().limits[15])
            let key = try SecretFile(path: cluster.secretPath).load().current.authenticator(for: .snapshots)
            return ClusterSettings.Peers.message(for: issuer, at: address ?? service.endpoint)
                .withUnsafeBytes { key.tag(of: $0).bytes }
        }
        let own = try await token(of: cluster.services[0])
        func piece(_ identifier: UInt64, _ offset: UInt64) async throws -> SnapshotPiece {
            try await client.readSnapshot(SnapshotRequest(token: own, identifier: identifier, offset: offset))
        }
        let first = try await piece(0, 0)
        #expect(UInt64(first.bytes.count) == min(first.size, UInt64(Limits.snapshotPieceBytes)))
        #expect(try await piece(first.identifier, first.size).bytes.isEmpty)
        #expect(await code { _ = try await piece(first.identifier, first.size + 1) } == .malformedRequest)
        #expect(await code { _ = try await piece(first.identifier, .max) } == .malformedRequest)
        #expect(await code { _ = try await piece(first.identifier ^ 1, 0) } == .busy)
        // A token for one service says nothing to another one.
        let other = try await token(of: cluster.services[1])
        let stolen = SnapshotRequest(token: other, identifier: 0, offset: 0)
        #expect(await code { _ = try await client.readSnapshot(stolen) } == .roleMissing)
        // Nor does one that somebody else has got by giving the service's number for its own.
        let relayed = SnapshotRequest(
            token: try await token(of: cluster.services[0], at: cluster.services[1].endpoint), identifier: 0, offset: 0)
        #expect(await code { _ = try await client.readSnapshot(relayed) } == .roleMissing)
    }

    @Test("Collaborations with device nonces are created only where the operator has said so")
    func nonces() async throws {
        let cluster = try TestCluster(services: 1)
        try cluster.add { $0.cluster?.allowsNonces = true }
        let clients = try cluster.clients()
        let deck = try #require(CollaborationIdentifier("deck"))
        let policy = ProofPolicy.deviceNonce(windowSeconds: 60)
        #expect(await code { try await clients[0].createCollaboration(deck, policy: policy) } == .policyRefused)
        #expect(
            try await comesTrue { await code { try await clients[1].createCollaboration(deck, policy: policy) } == nil }
        )
    }

    @Test("Without etcd a service says stale to everything that others may have changed, and recovers by itself")
    func withoutEtcd() async throws {
        let cluster = try TestCluster(services: 1) { $0.cluster?.stalenessMilliseconds = 500 }
        let client = try cluster.clients()[0]
        let small = try await SmallCollaboration(client)
        let proofs = try await small.proofs(2)
        cluster.etcd.kill(0)
        #expect(try await comesTrue { await code { try await client.ping() } == .stale })
        let first = proofs[0].proof
        #expect(await code { _ = try await client.verify(first, in: small.collaboration) } == .stale)
        #expect(await code { _ = try await client.open(first, in: small.collaboration) } == .stale)
        #expect(await code { _ = try await client.roots(of: small.collaboration) } == .stale)
        #expect(await code { _ = try await client.send(ReadNotices(.collaboration(small.collaboration))) } == .stale)
        let roots = [small.person.rootHash]
        #expect(await code { _ = try await client.removeRoots(roots, from: small.collaboration) } == .stale)
        // What depends on nobody else goes on.
        _ = try await client.challenges(3)
        let figures = try await client.statistics()
        #expect(figures.first { $0.name == "cluster-behind-milliseconds" }.map { $0.value > 500 } == true)
        #expect(figures.first { $0.name == "cluster-segment" }.map { $0.value > 2 } == true)
        try cluster.etcd.start(0)
        #expect(try await comesTrue { await code { try await client.ping() } == nil })
        // Nothing was spent.
        #expect(try await client.verify(first, in: small.collaboration) == .granted)
    }

    @Test("A client of several services leaves one that is stale")
    func leaving() async throws {
        let cluster = try TestCluster(services: 1) { $0.cluster?.stalenessMilliseconds = 500 }
        let other = try TestService()
        let client = try RootgateClient(
            [cluster.services[0].endpoint, other.endpoint], configuration: .init(requestTimeout: patience))
        let deck = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(deck)
        #expect(try await cluster.clients()[0].collaborations().items.map(\.identifier) == [deck])
        cluster.etcd.kill(0)
        let lone = try cluster.clients()[0]
        #expect(try await comesTrue { await code { try await lone.ping() } == .stale })
        // So does one that verifies, on a connection of its own: the other service knows no such collaboration.
        let verifier = try RootgateClient(
            [cluster.services[0].endpoint, other.endpoint], configuration: .init(requestTimeout: patience))
        let proof = try Person(deviceCount: 1).identity(in: deck).proof(
            ofDevice: 0, signing: try await lone.challenge())
        #expect(try await verifier.verify(proof, in: deck) == .unknownCollaboration)
        try await client.ping()
        #expect(try await client.collaborations().items.isEmpty)
        // A client with that address alone is told.
        #expect(await code { _ = try await lone.collaborations() } == .stale)
    }

    @Test(
        "A service of a cluster needs the cluster's secret, and does not send changes as plain text to other machines")
    func configurations() throws {
        var configuration = Configuration(dataDirectory: ScratchDirectory().path, workers: 1)
        let name = try #require(LogName("services"))
        configuration.cluster = ClusterSettings([Endpoint(host: "127.0.0.1", port: 1)], name: name)
        let secretless = thrown(StartupFailure.self) { try Service.check(configuration) }
        #expect(secretless?.description.contains("--secret-file") == true)
        configuration.secretPath = "/nowhere"
        configuration.cluster = ClusterSettings([Endpoint(host: "192.0.2.1", port: 1)], name: name)
        let open = thrown(StartupFailure.self) { try Service.check(configuration) }
        #expect(open?.description.contains("nothing is encrypted") == true)
    }
}
