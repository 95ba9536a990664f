import Core
import Foundation
import Identity
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

/// A client that verifies signed proofs, adds and removes root hashes, pings and reads the statistics, one request
/// after the other.
struct HonestClient {
    /// What became of its requests.
    struct Tally {
        var times: [Duration] = []
        var failures: [String] = []

        /// The time that 99 of 100 requests did not exceed, in milliseconds.
        var p99: Double {
            let sorted = times.sorted()
            guard !sorted.isEmpty else { return 0 }
            return sorted[min(sorted.count - 1, sorted.count * 99 / 100)] / .milliseconds(1)
        }
    }

    private let service: TestService
    private let client: RootgateClient
    private let small: SmallCollaboration

    init(_ service: TestService) async throws {
        self.service = service
        client = try service.client(timeout: .seconds(20))
        small = try await SmallCollaboration(client, named: "honest")
    }

    /// Sends some hundred requests, and makes a new connection now and then.
    func work(rounds: Int) async throws -> Tally {
        var tally = Tally()
        var random = SeededGenerator(seed: runSeed)
        for round in 0..<rounds {
            // The first to connect may have to wait for others' handshakes with the system, which are not counted.
            let newcomer = try service.client(timeout: .seconds(20))
            let root = random.digest()
            await measure("challenges and verify", &tally) {
                let proof = try await small.proof(device: round % 3)
                let decision = try await client.verify([AccessRequest(collaboration: small.collaboration, proof: proof)]
                )
                return decision.first?.verdict == .granted
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
        tally.times.append(ContinuousClock.now - start)
    }
}
