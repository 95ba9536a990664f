import Core
import Identity
import LoadHarness
import RootgateClient
import Server
import TestSupport
import Testing
import Transport

@Suite struct LoadTests {
    @Test func quantilesAreWithinOneSixtyFourthOfTheSortedValues() {
        var generator = SeededGenerator(seed: runSeed)
        var histogram = Histogram()
        let values = (0..<10_000).map { _ in UInt64.random(in: 0...(1 << UInt64.random(in: 1...38, using: &generator)), using: &generator) }
        for value in values { histogram.record(value) }
        let sorted = values.sorted()
        for fraction in [0.01, 0.5, 0.9, 0.99, 0.999, 1] {
            let exact = sorted[max(0, Int((fraction * 10_000).rounded(.up)) - 1)]
            let found = histogram.quantile(fraction)
            #expect(found >= exact && Double(found) <= Double(exact) * (1 + 1 / 64) + 1, "seed \(runSeed), \(fraction)")
        }
        #expect(histogram.maximum == sorted.last)
    }

    @Test func aRunChecksEveryVerdictOfAMixOfForgeries() async throws {
        let directory = ScratchDirectory()
        var configuration = Configuration(dataDirectory: directory.path + "/data", workers: 2)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        let service = try Service(configuration)
        defer { _ = service.shutDown() }
        let client = try RootgateClient(service.endpoints[0])
        let collaboration = try #require(CollaborationIdentifier("load"))
        let population = try Population(people: 20, devices: 1...5, in: collaboration)
        try await client.createCollaboration(collaboration)
        try await client.addRoots(population.rootHashes, to: collaboration)
        let challenges = try await client.challenges(600).challenges
        let requests = try population.signedRequests(challenges: challenges, batch: 32, invalidPercent: 50)
        let run = try LoadRun(service.endpoints[0], connections: 3, depth: 2)
        defer { run.close() }
        let report = run.drive(requests)
        #expect(report.proofs == 600)
        #expect(report.wrong == 0)
        #expect(report.errors.isEmpty)
        #expect(report.verdicts[.granted] == 300)
        #expect(Set(report.verdicts.keys) == Set(Forgery.allCases.map(\.verdict) + [.granted]))

        // The same again: what was granted is a replay now, and the run has to notice.
        let again = run.drive(requests)
        #expect(again.wrong == 300)
        #expect(again.verdicts[.challengeReplayed] == 300)
    }
}
