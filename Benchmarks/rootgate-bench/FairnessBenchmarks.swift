import Collaboration
import Core
import Foundation
import LoadHarness
import Principals
import Server
import Synchronization
import Transport

let fairnessBenchmarks = [
    Benchmark(
        "fairness.limited", "inclusion.loopback of a principal while another one floods above its limits", seconds: 10
    ) { scale in
        let bench = try FairnessBench(scale)
        let rounds = try scale.alternate {
            try bench.besideFlood { try bench.rate() }
        } _: {
            try bench.rate()
        }
        return Measurement(
            "fairness.limited", unit: "proofs/s", rounds: rounds, against: "the same without the other one",
            conditions: "the other one may verify 1,000 proofs/s, and has 4 connections x 2 requests x 256 proofs "
                + "always in flight")
    }
]

/// A service with two principals, one of which has a limit.
private final class FairnessBench {
    private let scale: Scale
    private let directory: TemporaryDirectory
    private let service: Service
    private let requests: [LoadRequest]
    private let keys = [APIKey.random(), APIKey.random()]

    init(_ scale: Scale) throws {
        self.scale = scale
        directory = try TemporaryDirectory()
        guard let collaboration = CollaborationIdentifier("fairness"), let root = PrincipalName("root") else {
            throw ServiceError(.internalFault, "a name is not valid")
        }
        _ = try OfflinePrincipals.send(
            CreatePrincipal(
                root, roles: [LimitedRole(.administer, prefixes: [.every])], key: NewKey(KeyHash(.random()))),
            dataDirectory: directory.path)
        for (number, key) in keys.enumerated() {
            guard let name = PrincipalName("p\(number)") else { continue }
            _ = try OfflinePrincipals.send(
                CreatePrincipal(
                    name, roles: [LimitedRole(.verify, prefixes: [.every])], key: NewKey(KeyHash(key)),
                    limits: number == 0 ? nil : PrincipalLimits(proofsPerSecond: 1000)),
                dataDirectory: directory.path)
        }
        var configuration = Configuration(
            dataDirectory: directory.path, workers: ProcessInfo.processInfo.activeProcessorCount)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        service = try Service(configuration)
        let population = try Population(people: scale.size(500, tiny: 20), devices: 5...5, in: collaboration)
        let sets = service.resources.rootSets
        try sets.apply(Mutation(.createCollaboration(collaboration, .challenge)))
        try sets.apply(Mutation(.addRoots(collaboration, population.rootHashes)))
        requests = try population.inclusionRequests(count: 64, batch: 256)
    }

    deinit {
        _ = service.shutDown()
    }

    private func run(_ key: APIKey) throws -> LoadRun {
        try LoadRun(service.endpoints[0], key: key, connections: 4, depth: 2)
    }

    /// Proofs per second of the principal without a limit.
    func rate() throws -> Double {
        let report = try run(keys[0]).drive(requests, isRepeating: true, seconds: scale.seconds)
        guard report.errors.isEmpty, report.wrong == 0 else {
            throw ServiceError(.internalFault, "the other principal costs answers: \(report.errors)")
        }
        return report.proofsPerSecond
    }

    /// Runs `body` while the other principal sends without a pause.
    func besideFlood(_ body: () throws -> Double) throws -> Double {
        let flood = try run(keys[1])
        let state = Flood()
        Thread { [requests] in
            while !state.isOver.load(ordering: .relaxed) {
                _ = flood.drive(requests, isRepeating: true, seconds: 0.05)
            }
            state.ended.signal()
        }.start()
        defer {
            state.isOver.store(true, ordering: .relaxed)
            state.ended.wait()
        }
        return try body()
    }
}

/// What the thread of a flood shares with who started it.
private final class Flood: Sendable {
    let isOver = Atomic<Bool>(false)
    let ended = DispatchSemaphore(value: 0)
}
