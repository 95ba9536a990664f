import Core
import Foundation
import Identity
import RootgateClient
import TestSupport
import Testing
import Transport
import ServiceTestSupport

/// A client that verifies signed proofs, adds and removes root hashes, pings and reads the statistics, one request
/// after the other.
struct HonestClient {
    /// What became of its requests.
    struct Tally {
        /// In milliseconds.
        var times: [Double] = []
        var failures: [String] = []
        /// The request that took longest.
        var slowest = (name: "", time: 0.0)

        /// The time that 99 of 100 requests did not exceed.
        var p99: Double { time(ofPart: 0.99) }
        var median: Double { time(ofPart: 0.5) }

        private func time(ofPart part: Double) -> Double {
            let sorted = times.sorted()
            return sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
        }

        static func + (first: Tally, second: Tally) -> Tally {
            Tally(
                times: first.times + second.times, failures: first.failures + second.failures,
                slowest: first.slowest.time < second.slowest.time ? second.slowest : first.slowest)
        }
    }

    private let endpoint: Endpoint
    private let client: RootgateClient
    private let small: SmallCollaboration
    /// Requests that were answered.
    let answered = Shared(0)

    init(_ endpoint: Endpoint) async throws {
        self.endpoint = endpoint
        client = try HonestClient.client(endpoint)
        small = try await SmallCollaboration(client, named: "honest")
    }

    private static func client(_ endpoint: Endpoint) throws -> RootgateClient {
        try RootgateClient(endpoint, configuration: .init(requestTimeout: .seconds(20)))
    }

    /// Sends six requests in each round, and makes a new connection for one of them. Goes on until there were `rounds`
    /// and the time is over.
    func work(rounds: Int, atLeast time: Duration = .zero) async throws -> Tally {
        var tally = Tally()
        var random = SeededGenerator(seed: runSeed)
        let end = ContinuousClock.now + time
        var round = 0
        while round < rounds || ContinuousClock.now < end {
            defer { round += 1 }
            let newcomer = try HonestClient.client(endpoint)
            let root = random.digest()
            var challenge: [UInt8] = []
            await measure("challenge", &tally) {
                challenge = try await client.challenge()
                return true
            }
            // What the device computes in between is none of the service's time.
            let proof = try small.person.proof(ofDevice: round % 3, signing: challenge)
            await measure("verify", &tally) {
                let request = AccessRequest(collaboration: small.collaboration, proof: proof)
                return try await client.verify([request]).first?.verdict == .granted
            }
            await measure("add", &tally) { try await client.addRoots([root], to: small.collaboration).changed == 1 }
            await measure("remove", &tally) {
                try await client.removeRoots([root], from: small.collaboration).changed == 1
            }
            await measure("statistics", &tally) { try await !client.statistics().isEmpty }
            await measure("newcomer", &tally) {
                try await newcomer.ping()
                return true
            }
            newcomer.close()
        }
        return tally
    }

    private func measure(_ name: String, _ tally: inout Tally, _ request: () async throws -> Bool) async {
        let start = ContinuousClock.now
        do {
            if try await !request() { tally.failures.append("\(name): wrong answer") }
        } catch {
            tally.failures.append("\(name): \(error)")
        }
        answered.increment()
        let time = (ContinuousClock.now - start) / .milliseconds(1)
        tally.times.append(time)
        if time > tally.slowest.time { tally.slowest = (name, time) }
    }
}
