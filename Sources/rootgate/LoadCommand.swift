import Core
import Foundation
import LoadHarness
import Platform
import RootgateClient
import Synchronization

let loadCommand = Command(
    "load", "drive a service with proofs and check every verdict",
    options: [
        .server, .timeout,
        Option("connections", "C", standard: "4", "connections"),
        Option("batch", "B", standard: "256", "proofs in a request"),
        Option("depth", "D", standard: "2", "requests in flight on a connection"),
        Option("seconds", "SECONDS", standard: "10", "how long to send; the time for signing is not counted"),
        Option("count", "N", "send so many proofs instead"),
        Option("invalid", "PERCENT", standard: "0", "share of forgeries, of all kinds"),
        Option("people", "N", standard: "2000", "simulated people, with 5 devices each"),
        Option("round", "N", standard: "50000", "proofs that are signed before they are sent"),
        Option(switch: "inclusion-only", "proofs without signatures"),
        Option(
            switch: "notices", "post notices to live followers and count those that arrive, instead of sending proofs"),
        Option("followers", "N", standard: "1000", "with --notices: live followers"),
        Option("collaborations", "N", standard: "100", "with --notices: collaborations that they follow, in turn"),
        Option("events", "N", standard: "8", "with --notices: notices in a post"),
        Option("rate", "N", standard: "10000", "with --notices: notices posted a second"), .quiet, .json,
    ]
) { arguments in
    if arguments.isOn("notices") { return try await driveNotices(arguments) }
    let plan = try LoadPlan(arguments)
    System.raiseDescriptorLimit()
    let client = try connect(arguments)
    defer { client.close() }
    let service = try serverOption(arguments)
    guard let collaboration = CollaborationIdentifier("load-\(MutationIdentifier.random())") else { return .failure }
    let progress = progressMeter(arguments)
    defer { progress.end() }

    progress.begin("making \(plan.people) people with 5 devices each")
    let population = try Population(people: plan.people, devices: 5...5, in: collaboration)
    try await client.createCollaboration(collaboration)
    progress.begin("adding root hashes")
    try await client.addAll(population.rootHashes, to: collaboration, progress)
    progress.begin("sending proofs", share: 0...1)
    let run = try LoadRun(
        service.endpoint, tls: service.tls, key: service.key, connections: plan.connections, depth: plan.depth)
    var report = LoadReport()
    var sent = 0
    if plan.isInclusionOnly {
        let count = max(plan.connections * plan.depth * 2, plan.people * 5 / plan.batch + 1)
        let requests = try population.inclusionRequests(count: count, batch: plan.batch)
        report = await run.driveShowing(progress, of: plan) {
            run.drive(requests, isRepeating: true, seconds: plan.seconds)
        }
    } else {
        while report.seconds < plan.seconds, sent < plan.count {
            let size = min(plan.round, plan.count - sent)
            let done =
                plan.seconds.isFinite ? report.seconds / plan.seconds : Double(sent) / Double(plan.count)
            progress.show("\(sent) answered, signing \(size)", done: done)
            let challenges = try await client.takeChallenges(size)
            let requests = try population.signedRequests(
                challenges: challenges, batch: plan.batch, invalidPercent: plan.invalidPercent
            ) { [sent] in sent + $0 }
            let left = plan.seconds - report.seconds
            report.add(await run.driveShowing(progress, of: plan, after: report) { run.drive(requests, seconds: left) })
            sent += size
        }
    }
    try await client.dropCollaboration(collaboration)
    progress.end()
    try show(report, isJSON: arguments.isOn("json"))
    return report.wrong == 0 && report.errors.isEmpty ? .success : .refused
}

private struct LoadPlan {
    let connections: Int
    let batch: Int
    let depth: Int
    let seconds: Double
    let count: Int
    let invalidPercent: Int
    let people: Int
    let round: Int
    let isInclusionOnly: Bool

    init(_ arguments: Arguments) throws {
        connections = try arguments.number("connections", in: 1...20_000)
        batch = try arguments.number("batch", in: 1...Limits.proofsPerRequestMax)
        depth = try arguments.number("depth", in: 1...Limits.requestsInFlightPerConnectionMax)
        let hasCount = arguments.text("count") != nil
        count = hasCount ? try arguments.number("count", in: 1...1_000_000_000) : .max
        seconds = hasCount ? .infinity : try arguments.decimal("seconds", in: 0.1...86_400)
        invalidPercent = try arguments.number("invalid", in: 0...100)
        people = try arguments.number("people", in: 1...1_000_000)
        round = try arguments.number("round", in: 1...5_000_000)
        isInclusionOnly = arguments.isOn("inclusion-only")
        if isInclusionOnly, hasCount { throw UsageError("--inclusion-only takes --seconds, not --count") }
    }
}

private func show(_ report: LoadReport, isJSON: Bool) throws {
    let latency = report.latency
    func microseconds(_ fraction: Double) -> Double { Double(latency.quantile(fraction)) / 1000 }
    let verdicts = report.verdicts.sorted { $0.key.rawValue < $1.key.rawValue }
    if isJSON {
        printNow(
            try json([
                "proofs": report.proofs, "requests": report.requests, "seconds": report.seconds,
                "proofsPerSecond": report.proofsPerSecond, "wrong": report.wrong, "errors": report.errors,
                "verdicts": Dictionary(uniqueKeysWithValues: verdicts.map { ($0.key.name, $0.value) }),
                "latencyMicroseconds": [
                    "p50": microseconds(0.5), "p90": microseconds(0.9), "p99": microseconds(0.99),
                    "p99.9": microseconds(0.999), "max": Double(latency.maximum) / 1000,
                ],
            ]))
        return
    }
    printNow("proofs      \(report.proofs) in \(report.requests) requests, \(String(format: "%.2f", report.seconds)) s")
    printNow("rate        \(Int(report.proofsPerSecond)) proofs/s")
    let quantiles = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)].map {
        "\($0.0) \(Int(microseconds($0.1)))"
    }
    printNow("latency us  \(quantiles.joined(separator: "  "))  max \(latency.maximum / 1000)")
    for (verdict, count) in verdicts {
        printNow("  \(verdict.name.padding(toLength: 24, withPad: " ", startingAt: 0)) \(count)")
    }
    for (error, count) in report.errors.sorted(by: { $0.key < $1.key }) {
        printNow("  error \(error.padding(toLength: 18, withPad: " ", startingAt: 0)) \(count) requests")
    }
    printNow(report.wrong == 0 ? "every verdict is as expected" : "WRONG VERDICTS: \(report.wrong)")
}

extension LoadRun {
    /// Runs `drive`, which blocks, on a thread of its own, and shows meanwhile how far the plan is. `report` is what
    /// was sent before.
    fileprivate func driveShowing(
        _ progress: ProgressMeter, of plan: LoadPlan, after report: LoadReport = LoadReport(),
        _ drive: @escaping @Sendable () -> LoadReport
    ) async -> LoadReport {
        let begin = ContinuousClock.now
        let progressTask = Task { [secondsBefore = report.seconds] in
            while (try? await Task.sleep(for: .milliseconds(500))) != nil {
                let count = answered.load(ordering: .relaxed)
                let seconds = secondsBefore + (ContinuousClock.now - begin) / .seconds(1)
                let done = plan.seconds.isFinite ? seconds / plan.seconds : Double(count) / Double(plan.count)
                progress.show("\(count) answered, \(Int(Double(count) / seconds)) a second", done: done)
            }
        }
        let report = await withCheckedContinuation { done in
            Thread.detachNewThread { done.resume(returning: drive()) }
        }
        progressTask.cancel()
        return report
    }
}
