import Core
import Dispatch
import Foundation
import LoadHarness
import RootgateClient
import Transport

/// Everything that clients do, at the same time and for long, with a restart of the service in the middle. What the
/// service takes and how long it takes must not grow.
struct Soak {
    /// What was measured within one window of time.
    struct Window {
        /// Minutes from the beginning of the run to the end of the window.
        let minute: Double
        /// Microseconds that proofs have taken from when they were due: median and 99th percentile.
        let median: Double
        let late: Double
        /// Bytes of the service's memory, of the data file, and of what is in use in it.
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

    /// The windows before the restart and those after it, and what else was done.
    ///
    /// Throws when something is answered wrongly, or when a request fails that no restart excuses.
    func run() throws -> (windows: [[Window]], deeds: SoakCrowd.Deeds) {
        let service = try BenchService(isEncrypted: true)
        guard let collaboration = CollaborationIdentifier("soak") else {
            throw ServiceError(.internalFault, "an identifier is not valid")
        }
        let population = try Population(people: 500, devices: 1...3, in: collaboration)
        let client = try RootgateClient(service.endpoint)
        defer { client.close() }
        try blocking {
            try await client.createCollaboration(collaboration)
            try await client.addRoots(population.rootHashes, to: collaboration)
        }
        let crowd = SoakCrowd(service)
        crowd.start()
        defer { crowd.stop() }
        var windows: [[Window]] = [[], []]
        let begin = monotonicSeconds()
        for part in windows.indices {
            if part > 0 { try crowd.excusing { try service.restart() } }
            let end = begin + seconds * Double(part + 1) / Double(windows.count)
            repeat {
                let elapsed = monotonicSeconds() - begin
                progress.show("minute \(Int(elapsed / 60) + 1)", done: min(1, elapsed / seconds))
                windows[part].append(try window(client, population, service.endpoint, begin))
                try crowd.check()
            } while monotonicSeconds() < end
        }
        crowd.stop()
        try crowd.check()
        return (windows, crowd.deeds)
    }

    /// Sends proofs over connections of their own, and asks what the service takes then.
    private func window(
        _ client: RootgateClient, _ population: Population, _ endpoint: Endpoint, _ begin: Double
    ) throws -> Window {
        let count = max(50, Int(windowSeconds * Double(Soak.proofsPerSecond)))
        var challenges: [[UInt8]] = []
        while challenges.count < count {
            let missing = min(count - challenges.count, 4096)
            challenges += try blocking { try await client.challenges(missing).challenges }
        }
        let requests = try population.signedRequests(challenges: challenges, batch: 1, invalidPercent: 10)
        let run = try LoadRun(endpoint, connections: Soak.connections, depth: 1)
        let report = run.drive(requests, perSecond: Double(Soak.proofsPerSecond))
        guard report.wrong == 0, report.errors.isEmpty, report.proofs == UInt64(count) else {
            throw ServiceError(
                .internalFault,
                "\(report.proofs) of \(count) proofs were answered, \(report.wrong) of them wrongly, "
                    + "errors: \(report.errors)")
        }
        let statistics = try blocking { try await client.statistics() }
        func figure(_ name: String) -> Double { Double(statistics.first { $0.name == name }?.value ?? 0) }
        return Window(
            minute: (monotonicSeconds() - begin) / 60,
            median: Double(report.latency.quantile(0.5)) / 1000, late: Double(report.latency.quantile(0.99)) / 1000,
            resident: figure("resident-bytes"), file: figure("storage-bytes"), used: figure("storage-used-bytes"))
    }
}
