import Core
import Identity
import LoadHarness
import RootgateClient
import Server
import ServiceTestSupport
import TestSupport
import Testing
import Transport

@Suite struct LoadTests {
    @Test("Quantiles are within 1/64 of the sorted values")
    func quantiles() {
        var generator = SeededGenerator(seed: runSeed)
        var histogram = Histogram()
        let values = (0..<10_000).map { _ in
            UInt64.random(in: 0...(1 << UInt64.random(in: 1...38, using: &generator)), using: &generator)
        }
        for value in values { histogram.record(value) }
        let sorted = values.sorted()
        for fraction in [0.01, 0.5, 0.9, 0.99, 0.999, 1] {
            let exact = sorted[max(0, Int((fraction * 10_000).rounded(.up)) - 1)]
            let found = histogram.quantile(fraction)
            #expect(found >= exact && Double(found) <= Double(exact) * (1 + 1 / 64) + 1, "seed \(runSeed), \(fraction)")
        }
        #expect(histogram.maximum == sorted.last)
    }

    @Test("A run checks every verdict of a mix of forgeries")
    func forgeries() async throws {
        let loaded = try await LoadedService(people: 20)
        defer { loaded.close() }
        let challenges = try await loaded.client.challenges(600).challenges
        let requests = try loaded.population.signedRequests(challenges: challenges, batch: 32, invalidPercent: 50)
        let run = try LoadRun(loaded.endpoint, connections: 3, depth: 2)
        let report = run.drive(requests)
        #expect(report.proofs == 600)
        #expect(report.wrong == 0)
        #expect(report.errors.isEmpty)
        #expect(report.verdicts[.granted] == 300)
        #expect(Set(report.verdicts.keys) == Set(Forgery.allCases.map(\.verdict) + [.granted]))

        // The same proofs again: granted ones are replays now, and the run must count them as wrong.
        let again = run.drive(requests)
        #expect(again.wrong == 300)
        #expect(again.verdicts[.challengeReplayed] == 300)
    }

    @Test("A fixed set of devices sends proof after proof")
    func fixedDevices() async throws {
        let loaded = try await LoadedService(people: 4)
        defer { loaded.close() }
        let challenges = try await loaded.client.challenges(60).challenges
        let requests = try loaded.population.signedRequests(challenges: challenges, batch: 1) { 2 + $0 % 3 }
        let devices = loaded.population.devices
        for (number, request) in requests.enumerated() {
            let (person, device) = devices[2 + number % 3]
            let key = loaded.population.people[person].publicKeys[device]
            #expect(request.frame.contains(key), "request \(number)")
        }
        let report = try LoadRun(loaded.endpoint, connections: 2, depth: 1).drive(requests)
        #expect(report.verdicts == [.granted: 60])
    }

    @Test("A mix has its share of known devices, and otherwise new ones", arguments: [0, 25, 90, 100])
    func mix(percent: Int) {
        var mix = DeviceMix(known: 7, knownPercent: percent)
        var devices: [Int] = []
        for count in [200, 300] {
            devices += (0..<count).map { mix.device($0) }
            mix.advance(by: count)
        }
        let known = devices.filter { $0 < 7 }
        #expect(known.count == 5 * percent)
        // Known ones take turns; of the others, none is skipped and none comes twice.
        #expect(known == known.indices.map { $0 % 7 })
        #expect(devices.filter { $0 >= 7 } == (0..<500 - known.count).map { 7 + $0 })
        // Every hundred in a row has its share.
        for start in stride(from: 0, to: 500, by: 100) {
            #expect(devices[start..<start + 100].count { $0 < 7 } == percent)
        }
    }

    @Test("Requests are sent at their pace whether or not answers come", arguments: [false, true])
    func pace(spins: Bool) async throws {
        let loaded = try await LoadedService(people: 20)
        defer { loaded.close() }
        let challenges = try await loaded.client.challenges(1000).challenges
        let requests = try loaded.population.signedRequests(challenges: challenges, batch: 1)
        let run = try LoadRun(loaded.endpoint, connections: 5, depth: 1)
        let report = run.drive(requests, perSecond: 2000, spins: spins)
        #expect(report.verdicts == [.granted: 1000])
        #expect(report.wrong == 0 && report.errors.isEmpty)
        #expect(report.latency.count == 1000)
        // The sum of 1,000 waits of 0.5 ms is 0.5 s with a standard deviation of 16 ms; answers may be late.
        #expect(report.seconds > 0.4)
    }

    @Test("A list repeats until its time is up")
    func repeating() async throws {
        let loaded = try await LoadedService(people: 20)
        defer { loaded.close() }
        let requests = try loaded.population.inclusionRequests(count: 10, batch: 3)
        let run = try LoadRun(loaded.endpoint, connections: 2, depth: 3)
        let report = run.drive(requests, isRepeating: true, seconds: 0.2)
        #expect(report.requests > 10)
        #expect(report.proofs == 3 * report.requests)
        #expect(report.verdicts == [.included: report.proofs])
        #expect(run.answered.load(ordering: .relaxed) == report.requests)
    }

    @Test("Lost connections end a run", arguments: [(nil, false), (1000.0, false), (1000.0, true)])
    func lostConnections(perSecond: Double?, spins: Bool) async throws {
        let loaded = try await LoadedService(people: 1)
        defer { loaded.close() }
        let requests = try loaded.population.inclusionRequests(count: 20, batch: 1)
        let run = try LoadRun(loaded.endpoint, connections: 2, depth: 4)
        loaded.close()
        let report = perSecond.map { run.drive(requests, perSecond: $0, spins: spins) } ?? run.drive(requests)
        #expect(report.proofs == 0)
        #expect(report.errors["connection-lost"] ?? 0 > 0)
    }
}

/// A running service and a population that it knows.
private final class LoadedService {
    let population: Population
    let client: RootgateClient
    let endpoint: Endpoint
    private let service: TestService

    init(people: Int) async throws {
        service = try TestService()
        endpoint = service.endpoint
        client = try service.client()
        let collaboration = try #require(CollaborationIdentifier("load"))
        population = try Population(people: people, devices: 1...5, in: collaboration)
        try await client.createCollaboration(collaboration)
        try await client.addRoots(population.rootHashes, to: collaboration)
    }

    func close() { service.stop() }
}
