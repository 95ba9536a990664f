import Core
import Dispatch
import Foundation
import LoadHarness
import RootgateClient
import Transport

/// Everything that clients do with the services of a cluster, at the same time and for long. In the middle one service
/// is restarted after the other. What the services take and how long they take must not grow.
struct Soak {
    /// What was measured within one window of time.
    struct Window {
        /// Minutes from the beginning of the run to the end of the window.
        let minute: Double
        /// Microseconds that proofs at one of the services have taken from when they were due: median and 99th
        /// percentile.
        let median: Double
        let late: Double
        /// Bytes of the services' memory, of their data files, and of what is in use in these.
        let resident: Double
        let file: Double
        let used: Double
    }

    /// Requests of one proof in a second. A tenth of the proofs are forgeries.
    static let proofsPerSecond = 1000
    private static let connections = 16

    let seconds: Double
    let windowSeconds: Double
    let progress: ProgressMeter

    /// What is known at the end of a run.
    struct Outcome {
        /// The windows before the restarts and those after them.
        var windows: [[Window]] = [[], []]
        /// What else was done.
        var deeds = SoakCrowd.Deeds()
        var auditLines = 0
    }

    /// Throws when something is answered wrongly, when a request fails that no restart excuses, when one service
    /// refuses something because the other one restarts, and when an audit is not whole.
    func run() throws -> Outcome {
        let cluster = try SoakCluster()
        guard let collaboration = CollaborationIdentifier("soak") else {
            throw ServiceError(.internalFault, "an identifier is not valid")
        }
        let population = try Population(people: 500, devices: 1...3, in: collaboration)
        let client = try cluster.client(0)
        defer { client.close() }
        let added = try blocking {
            try await client.createCollaboration(collaboration)
            return try await client.addRoots(population.rootHashes, to: collaboration)
        }
        try cluster.waitUntilEverywhere(added.sequence)
        let crowd = SoakCrowd(cluster)
        crowd.start()
        defer { crowd.stop() }
        var outcome = Outcome()
        let begin = monotonicSeconds()
        for part in outcome.windows.indices {
            if part > 0 { try restartInTurn(cluster, crowd, population) }
            let end = begin + seconds * Double(part + 1) / Double(outcome.windows.count)
            repeat {
                let elapsed = monotonicSeconds() - begin
                progress.show("minute \(Int(elapsed / 60) + 1)", done: min(1, elapsed / seconds))
                let place = outcome.windows[part].count % cluster.endpoints.count
                let latency = try latency(of: windowSeconds, cluster, place, population)
                outcome.windows[part].append(try window(cluster, latency, begin))
                try crowd.check()
            } while monotonicSeconds() < end
        }
        crowd.stop()
        try crowd.check()
        outcome.deeds = crowd.deeds
        outcome.auditLines = try cluster.verifyAudits()
        return outcome
    }

    /// Restarts one service after the other. Meanwhile each other one answers proofs.
    private func restartInTurn(_ cluster: SoakCluster, _ crowd: SoakCrowd, _ population: Population) throws {
        for place in cluster.endpoints.indices {
            let other = (place + 1) % cluster.endpoints.count
            try crowd.excusing(place) {
                try cluster.restart(place) { _ = try latency(of: 0.25, cluster, other, population) }
            }
            try crowd.check()
        }
    }

    /// Sends proofs to one service over connections of their own. Returns how long they took.
    private func latency(
        of seconds: Double, _ cluster: SoakCluster, _ place: Int, _ population: Population
    ) throws -> Histogram {
        let client = try cluster.client(place)
        defer { client.close() }
        let count = max(50, Int(seconds * Double(Soak.proofsPerSecond)))
        var challenges: [[UInt8]] = []
        while challenges.count < count {
            let missing = min(count - challenges.count, 4096)
            challenges += try blocking { try await client.challenges(missing).challenges }
        }
        let requests = try population.signedRequests(challenges: challenges, batch: 1, invalidPercent: 10)
        let run = try LoadRun(
            cluster.endpoints[place], key: cluster.key, connections: Soak.connections, depth: 1)
        let report = run.drive(requests, perSecond: Double(Soak.proofsPerSecond))
        guard report.wrong == 0, report.errors.isEmpty, report.proofs == UInt64(count) else {
            throw ServiceError(
                .internalFault,
                "\(report.proofs) of \(count) proofs were answered, \(report.wrong) of them wrongly, "
                    + "errors: \(report.errors)")
        }
        return report.latency
    }

    /// Asks what the services take.
    private func window(_ cluster: SoakCluster, _ latency: Histogram, _ begin: Double) throws -> Window {
        let statistics = try cluster.endpoints.indices.map { place in
            let client = try cluster.client(place)
            defer { client.close() }
            return try blocking { try await client.statistics() }
        }
        func figure(_ name: String) -> Double {
            statistics.reduce(0) { sum, figures in sum + Double(figures.first { $0.name == name }?.value ?? 0) }
        }
        return Window(
            minute: (monotonicSeconds() - begin) / 60,
            median: Double(latency.quantile(0.5)) / 1000, late: Double(latency.quantile(0.99)) / 1000,
            resident: figure("resident-bytes"), file: figure("storage-bytes"), used: figure("storage-used-bytes"))
    }
}
