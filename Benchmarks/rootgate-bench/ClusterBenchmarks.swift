import Cluster
import Core
import Dispatch
import Foundation
import LoadHarness
import RootSets
import RootgateClient
import Server
import Transport

let clusterBenchmarks = [
    Benchmark("cluster.mutations", "durable adds of one root by three services of a cluster", seconds: 30) { scale in
        try mutationsInCluster(scale)
    },
    Benchmark(
        "cluster.traffic", "bytes that etcd receives and sends for a durable add of one root, with three services",
        seconds: 10
    ) { scale in
        try trafficOfCluster(scale)
    },
    Benchmark(
        "cluster.removal", "from a removal at one of three services until all of them refuse the person", seconds: 20
    ) { scale in
        try removalInCluster(scale)
    },
    Benchmark(
        "cluster.join", "a new service of a cluster with 10 M roots begins with a snapshot, until it answers",
        seconds: 400, setUpShare: 0.7
    ) { scale in
        try joiningCluster(scale)
    },
    Benchmark(
        "cluster.proofs", "processor time of a service of a cluster for one proof by a known key, one a request",
        seconds: 60
    ) { scale in
        try proofsInCluster(scale)
    },
]

private let membersText = "\(BenchCluster.members) members of etcd on the same machine"

// MARK: Mutations

/// Three storages of a cluster that add one root hash after the other to a collaboration.
private final class GrowingCluster {
    let cluster: BenchCluster
    let clients: Int
    private let storages: [RootSets]
    private let collaboration: CollaborationIdentifier
    private let scale: Scale
    /// The numbers of the next roots of each.
    private var firsts: [Int]

    init(_ scale: Scale) throws {
        self.scale = scale
        clients = scale.size(256, tiny: 4)
        cluster = try BenchCluster()
        storages = try cluster.storages(3)
        firsts = storages.indices.map { $0 << 32 }
        collaboration = try Synthetic.collaboration(0)
        try storages[0].apply(Mutation(.createCollaboration(collaboration, .challenge)))
    }

    deinit { for storage in storages { storage.close() } }

    /// Adds for a while, by so many of the storages. Each client sends its next root hash when the last one is durable.
    func grow(by services: Int) -> (count: Int, seconds: Double) {
        let end = scale.now() + 4 * scale.seconds
        let chains = (0..<services).map { number in
            MutationChain(storages[number], collaboration, first: firsts[number], until: end, now: scale.now)
        }
        let elapsed = seconds {
            let group = DispatchGroup()
            for chain in chains {
                for _ in 0..<clients {
                    group.enter()
                    chain.go { group.leave() }
                }
            }
            group.wait()
        }
        for (number, chain) in chains.enumerated() { firsts[number] += chain.count }
        return (chains.reduce(0) { $0 + $1.count }, elapsed)
    }
}

private func mutationsInCluster(_ scale: Scale) throws -> Measurement {
    let cluster = try GrowingCluster(scale)
    func rate(services: Int) -> Double {
        let (count, elapsed) = cluster.grow(by: services)
        return Double(count) / elapsed
    }
    let rounds = scale.alternate {
        rate(services: 3)
    } _: {
        rate(services: 1)
    }
    return Measurement(
        "cluster.mutations", unit: "mutations/s", rounds: rounds, against: "through one service",
        conditions: "\(cluster.clients) clients of each service, \(membersText)")
}

private func trafficOfCluster(_ scale: Scale) throws -> Measurement {
    let cluster = try GrowingCluster(scale)
    var whole = EtcdTraffic()
    var count = 0
    let values = try scale.repeated {
        let before = try cluster.cluster.traffic()
        let added = cluster.grow(by: 3).count
        let traffic = try cluster.cluster.traffic() - before
        whole = whole + traffic
        count += added
        return (traffic.received + traffic.sent + traffic.betweenMembers) / Double(added)
    }
    func each(_ bytes: Double) -> String { rounded(bytes / Double(count)) }
    return Measurement(
        "cluster.traffic", unit: "bytes/mutation", values: values,
        conditions: "from services \(each(whole.received)), to services \(each(whole.sent)), between members "
            + "\(each(whole.betweenMembers)); \(cluster.clients) clients of each service")
}

// MARK: Removals

private func removalInCluster(_ scale: Scale) throws -> Measurement {
    let cluster = try BenchCluster()
    let storages = try cluster.storages(3)
    let directory = try TemporaryDirectory()
    let alone = try RootSets(RootSets.Configuration(directory: directory.path))
    defer { for storage in storages + [alone] { storage.close() } }
    let collaboration = try Synthetic.collaboration(0)
    let roots = (0..<scale.size(300, tiny: 6)).map { Synthetic.root($0) }
    for storage in [storages[0], alone] {
        try storage.apply(Mutation(.createCollaboration(collaboration, .challenge)))
        try storage.apply(Mutation(.addRoots(collaboration, roots)))
    }
    func has(_ storage: RootSets, _ root: Digest) throws -> Bool {
        try storage.read { snapshot throws(ServiceError) in
            try snapshot.test([root], in: collaboration)?.first ?? false
        }
    }
    try cluster.wait { try storages.allSatisfy { try has($0, roots[0]) } }
    /// Milliseconds until all of them refuse the person.
    func removal(_ root: Digest, at number: Int, of storages: [RootSets]) throws -> Double {
        usleep(UInt32.random(in: 0..<10_000))
        return 1000
            * (try seconds {
                try storages[number].apply(Mutation(.removeRoots(collaboration, [root])))
                try cluster.wait { try storages.allSatisfy { try !has($0, root) } }
            })
    }
    let rounds = try roots.enumerated().map { number, root in
        (
            subject: try removal(root, at: number % storages.count, of: storages),
            baseline: try removal(root, at: 0, of: [alone])
        )
    }
    let late = rounds.map(\.subject).sorted()[min(rounds.count - 1, rounds.count * 99 / 100)]
    return Measurement(
        "cluster.removal", unit: "ms", rounds: rounds, against: "by a service that is alone",
        conditions: "99th percentile \(rounded(late)) ms, no other load, \(membersText)")
}

// MARK: Joining

/// A service of a cluster whose storage gets full, and others that join it.
private final class JoinedCluster {
    private let cluster: BenchCluster
    private let directory: TemporaryDirectory
    private let first: Service
    private let address: Endpoint
    private var joined = 0

    init(roots: Int, _ scale: Scale) throws {
        cluster = try BenchCluster()
        directory = try TemporaryDirectory()
        (first, address) = try JoinedCluster.start(directory.path + "/first", cluster)
        let sets = first.resources.rootSets
        try cluster.wait { sets.isFresh }
        let collaborations = roots / Synthetic.rootsPerCollaboration
        let what = "adding \(grouped(roots)) roots"
        try sets.applyAll(collaborations, progress: { try scale.settingUp(what, 0.4 * $0) }) { number in
            Mutation(.createCollaboration(try Synthetic.collaboration(number), .challenge))
        }
        try sets.applyAll(collaborations, progress: { try scale.settingUp(what, 0.4 + 0.6 * $0) }) { number in
            let root = number * Synthetic.rootsPerCollaboration
            return Mutation(
                .addRoots(
                    try Synthetic.collaboration(number),
                    (root..<root + Synthetic.rootsPerCollaboration).map { Synthetic.root($0) }))
        }
        if !scale.isTiny { try cluster.waitForTrimming() }
    }

    deinit { _ = first.shutDown() }

    private static func start(
        _ directory: String, _ cluster: BenchCluster
    ) throws -> (service: Service, address: Endpoint) {
        let address = Endpoint(host: "127.0.0.1", port: try cluster.freePort())
        var configuration = Configuration(
            dataDirectory: directory, workers: ProcessInfo.processInfo.activeProcessorCount)
        configuration.endpoints = [address]
        configuration.storageBytesMax = 64 << 30
        configuration.secretPath = cluster.secretPath
        // The log does not go back to its beginning, as in a cluster that is months old.
        configuration.logRetentionBytes = 1 << 20
        var settings = ClusterSettings(cluster.etcd.endpoints, name: try BenchCluster.name())
        settings.peers = ClusterSettings.Peers(address: address, tls: nil)
        configuration.cluster = settings
        return (try Service(configuration), address)
    }

    /// Seconds from the start of a service without a storage until it answers proofs by `roots` roots.
    func join(_ roots: Int) throws -> Double {
        joined += 1
        let path = "\(directory.path)/\(joined)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try seconds {
            let (service, _) = try JoinedCluster.start(path, cluster)
            defer { _ = service.shutDown() }
            let sets = service.resources.rootSets
            try cluster.wait { sets.isFresh }
            let found = try sets.read { snapshot throws(ServiceError) in try snapshot.statistics().roots }
            precondition(found == UInt64(roots), "a service has joined without all roots")
        }
    }
}

private func joiningCluster(_ scale: Scale) throws -> Measurement {
    let roots = scale.size(10_000_000, tiny: 5000)
    let cluster = try JoinedCluster(roots: roots, scale)
    let values = try (0..<(scale.isTiny ? 1 : 3)).map { round in
        // Later services get the same snapshot for a while. Each of these needs a new one.
        let restoring = 64 * UInt64(roots) / Limits.snapshotRestoreBytesPerMillisecond
        if round > 0 { usleep(UInt32(Limits.snapshotIdleMilliseconds + restoring + 2000) * 1000) }
        Machine.settle()
        scale.progress.show("joining for the \(round + 1). time")
        return try cluster.join(roots)
    }
    return Measurement(
        "cluster.join", unit: "s", values: values,
        conditions: "\(grouped(roots)) roots, 5 a collaboration; both services and \(membersText)")
}

// MARK: Proofs

/// A service in a process of its own that gets proofs by keys that it knows, and how long its processors work for one.
private struct MeasuredService {
    let process: BenchService
    private let client: RootgateClient
    private let load: LoadRun

    init(_ process: BenchService, _ population: Population) throws {
        self.process = process
        client = try RootgateClient(process.endpoint)
        load = try LoadRun(process.endpoint, connections: 4, depth: 64)
        try blocking { [client] in
            try await client.createCollaboration(population.collaboration)
            try await client.addRoots(population.rootHashes, to: population.collaboration)
        }
    }

    func microseconds(proofs: Int, _ population: Population) throws -> Double {
        var challenges: [[UInt8]] = []
        while challenges.count < proofs {
            let missing = min(proofs - challenges.count, 4096)
            challenges += try blocking { [client] in try await client.challenges(missing).challenges }
        }
        let requests = try population.signedRequests(challenges: challenges, batch: 1)
        let before = try process.processorSeconds()
        let report = load.drive(requests)
        let after = try process.processorSeconds()
        guard report.wrong == 0, report.errors.isEmpty, report.proofs == UInt64(proofs) else {
            throw ServiceError(.internalFault, "a proof was answered wrongly: \(report.errors)")
        }
        return (after - before) / Double(proofs) * 1e6
    }
}

private func proofsInCluster(_ scale: Scale) throws -> Measurement {
    let cluster = try BenchCluster()
    let name = try Synthetic.collaboration(0)
    let population = try Population(people: scale.size(200, tiny: 5), devices: 1...3, in: name)
    let shared = try MeasuredService(BenchService(of: cluster), population)
    let alone = try MeasuredService(BenchService(), population)
    let proofs = scale.size(Int(50_000 * scale.seconds), tiny: 20)
    // Their keys get tables.
    for _ in 0..<(scale.isTiny ? 1 : 2) {
        for service in [shared, alone] { _ = try service.microseconds(proofs: proofs, population) }
    }
    let rounds = try scale.alternate(rounds: scale.size(21, tiny: 1)) {
        try shared.microseconds(proofs: proofs, population)
    } _: {
        try alone.microseconds(proofs: proofs, population)
    }
    return Measurement(
        "cluster.proofs", unit: "us", rounds: rounds, against: "a service that is alone",
        conditions: "4 connections with 64 requests in flight each, \(grouped(proofs)) proofs a round, \(membersText)")
}
