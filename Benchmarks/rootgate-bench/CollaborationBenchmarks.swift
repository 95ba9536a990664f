import Core
import Dispatch
import Foundation
import LoadHarness
import RootgateClient
import Server
import Transport
import Wire

let collaborationBenchmarks = [
    Benchmark("grants.check", "checks of grants, 4,096 at a time, one core") { scale in
        let bench = try CollaborationBench(scale)
        let body = try bench.grantChecks(people: scale.size(16_384, tiny: 64))
        var turn = 0
        let values = try scale.repeated {
            try scale.rate(items: CollaborationBench.grantsPerCheck(scale)) {
                let answer = try bench.service.checkGrants(body[turn % body.count])
                turn += 1
                precondition(answer[8] == GrantStatus.valid.rawValue, "a grant is refused")
            }
        }
        return Measurement("grants.check", unit: "grants/s", values: values)
    },
    Benchmark(
        "shelf.10k", "first page of the shelf of a person with 10,000 items, over loopback TCP", seconds: 20,
        setUpShare: 0.8
    ) { scale in
        let bench = try CollaborationBench(scale)
        let account = try bench.account("ana")
        try bench.fillShelf(of: account, items: scale.size(10_000, tiny: 50))
        let values = try scale.repeated {
            var times: [Double] = []
            let end = scale.now() + scale.seconds
            while times.count < 3 || times.count < 21 && scale.now() < end {
                times.append(
                    try seconds {
                        let shelf = try bench.wait { client in
                            try await client.send(ReadShelf(of: account, for: .app("com.example.app")))
                        }
                        precondition(shelf.count == scale.size(10_000, tiny: 50), "items are missing")
                    } * 1000)
            }
            return median(times)
        }
        return Measurement("shelf.10k", unit: "ms", values: values)
    },
    Benchmark(
        "notices.live", "notices posted 8 at a time, 32 posts in flight, to 1,000 live followers of 100 collaborations"
    ) { scale in
        let bench = try CollaborationBench(scale)
        var plan = NoticeLoad.Plan()
        if scale.isTiny { (plan.collaborations, plan.followers) = (4, 12) }
        let chosen = plan
        let endpoint = bench.endpoint
        let load = try blocking { try await NoticeLoad(endpoint, chosen, scale.progress) }
        var count = scale.size(4000, tiny: 64)
        let values = try scale.repeated {
            let report = try blocking { [count] in try await load.run(count: count) }
            count = scale.count(
                at: report.postsPerSecond, for: 3 * scale.seconds,
                in: scale.size(4000, tiny: 64)...scale.size(50_000, tiny: 64))
            precondition(
                report.isComplete, "\(report.delivered) of \(report.expected) came, \(report.misplaced) misplaced")
            return report.postsPerSecond
        }
        return Measurement("notices.live", unit: "notices/s", values: values)
    },
    Benchmark(
        "proof.layer.loopback",
        "proof.known.loopback while 1,000 followers wait and 20 notices/s go to ten of them each",
        seconds: 320
    ) { scale in
        let bench = try ProofBench.withMillionRoots(scale, knownPercent: 100)
        let layer = try LayerInUse(bench.endpoint, scale)
        defer { layer.end() }
        // A round is long enough to contain the layer's work. There are many rounds, because the rate changes more from
        // round to round than because of the layer.
        let count = scale.size(2, tiny: 1)
        func rate() throws -> Double {
            Double(count) / (try (0..<count).reduce(0) { sum, _ in try sum + 1 / bench.overLoopback() })
        }
        let rounds = try scale.alternate(rounds: scale.size(60, tiny: 1), limit: 750 * scale.seconds) {
            layer.begin()
            defer { layer.pause() }
            return try rate()
        } _: {
            // The baseline begins after the same pause.
            layer.rest()
            return try rate()
        }
        return Measurement(
            "proof.layer.loopback", unit: "proofs/s", rounds: rounds, against: "proof.known.loopback",
            conditions: bench.conditions(.batches))
    },
]

/// The result of `body`, which is run as a task while this thread waits.
func blocking<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws -> Value {
    let done = DispatchSemaphore(value: 0)
    let outcome = Outcome<Value>()
    Task {
        do {
            let value = try await body()
            outcome.result.withLock { $0 = .success(value) }
        } catch {
            outcome.result.withLock { $0 = .failure(error) }
        }
        done.signal()
    }
    done.wait()
    guard let result = outcome.result.withLock({ $0 }) else {
        throw ServiceError(.internalFault, "a task ended without a result")
    }
    return try result.get()
}

private final class Outcome<Value: Sendable>: Sendable {
    let result = Lock<Result<Value, any Error>?>(nil)
}

/// A service with the collaboration layer in use, and a client of it.
private final class CollaborationBench {
    let service: Service
    let endpoint: Endpoint
    private let directory: TemporaryDirectory
    private let client: RootgateClient

    init(_ scale: Scale) throws {
        directory = try TemporaryDirectory()
        var configuration = Configuration(
            dataDirectory: directory.path, workers: ProcessInfo.processInfo.activeProcessorCount)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        configuration.linkBase = "https://example.com/c"
        configuration.grantSeconds = 3600
        service = try Service(configuration)
        guard let endpoint = service.endpoints.first else { throw ServiceError(.internalFault, "nothing listens") }
        self.endpoint = endpoint
        client = try RootgateClient(endpoint, configuration: .init(requestTimeout: .seconds(60)))
    }

    deinit {
        client.close()
        _ = service.shutDown()
    }

    func wait<Value: Sendable>(_ body: @escaping @Sendable (RootgateClient) async throws -> Value) throws -> Value {
        let client = client
        return try blocking { try await body(client) }
    }

    func account(_ name: String) throws -> Account {
        guard let account = Account(name) else { throw ServiceError(.internalFault, "not an account's name") }
        return account
    }

    static func grantsPerCheck(_ scale: Scale) -> Int { scale.size(4096, tiny: 32) }

    /// Requests that check grants: one for each of `people` people.
    func grantChecks(people: Int) throws -> [[UInt8]] {
        let owner = try account("owner")
        let local = LocalCollaborationIdentifier(rawValue: "grants")
        let collaboration = try wait { client in
            try await client.send(
                PrepareCollaboration(owner: owner, metadata: CollaborationMetadata(localIdentifier: local))
            ).collaborationIdentifier
        }
        let population = try Population(people: people, devices: 1...1, in: collaboration)
        var grants: [AccessGrant] = []
        for start in stride(from: 0, to: people, by: Limits.participantsPerRequestMax) {
            let some = population.people[start..<min(people, start + Limits.participantsPerRequestMax)]
            grants += try wait { client in
                _ = try await client.send(
                    AddParticipants(
                        some.map { NewParticipant(PersonIdentity(rootHash: $0.rootHash)) }, to: collaboration))
                let challenges = try await client.challenges(some.count).challenges
                let requests = try zip(some, challenges).map { person, challenge in
                    AccessRequest(
                        collaboration: collaboration, proof: try person.proof(ofDevice: 0, signing: challenge))
                }
                return try await client.open(requests).compactMap(\.grant)
            }
        }
        precondition(grants.count == people, "a proof was refused")
        // In another order than their records, as from real clients.
        grants.shuffle()
        let size = min(people, Limits.grantsPerCheckMax)
        return try stride(from: 0, to: people - size + 1, by: size).map { start in
            var body: [UInt8] = []
            try GrantBatch.append(
                grants[start..<start + size].map {
                    GrantBatch.Entry(collaboration: 0, deviceKey: nil, grant: $0.bytes)
                },
                of: [collaboration], atLeast: 0, to: &body)
            return body
        }
    }

    /// Shares `items` links with the account.
    func fillShelf(of account: Account, items: Int) throws {
        try wait { client in
            _ = try await client.send(SetConsent(of: account, .everything, isAllowed: true))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for first in 0..<16 {
                    group.addTask {
                        for number in stride(from: first, to: items, by: 16) {
                            guard let url = URL(string: "https://example.com/items/\(number)") else { continue }
                            _ = try await client.send(
                                RecordShare(
                                    url: url, title: "Item \(number)", app: "com.example.app",
                                    sharer: Sharer(name: "Person \(number % 40)"),
                                    conversation: Conversation(identifier: "chat \(number % 25)"),
                                    date: Date(timeIntervalSince1970: 1.8e9 + Double(number)),
                                    recipients: [ShareRecipient(account)]))
                            guard number % 500 == 0 else { continue }
                            _ = try await client.send(PinHighlight(url, of: account, for: .everyApp))
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }
}

/// The collaboration layer in use beside the proofs: followers that wait, and some posts a second.
private final class LayerInUse {
    private let load: NoticeLoad
    private let settle: UInt32
    private let count: Int
    private var run: Task<Void, Never>?

    init(_ endpoint: Endpoint, _ scale: Scale) throws {
        var plan = NoticeLoad.Plan()
        plan.collaborations = scale.size(100, tiny: 4)
        plan.followers = scale.size(1000, tiny: 8)
        plan.batch = 1
        plan.postsInFlight = 2
        let chosen = plan
        let load = try blocking { try await NoticeLoad(endpoint, chosen) }
        self.load = load
        count = scale.size(100_000, tiny: 100)
        settle = UInt32(scale.size(250_000, tiny: 100_000))
    }

    /// Returns when every follower waits.
    func begin() {
        let (load, count) = (load, count)
        run = Task { _ = try? await load.run(count: count, perSecond: 20) }
        rest()
    }

    func rest() { usleep(settle) }

    func pause() {
        guard let run else { return }
        run.cancel()
        _ = try? blocking { await run.value }
        self.run = nil
    }

    func end() {
        pause()
        let load = load
        _ = try? blocking { await load.close() }
    }
}
