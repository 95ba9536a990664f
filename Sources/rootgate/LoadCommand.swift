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
        Option(
            "rate", "N",
            "send so many proofs a second, answered or not, and count latency from when each was due; with --notices: "
                + "notices posted a second (default: 10000)"),
        Option(switch: "ramp", "raise the rate step by step, from --rate on, until answers are late"),
        Option("ramp-limit", "MS", standard: "20", "with --ramp: the p99 of latency from which on answers are late"),
        Option("hdr", "FILE", "file for the distribution of latency, as HdrHistogram's tools read it"), .quiet, .json,
    ]
) { arguments in
    if arguments.isOn("notices") { return try await driveNotices(arguments) }
    let plan = try LoadPlan(arguments)
    // What can't be written is known before the work is done.
    if let path = plan.distributionPath { try Data().write(to: path) }
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
    let load = ProofLoad(plan: plan, population: population, client: client, run: run, progress: progress)
    let isJSON = arguments.isOn("json")
    let (report, isFine) = try await plan.ramp == nil ? load.drive() : load.ramp(isJSON: isJSON)
    try await client.dropCollaboration(collaboration)
    progress.end()
    if plan.ramp == nil { try show(report, isJSON: isJSON) }
    if let path = plan.distributionPath { try Data(report.latency.percentileDistribution.utf8).write(to: path) }
    return isFine && report.wrong == 0 && report.errors.isEmpty ? .success : .refused
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
