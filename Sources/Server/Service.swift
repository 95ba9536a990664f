import Audit
import Cluster
import Collaboration
package import Core
import Dispatch
import Etcd
package import Foundation
import Hashing
import Platform
import RootSets
import Secrets
import Signatures
import Synchronization
import TLS
package import Transport
package import Verification
import Wire

/// A running gate: makes and starts storage, workers and sockets, and shuts them down.
package final class Service: Sendable {
    package static let version = "0.1.0"

    /// The path of the apple-app-site-association page, which tells which apps open the links.
    package static let associationPath = AssociationSite.path

    /// The paths of the operator's pages.
    package static let operatorPaths = OperatorSite.paths

    /// Those that show collaborations, people and principals.
    package static let recordPaths = ConsoleSite.recordPaths

    /// How a shutdown ended.
    package enum Ending: Sendable {
        /// Every accepted request was answered.
        case drained
        /// The deadline came first.
        case forced
    }

    /// What the verifiers share; for embedding and benchmarks.
    package let resources: VerificationResources
    /// The verifiers; for embedding and benchmarks.
    package let pool: WorkerPool
    private let sockets: Sockets
    private let admission: Admission
    private let statistics: StatisticsSource
    private let collaboration: CollaborationLayer
    private let configuration: Configuration
    private let secrets: ServiceSecrets
    private let durableClock: DurableClock
    private let housekeeping: RepeatingTimer
    private let places: Places
    private let pipeline: Pipeline
    private let audit: AuditTrail?
    /// `nil` unless there is an audit.
    let undecided: UndecidedLines?
    private let principals: PrincipalTable
    /// `nil` unless the operator's pages are served or a supervisor wants signs of life.
    private let watch: ServiceWatch?
    /// `nil` unless the operator's pages are served.
    private let history: ServiceHistory?
    private let hasEnded = Atomic<Bool>(false)
    private let drain: Atomic<UInt64>

    /// Opens the storage, starts the threads and listens. The service calls `log` with messages of one line, and
    /// `beforeServing` when everything is open and no connection was accepted: then it may give up privileges. It calls
    /// `onStorageLoss`, on any thread, when only another process can open the storage again; until then it refuses what
    /// needs the storage. It calls `onWait` while the start gets a snapshot. With a watchdog it calls `onOwnProof`
    /// several times in each of its periods, but only while workers verify proofs of the service's own rightly.
    /// `surroundings`: for simulations.
    ///
    /// Throws the reason why it can't start; then no thread of it runs and it does not listen.
    package init(
        _ configuration: Configuration, clock: MonotonicClock = .system, random: RandomSource = .system,
        wallClock: @escaping @Sendable () -> Date = { Date() }, surroundings: Surroundings = .system,
        log: Log = .none, onStorageLoss: @escaping @Sendable () -> Void = {},
        onOwnProof: @escaping @Sendable () -> Void = {}, onWait: StartExtension = .none,
        beforeServing: () throws(StartupFailure) -> Void = {}
    ) throws(StartupFailure) {
        let configuration = try Service.withSharedSecret(configuration)
        self.configuration = configuration
        drain = Atomic(configuration.times.drain)
        let site = try Service.checkOptions(configuration)
        let tracer = try Service.makeTracer(configuration, log)
        let rootSets = try Service.openStorage(configuration, surroundings.storage, log, onStorageLoss, onWait)
        (secrets, durableClock) = try Service.openSecrets(configuration, rootSets, clock, wallClock, random, log)
        audit = try AuditTrail.open(configuration, rootSets, secrets, wallClock, log)
        principals = try Service.readPrincipals(configuration, rootSets, audit, wallClock, durableClock, clock, random)
        undecided = audit.map { UndecidedLines(rootSets, $0) }
        let storage = AuditedStorage(
            rootSets: rootSets, principals: principals, trail: audit, undecided: undecided,
            allowsNonces: configuration.cluster?.allowsNonces ?? true)
        resources = Service.makeResources(configuration, rootSets, secrets, clock, random, log)
        do throws(ServiceError) {
            // The event loops' threads are its workers, so it starts no thread of its own.
            pool = try WorkerPool(resources, workerCount: 0, waitingItemsMax: configuration.waitingProofsMax)
        } catch {
            rootSets.close()
            audit?.close()
            throw StartupFailure.outOfResources(error.reason)
        }
        let sockets: Sockets
        do throws(StartupFailure) {
            sockets = try Service.openSockets(configuration, clock, surroundings.makeLoop, beforeServing, log)
        } catch {
            pool.close()
            rootSets.close()
            audit?.close()
            throw error
        }
        self.sockets = sockets
        admission = Admission(log: log)
        collaboration = CollaborationLayer(
            resources, storage, pool, configuration.collaboration,
            grants: GrantBook(
                validMilliseconds: configuration.grantSeconds * 1000, clock: durableClock.clock, keys: secrets.grants),
            queries: SuspendedQueries(
                clock: clock, timers: surroundings.timers, suspensionsMax: configuration.followsMax,
                topicsMax: configuration.followedTopicsMax),
            lagging: rootSets.sharesLog ? LaggingRequests(clock: clock, timers: surroundings.timers) : nil,
            clock: clock, wallClock: wallClock, random: random)
        statistics = StatisticsSource(
            resources, pool, admission, sockets.memory, collaboration.queries, principals.refusals, secrets.shared,
            clock)
        places = Places(configuration)
        pipeline = Pipeline(
            resources: resources, principals: principals, storage: storage, pool: pool, admission: admission,
            statistics: statistics, collaboration: collaboration, confirmations: Confirmations(),
            snapshots: Service.makeSnapshots(
                configuration, resources, secrets, durableClock.clock, clock, surroundings.timers, log),
            timers: surroundings.timers, tracer: tracer,
            meter: configuration.servesOperator ? RequestMeter(date: wallClock) : nil)
        Service.hearOthers(rootSets, principals, collaboration)
        audit?.begin()
        do throws(ServiceError) {
            try sockets.start(serving: pipeline, site, places, log: log)
        } catch {
            pool.close()
            rootSets.close()
            audit?.close()
            throw StartupFailure.outOfResources(error.reason)
        }
        (watch, history) = sockets.beginWatch(
            configuration, pipeline, clock, wallClock, random, surroundings.timers, onOwnProof: onOwnProof, log: log)
        housekeeping = Service.keepHouse(secrets, durableClock, surroundings.timers)
        undecided?.start(surroundings.timers)
        if !principals.isConfigured { log(.warning, Service.openness(configuration)) }
    }

    /// Looks after the secret and the durable clock from now on.
    private static func keepHouse(
        _ secrets: ServiceSecrets, _ durableClock: DurableClock, _ timers: Timers
    ) -> RepeatingTimer {
        timers.every(milliseconds: Limits.clockStoredSeconds * 1000, leeway: 1000) {
            secrets.maintain()
            durableClock.store()
        }
    }

    /// The configuration with what a service of a cluster shows and tells the others of the secret.
    private static func withSharedSecret(_ configuration: Configuration) throws(StartupFailure) -> Configuration {
        guard let path = configuration.secretPath, var cluster = configuration.cluster else { return configuration }
        let secret: RootSecret
        do throws(SecretFailure) {
            secret = try SecretFile(path: path).load()
        } catch {
            throw StartupFailure.secret(error)
        }
        do throws(ServiceError) {
            cluster.peers?.key = try secret.current.authenticator(for: .snapshots)
        } catch {
            throw StartupFailure.outOfResources(error.reason)
        }
        cluster.secret = SecretNames(secret.generations.map(\.name))
        var configuration = configuration
        configuration.cluster = cluster
        return configuration
    }

    private static func makeSnapshots(
        _ configuration: Configuration, _ resources: VerificationResources, _ secrets: ServiceSecrets,
        _ durable: MonotonicClock, _ clock: MonotonicClock, _ timers: Timers, _ log: Log
    ) -> SnapshotStore? {
        guard let cluster = configuration.cluster else { return nil }
        let message = cluster.peers.map {
            ClusterSettings.Peers.message(for: resources.challenges.epoch, at: $0.address)
        }
        return SnapshotStore(
            resources.rootSets, directory: configuration.dataDirectory, keys: secrets.snapshots, message: message,
            clock: clock, timers: timers, log: log
        ) { [rootSets = resources.rootSets] file throws(ServiceError) in
            try rootSets.backUp(to: file, time: durable.milliseconds).bytes
        }
    }

    /// From now on changes that other services of the cluster have made replace the table of principals, and wake the
    /// queries and requests that wait for them.
    private static func hearOthers(_ rootSets: RootSets, _ principals: PrincipalTable, _ layer: CollaborationLayer) {
        guard rootSets.sharesLog else { return }
        rootSets.onApplied {
            [weak principals, weak queries = layer.queries, weak lagging = layer.lagging] others, own, last in
            // Those that were made here have to be known, too, before others hear that they are.
            let changesPrincipals = { (changes: [Change]) in changes.contains(where: \.changesPrincipals) }
            if changesPrincipals(others) || changesPrincipals(own) { principals?.reload() }
            let topics = Set(others.flatMap { Topic.changed(by: $0) })
            if !topics.isEmpty { queries?.notify(Array(topics)) }
            lagging?.progress(to: last)
        }
        rootSets.onNews { [weak lagging = layer.lagging] in lagging?.news(asOf: $0) }
        // Some may have been applied since the table was read.
        principals.reload()
    }

    /// Opens the sockets, and calls `beforeServing` behind that.
    private static func openSockets(
        _ configuration: Configuration, _ clock: MonotonicClock, _ makeLoop: EventLoop.Maker,
        _ beforeServing: () throws(StartupFailure) -> Void, _ log: Log
    ) throws(StartupFailure) -> Sockets {
        let sockets = try Sockets(configuration, clock, makeLoop, log: log)
        do throws(StartupFailure) {
            try beforeServing()
        } catch {
            sockets.closeListeners()
            throw error
        }
        return sockets
    }

    private static func readPrincipals(
        _ configuration: Configuration, _ rootSets: RootSets, _ audit: AuditTrail?,
        _ date: @escaping @Sendable () -> Date, _ durableClock: DurableClock, _ clock: MonotonicClock,
        _ random: RandomSource
    ) throws(StartupFailure) -> PrincipalTable {
        do throws(ServiceError) {
            return try PrincipalTable(
                rootSets, trail: audit, date: date, expiryClock: durableClock.clock, clock: clock, random: random)
        } catch {
            rootSets.close()
            audit?.close()
            throw StartupFailure.storage(directory: configuration.dataDirectory, error)
        }
    }

    /// One line about what connections may do while there is no principal.
    private static func openness(_ configuration: Configuration) -> String {
        let others =
            (configuration.endpoints + configuration.inheritedEndpoints(for: .clients)).allSatisfy(\.isLoopback)
            ? "" : ", and connections from elsewhere nothing but hello, ping and read snapshot"
        return "no principal is configured: every connection from this machine may do everything\(others) "
            + "(rootgate keys create makes the first principal)"
    }

    private static func makeResources(
        _ configuration: Configuration, _ rootSets: RootSets, _ secrets: ServiceSecrets, _ clock: MonotonicClock,
        _ random: RandomSource, _ log: Log
    ) -> VerificationResources {
        // From here on the loops' threads read, and each has many connections.
        rootSets.health.boundsWaits = true
        for failure in BatchHashing.standard.failures {
            log(.critical, "a hashing kernel failed its self-test (\(failure)); others or OpenSSL hash instead")
        }
        return VerificationResources(
            rootSets: rootSets,
            challenges: ChallengeBook(
                keys: secrets.challenges, validMilliseconds: configuration.challengeSeconds * 1000,
                replayBytesMax: configuration.replayBytesMax, clock: clock, random: random),
            nonces: NonceMemory(entriesMax: configuration.noncesMax, clock: clock, random: random),
            signatures: SignatureEngine(configuration.signatures, log: log),
            slowPasses: configuration.slowMilliseconds.map { milliseconds in
                SlowPassLog(
                    milliseconds: milliseconds, now: { DispatchTime.now().uptimeNanoseconds },
                    log: log)
            }, metersPasses: configuration.servesOperator,
            sample: configuration.sampledProofs > 0
                ? ProofSample(capacity: configuration.sampledProofs, clock: clock) : nil)
    }

    /// Reads the root secret and the durable clock of the data directory, whose lock the storage holds.
    private static func openSecrets(
        _ configuration: Configuration, _ rootSets: RootSets, _ clock: MonotonicClock,
        _ date: @escaping @Sendable () -> Date, _ random: RandomSource, _ log: Log
    ) throws(StartupFailure) -> (ServiceSecrets, DurableClock) {
        do throws(StartupFailure) {
            let collaborations = try? rootSets.read { snapshot throws(ServiceError) in
                try snapshot.statistics().collaborations
            }
            // A directory in which principals were made offline has neither: no secret was lost there.
            let hasServed =
                DurableClock.isStored(in: configuration.dataDirectory) || collaborations ?? 0 > 0
            // A generation that has ended does not come back with the date either.
            let follower = Lock<DurableClock?>(nil)
            let stored: UInt64
            do throws(SystemFailure) {
                stored = try DurableClock.storedTime(in: configuration.dataDirectory)
            } catch {
                throw StartupFailure.clock(directory: configuration.dataDirectory, error)
            }
            let latest: @Sendable () -> Date = {
                let milliseconds = follower.withLock { $0 }?.milliseconds ?? stored
                return max(date(), Date(timeIntervalSince1970: Double(milliseconds) / 1000))
            }
            let secrets = try ServiceSecrets(
                configuration, hasServed: hasServed, date: latest, random: random, log: log)
            do throws(SystemFailure) {
                let durable = try DurableClock(
                    dataDirectory: configuration.dataDirectory, elapsed: clock, date: date)
                if hasServed, durable.hadNone {
                    log(
                        .warning,
                        "the file \(DurableClock.fileName) was missing or damaged: see that the date is right; if it "
                            + "was set back, what had expired may be valid again")
                }
                let behind = Double(durable.milliseconds) / 1000 - date().timeIntervalSince1970
                if !durable.hadNone, behind > Double(Limits.clockStoredSeconds) {
                    log(
                        .warning,
                        "the date is \(Int(behind)) s behind the file \(DurableClock.fileName): see that it is right; "
                            + "what has expired since the service last ran may be valid again")
                }
                durable.store()
                follower.withLock { $0 = durable }
                return (secrets, durable)
            } catch {
                throw StartupFailure.clock(directory: configuration.dataDirectory, error)
            }
        } catch {
            rootSets.close()
            throw error
        }
    }

    private static func openStorage(
        _ configuration: Configuration, _ surroundings: StorageSurroundings,
        _ log: Log, _ onLoss: @escaping @Sendable () -> Void, _ onWait: StartExtension
    ) throws(StartupFailure) -> RootSets {
        if let note = RestoreNote(in: configuration.dataDirectory) {
            guard FileManager.default.fileExists(atPath: configuration.dataDirectory + "/data.mdb") else {
                throw StartupFailure.storage(
                    directory: configuration.dataDirectory,
                    ServiceError(
                        .storageDamaged,
                        "the data file that was restored is missing: restore a backup to another folder"))
            }
            log(.info, "\(note.line) (remove \(configuration.dataDirectory)/\(RestoreNote.fileName) to hide this line)")
        }
        var storage = RootSets.Configuration(
            directory: configuration.dataDirectory, sizeLimitBytes: configuration.storageBytesMax,
            reserveBytes: configuration.storageReserveBytes, logRetentionBytes: configuration.logRetentionBytes)
        storage.workers = configuration.workers
        do throws(ServiceError) {
            guard let cluster = configuration.cluster else {
                return try RootSets(
                    storage, surroundings: surroundings, acceptsLoss: true, shared: surroundings.sharedLog, log: log,
                    onLoss: onLoss)
            }
            return try RootSets(
                storage, of: cluster, surroundings: surroundings, acceptsLoss: true, log: log, onLoss: onLoss,
                onWait: onWait)
        } catch {
            throw StartupFailure.storage(directory: configuration.dataDirectory, error)
        }
    }

    private static func makeTracer(
        _ configuration: Configuration, _ log: Log
    ) throws(StartupFailure) -> RequestTracer? {
        let settings = RequestTracer.Settings(
            slowMilliseconds: configuration.slowMilliseconds, path: configuration.tracePath,
            interval: configuration.traceInterval)
        guard settings.isOn else { return nil }
        do throws(SystemFailure) {
            return try RequestTracer(settings, log: log)
        } catch {
            throw StartupFailure.trace(path: configuration.tracePath ?? "", error.reason)
        }
    }

    /// Checks everything about a configuration that can be checked while a service with the same files runs: memory,
    /// addresses, links, certificates, a named file with the secret. Opens neither the storage nor a listener.
    ///
    /// Throws the reason why a service could not start.
    package static func check(_ configuration: Configuration) throws(StartupFailure) {
        _ = try checkOptions(configuration)
        if let settings = configuration.tls {
            do throws(TLSFailure) {
                _ = try ServerTLS(settings, log: .none)
            } catch {
                throw StartupFailure.certificates(error.description)
            }
        }
        if let cluster = configuration.cluster {
            do throws(ServiceError) {
                _ = try EtcdMembers(cluster.endpoints, tls: cluster.tls, credentials: cluster.credentials)
            } catch {
                throw StartupFailure.certificates(error.reason)
            }
        }
        guard let path = configuration.secretPath else { return }
        do throws(SecretFailure) {
            _ = try SecretFile(path: path).load()
        } catch {
            throw StartupFailure.secret(error)
        }
    }

    private static func checkOptions(_ configuration: Configuration) throws(StartupFailure) -> AssociationSite? {
        try MemoryNeed.check(configuration)
        try checkHosts(configuration)
        guard !configuration.showsRecords || configuration.servesOperator else {
            throw StartupFailure.consoleWithoutOperator
        }
        try checkLinkBase(configuration)
        try checkCluster(configuration)
        return try configuration.linkBase.map { base throws(StartupFailure) in
            try AssociationSite(linkBase: base, appIdentifiers: configuration.appIdentifiers)
        }
    }

    private static func checkCluster(_ configuration: Configuration) throws(StartupFailure) {
        guard let cluster = configuration.cluster else { return }
        guard configuration.secretPath != nil else { throw StartupFailure.clusterWithoutSecret }
        guard !configuration.allowsPlainText else { return }
        if let peers = cluster.peers, peers.tls == nil, !peers.address.isLoopback {
            throw StartupFailure.plainSnapshots(peers.address)
        }
        guard cluster.tls == nil else { return }
        if let open = cluster.endpoints.first(where: { !$0.isLoopback }) { throw StartupFailure.plainCluster(open) }
    }

    private static func checkLinkBase(_ configuration: Configuration) throws(StartupFailure) {
        guard let base = configuration.linkBase, let reason = CollaborationSettings.fault(ofLinkBase: base) else {
            return
        }
        throw StartupFailure.linkBase(base, reason: reason)
    }

    /// Throws when an address is refused, or when a host has none.
    private static func checkHosts(_ configuration: Configuration) throws(StartupFailure) {
        try checkOverlaps(configuration)
        for endpoint in configuration.allOperatorEndpoints + configuration.allEndpoints.map(\.0) {
            guard let path = endpoint.path else { continue }
            do throws(SystemFailure) {
                try Socket.checkLocalPath(path)
            } catch {
                throw StartupFailure.cannotListen(endpoint, error)
            }
        }
        for endpoint in configuration.allOperatorEndpoints where !endpoint.isLoopback {
            guard configuration.tls != nil else { throw StartupFailure.openOperator(endpoint) }
            try checkHost(of: endpoint)
        }
        for (endpoint, isEncrypted) in configuration.allEndpoints where !endpoint.isLoopback {
            try checkHost(of: endpoint)
            guard isEncrypted || configuration.allowsPlainText else { throw StartupFailure.plainText(endpoint) }
        }
    }

    /// Throws when two addresses are the same port of this machine. Sockets that were handed over are open already.
    private static func checkOverlaps(_ configuration: Configuration) throws(StartupFailure) {
        let endpoints =
            configuration.endpoints + configuration.plainEndpoints + configuration.operatorEndpoints
            + [configuration.associationEndpoint].compactMap { $0 }
        for (index, endpoint) in endpoints.enumerated() {
            guard let other = endpoints[..<index].first(where: { $0.overlaps(endpoint) }) else { continue }
            throw StartupFailure.overlap(other, endpoint)
        }
    }

    private static func checkHost(of endpoint: Endpoint) throws(StartupFailure) {
        do throws(SystemFailure) {
            try Socket.resolve(endpoint)
        } catch {
            throw StartupFailure.unresolved(endpoint, error)
        }
    }

    /// The memory of received frames, requests in work and unread answers, for tests.
    package var memory: MemoryBudget { sockets.memory }

    /// Queries that wait for a change, for tests.
    package var suspendedQueries: Int { collaboration.queries.count }

    /// The addresses at which the service listens, with the actual ports.
    package var endpoints: [Endpoint] { sockets.endpoints }

    /// The addresses of `Configuration.plainEndpoints`, with the actual ports.
    package var plainEndpoints: [Endpoint] { sockets.plainEndpoints }

    /// The addresses that serve the apple-app-site-association page.
    package var associationEndpoints: [Endpoint] { sockets.associationEndpoints }

    /// The addresses of the operator's pages.
    package var operatorEndpoints: [Endpoint] { sockets.operatorEndpoints }

    /// Serves a connection that did not come from a listener. `peer`: who shares memory, places and turns with others.
    package func serve(_ stream: any ByteStream, of peer: Holder) {
        sockets.serve(stream, of: peer, pipeline, places)
    }

    /// Checks grants on this thread: takes the body of the request and returns the body of the answer. For embedding
    /// and benchmarks.
    ///
    /// Throws `malformedRequest`, `limitExceeded`, `behindSequence`, or what the storage throws.
    package func checkGrants(_ body: [UInt8]) throws(ServiceError) -> [UInt8] {
        let request = try body.withRawBytes { bytes throws(ServiceError) in
            try Request.decode(operation: Operation.checkGrants.rawValue, body: bytes)
        }
        guard case .checkGrants(let batch) = request else { throw ServiceError(.internalFault, "it is no check") }
        var answer: [UInt8] = []
        try collaboration.append(checksOf: batch, to: &answer)
        return answer
    }

    /// Reads again what an operator may have replaced: the certificates and the root secret. Begins another file for
    /// the audit. What can't be used stays as it is, and the log says why.
    package func reload() {
        sockets.reloadCertificates()
        secrets.reload()
        audit?.note(.ofService("reload"))
        audit?.beginNewFile()
    }

    /// How long a shutdown waits for requests that were accepted.
    package var drainSeconds: UInt64 { drain.load(ordering: .relaxed) }

    /// Changes how long the service waits for its peers.
    package func change(_ times: ServiceTimes) {
        drain.store(times.drain, ordering: .relaxed)
        sockets.change(times.timeouts)
    }

    /// Does what is due at regular intervals; for tests, which don't wait for them.
    package func maintain() {
        secrets.maintain()
        durableClock.store()
    }

    /// Stops accepting connections and requests and waits until every accepted request is answered. The wait ends early
    /// after the configured time, or when `isForced` returns true. Then closes the connections and stops the threads.
    package func shutDown(isForced: @Sendable () -> Bool = { false }) -> Ending {
        guard !hasEnded.exchange(true, ordering: .relaxed) else { return .drained }
        admission.isDraining.store(true, ordering: .relaxed)
        sockets.stopListening()
        collaboration.close()
        sockets.drain()
        let deadline = ContinuousClock.now + .seconds(Int(drainSeconds))
        while !admission.isIdle || sockets.unsentBytes > 0 {
            guard ContinuousClock.now < deadline, !isForced() else { break }
            usleep(2000)
        }
        let isDrained = admission.isIdle && sockets.unsentBytes == 0
        resources.rootSets.stopCheck()
        if isDrained { sockets.closeConnections(within: .seconds(1)) }
        sockets.stop()
        watch?.stop()
        history?.stop()
        housekeeping.cancelAndWait()
        durableClock.store()
        if isDrained {
            pool.close()
            resources.rootSets.close()
        }
        undecided?.close()
        // Otherwise changes may be durable whose lines never come.
        let sequence = try? resources.rootSets.read { snapshot throws(ServiceError) in try snapshot.lastSequence() }
        audit?.close(sequence: isDrained && !resources.rootSets.sharesLog ? sequence : nil)
        return isDrained ? .drained : .forced
    }
}

extension Endpoint {
    /// Whether a system can't listen at both, as far as that can be told without resolving names.
    fileprivate func overlaps(_ other: Endpoint) -> Bool {
        guard path == nil, other.path == nil else { return path == other.path }
        guard port == other.port, port != 0 else { return false }
        if host.lowercased() == other.host.lowercased() { return true }
        let (ours, theirs) = (addresses, other.addresses)
        return ours.contains { our in theirs.contains { our == $0 || our.isWildcard(of: $0) || $0.isWildcard(of: our) }
        }
    }

    /// The addresses of the host as far as they are known without asking; none of any other name.
    private var addresses: [String] {
        if host.lowercased() == "localhost" { return ["127.0.0.1", "::1"] }
        let isAddress = host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." }
        return isAddress ? [host.lowercased()] : []
    }
}

extension String {
    /// Whether this address stands for all of the other's kind. Listeners of IPv6 take no connection of IPv4.
    fileprivate func isWildcard(of other: String) -> Bool {
        self == "::" && other.contains(":") || self == "0.0.0.0" && !other.contains(":")
    }
}

extension Configuration {
    /// Every address, and whether it is encrypted.
    fileprivate var allEndpoints: [(Endpoint, Bool)] {
        let associations = [associationEndpoint].compactMap { $0 } + inheritedEndpoints(for: .association)
        return (endpoints + inheritedEndpoints(for: .clients)).map { ($0, tls != nil) }
            + (plainEndpoints + associations).map { ($0, false) }
    }

    fileprivate var collaboration: CollaborationSettings {
        var settings = CollaborationSettings()
        settings.linkBase = linkBase
        settings.noticeSeconds = Double(noticeDays) * 24 * 3600
        settings.noticeCount = noticesKept
        return settings
    }

    fileprivate var signatures: SignatureEngine.Configuration {
        var signatures = SignatureEngine.Configuration()
        signatures.usesKernels = usesSignatureKernels
        signatures.vetsLater = vetsKernelsLater
        signatures.knownKeyBytesMax = knownKeyBytesMax
        signatures.sampleInterval = crossCheckInterval
        return signatures
    }
}
