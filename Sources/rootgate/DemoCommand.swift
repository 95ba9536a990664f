import Core
import Foundation
import Identity
import LoadHarness
import RootgateClient
import Signatures

let demoCommand = Command(
    "demo", "show a running service at work: real proofs, every kind of forgery, rates",
    options: [
        .server, .timeout,
        Option("people", "N", standard: "1000", "simulated people, 2 to 100,000, with 1 to 5 devices each"),
        Option("proofs", "N", standard: "20000", "genuine proofs to send, 256 to 10,000,000"),
        Option(switch: "expired", "also wait until a challenge expires (for services with short ones)"), .quiet,
        .json,
    ]
) { arguments in
    let client = try connect(arguments)
    defer { client.close() }
    let service = try serverOption(arguments)
    // Before anything is made on the service.
    let people = try arguments.number("people", in: 2...100_000)
    let proofs = try arguments.number("proofs", in: 256...10_000_000)
    let progress = progressMeter(arguments)
    defer { progress.end() }
    let demo = try await Demo(
        client, people: people, progress,
        says: { text in if !arguments.isOn("json") { progress.printAside(text) } })
    let rows = try await demo.run(service, proofs: proofs, waitsForExpiry: arguments.isOn("expired"))
    try await demo.cleanUp()
    progress.end()
    return try show(rows, demo, isJSON: arguments.isOn("json"))
}

private func show(_ rows: [DemoRow], _ demo: Demo, isJSON: Bool) throws -> ExitCode {
    let isRight = rows.allSatisfy(\.isRight)
    if isJSON {
        printNow(
            try json([
                "rows": rows.map { row in
                    [
                        "kind": row.kind, "sent": row.sent, "expected": row.expected.name,
                        "verdicts": Dictionary(uniqueKeysWithValues: row.verdicts.map { ($0.key.name, $0.value) }),
                    ] as [String: Any]
                },
                "proofsPerSecond": demo.rate, "bareVerificationsPerSecond": demo.bareRate,
                "ratio": demo.rate / demo.bareRate, "allAsExpected": isRight,
            ]))
    } else {
        func line(_ kind: String, _ sent: String, _ verdict: String, _ count: String) -> String {
            kind.padding(toLength: 42, withPad: " ", startingAt: 0)
                + String(repeating: " ", count: max(0, 7 - sent.count)) + sent + "  "
                + verdict.padding(toLength: 24, withPad: " ", startingAt: 0)
                + String(repeating: " ", count: max(0, 7 - count.count)) + count
        }
        printNow("\n" + line("kind", "sent", "verdict", "count"))
        for row in rows {
            for (verdict, count) in row.verdicts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                let mark = verdict == row.expected ? "" : "   WRONG: expected \(row.expected)"
                printNow(line(row.kind, "\(row.sent)", verdict.name, "\(count)") + mark)
            }
        }
        printNow(
            "\n\(Int(demo.rate)) proofs/s over loopback, load generator included; "
                + "bare OpenSSL verification on the same cores: \(Int(demo.bareRate))/s; "
                + "ratio \(String(format: "%.2f", demo.rate / demo.bareRate))"
        )
        printNow(isRight ? "every verdict is right" : "SOME VERDICTS ARE WRONG")
    }
    return isRight ? .success : .refused
}

/// One kind of proof: how many were sent, what they should get, what they got.
struct DemoRow {
    let kind: String
    let expected: Verdict
    var verdicts: [Verdict: Int] = [:]

    var sent: Int { verdicts.values.reduce(0, +) }
    var isRight: Bool { sent > 0 && verdicts.count == 1 && verdicts[expected] != nil }
}

/// A collaboration of simulated people on a running service, and the genuine and forged proofs that are sent to it.
final class Demo {
    private let client: RootgateClient
    private let progress: ProgressMeter
    private let says: (String) -> Void
    private let population: Population
    private let nonceCollaboration: CollaborationIdentifier
    private(set) var rate = 0.0
    private(set) var bareRate = 1.0

    init(
        _ client: RootgateClient, people: Int, _ progress: ProgressMeter, says: @escaping (String) -> Void
    ) async throws {
        self.client = client
        self.progress = progress
        self.says = says
        let suffix = MutationIdentifier.random()
        let collaboration = try rootgate.collaboration("demo-\(suffix)")
        nonceCollaboration = try rootgate.collaboration("demo-nonces-\(suffix)")
        says("making a collaboration of \(people) people with 1 to 5 devices each")
        progress.begin("making \(people) people")
        population = try Population(people: people, devices: 1...5, in: collaboration)
        progress.begin("adding root hashes")
        try await client.createCollaboration(collaboration)
        try await client.createCollaboration(nonceCollaboration, policy: .deviceNonce(windowSeconds: 60))
        for target in [collaboration, nonceCollaboration] {
            try await client.addAll(population.rootHashes, to: target, progress)
        }
    }

    func cleanUp() async throws {
        try await client.dropCollaboration(population.collaboration)
        try await client.dropCollaboration(nonceCollaboration)
    }

    func run(_ service: ServiceAddress, proofs: Int, waitsForExpiry: Bool) async throws -> [DemoRow] {
        let early = try await client.challenges(32)
        var rows = [try await sendGenuine(proofs, service)]
        progress.begin("sending forged proofs")
        for forgery in Forgery.allCases {
            rows.append(
                try await row("forged: \(forgery.rawValue)", forgery.verdict, count: 32) { genuine, stranger in
                    try forgery.spoil(genuine, stranger: stranger)
                })
        }
        rows += try await replays()
        rows += try await nonces()
        rows.append(try await unknownCollaboration())
        rows.append(try await removedPerson())
        if waitsForExpiry { rows.append(try await expired(early)) }
        return rows
    }

    /// The genuine proofs, in batches of 256 on four connections, signed in rounds that fit into a
    /// challenge's life.
    private func sendGenuine(_ count: Int, _ service: ServiceAddress) async throws -> DemoRow {
        says("sending \(count) signed proofs in batches of 256")
        progress.begin("sending genuine proofs", share: 0...1)
        let run = try LoadRun(service.endpoint, tls: service.tls, key: service.key, connections: 4, depth: 2)
        let material = try BareVerification.Material()
        let cores = ProcessInfo.processInfo.activeProcessorCount
        var bare: [Double] = []
        var report = LoadReport()
        var sent = 0
        while sent < count {
            // In alternation with the baseline, because a machine's speed drifts.
            bare.append(material.rate(seconds: 0.3, threads: cores))
            let size = min(8192, count - sent)
            let challenges = try await client.takeChallenges(size)
            let requests = try population.signedRequests(challenges: challenges, batch: 256) { [sent] in sent + $0 }
            report.add(
                await withCheckedContinuation { done in
                    Thread.detachNewThread { done.resume(returning: run.drive(requests)) }
                })
            sent += size
            progress.show("\(sent) of \(count)", done: Double(sent) / Double(count))
        }
        guard report.errors.isEmpty, report.proofs == UInt64(count) else {
            throw ServiceError(
                .internalFault, "\(report.proofs) of \(count) proofs were answered, errors: \(report.errors)")
        }
        rate = report.proofsPerSecond
        bareRate = bare.sorted()[bare.count / 2]
        return DemoRow(
            kind: "genuine", expected: .granted, verdicts: report.verdicts.mapValues { Int($0) })
    }

    private func genuine(
        _ number: Int, signing data: [UInt8]
    ) throws -> SignedIdentityProof {
        let devices = population.devices
        let (person, device) = devices[number * 7 % devices.count]
        return try population.people[person].proof(ofDevice: device, signing: data)
    }

    private func row(
        _ kind: String, _ expected: Verdict, count: Int,
        _ change: (SignedIdentityProof, PrivateKey) throws -> SignedIdentityProof
    ) async throws -> DemoRow {
        let challenges = try await client.challenges(count).challenges
        let proofs = try challenges.enumerated().map { number, challenge in
            try change(try genuine(number, signing: challenge), population.stranger)
        }
        return try await send(proofs, to: population.collaboration, kind, expected)
    }

    private func send(
        _ proofs: [SignedIdentityProof], to collaboration: CollaborationIdentifier, _ kind: String, _ expected: Verdict
    ) async throws -> DemoRow {
        var row = DemoRow(kind: kind, expected: expected)
        for decision in try await client.verify(proofs.map { AccessRequest(collaboration: collaboration, proof: $0) }) {
            row.verdicts[decision.verdict, default: 0] += 1
        }
        return row
    }

    private func replays() async throws -> [DemoRow] {
        let proofs = try await client.challenges(32).challenges.enumerated().map { try genuine($0, signing: $1) }
        let first = try await send(proofs, to: population.collaboration, "genuine, once", .granted)
        let again = try await send(
            proofs, to: population.collaboration, "forged: the same proofs again", .challengeReplayed)
        return [first, again]
    }

    private func nonces() async throws -> [DemoRow] {
        let proofs = try (0..<32).map { try genuine($0, signing: RandomSource.system.bytes(16)) }
        let short = try (0..<32).map { try genuine($0, signing: RandomSource.system.bytes(15)) }
        return [
            try await send(proofs, to: nonceCollaboration, "genuine, device nonce", .granted),
            try await send(proofs, to: nonceCollaboration, "forged: the same nonces again", .nonceReplayed),
            try await send(short, to: nonceCollaboration, "forged: nonce of 15 bytes", .badNonce),
        ]
    }

    private func unknownCollaboration() async throws -> DemoRow {
        let proofs = try await client.challenges(32).challenges.enumerated().map { try genuine($0, signing: $1) }
        return try await send(
            proofs, to: try rootgate.collaboration("nobody-made-this"), "forged: unknown collaboration",
            .unknownCollaboration)
    }

    private func removedPerson() async throws -> DemoRow {
        let person = population.people[0]
        try await client.removeRoots([person.rootHash], from: population.collaboration)
        let challenges = try await client.challenges(32).challenges
        let proofs = try challenges.map { try person.proof(ofDevice: 0, signing: $0) }
        return try await send(proofs, to: population.collaboration, "genuine, of a removed person", .notParticipant)
    }

    private func expired(_ early: IssuedChallenges) async throws -> DemoRow {
        progress.begin("waiting for challenges to expire")
        says("waiting \(early.validMilliseconds / 1000) s for challenges to expire")
        try await Task.sleep(for: .milliseconds(Int(early.validMilliseconds) + 100))
        let proofs = try early.challenges.enumerated().map { try genuine($0, signing: $1) }
        return try await send(proofs, to: population.collaboration, "forged: expired challenge", .challengeExpired)
    }
}
