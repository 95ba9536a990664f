import Core
import Foundation
import LoadHarness
import Platform
import RootgateClient

let loadCommand = Command(
    "load", "drive a service with requests and check every answer", options: loadOptions
) { arguments in
    if arguments.isOn("notices") { return try await driveNotices(arguments) }
    if let path = arguments.text("record") { return try await recordTraffic(arguments, path) }
    let plan = try LoadPlan(arguments)
    let services = try serverOptions(arguments)
    guard plan.connections >= services.count else { throw UsageError("each --server needs one of the --connections") }
    let isJSON = arguments.isOn("json")
    let clients = try services.map { try connect(arguments, to: $0) }
    defer { for client in clients { client.close() } }
    let progress = progressMeter(arguments)
    defer { progress.end() }
    try arguments.checkAllRead()
    // What can't be written is known before the work is done.
    for path in [plan.distributionPath, plan.plotPath] { if let path { try write("", to: path) } }
    System.raiseDescriptorLimit()
    let leftovers = LoadLeftovers()
    let load = try await RequestLoad(services, clients, plan, leftovers, progress)
    let (report, isFine): (LoadReport, Bool)
    do {
        (report, isFine) = try await plan.ramp == nil ? (load.drive(), true) : load.ramp(isJSON: isJSON)
    } catch {
        try? await load.end()
        throw error
    }
    try await load.end()
    progress.end()
    if plan.ramp == nil { printNow(isJSON ? try json(report.object) : report.text(unit: plan.unit)) }
    if let path = plan.distributionPath { try write(report.latency.percentileDistribution, to: path) }
    if let path = plan.plotPath {
        let (requests, rate) = (Int(report.requests).inThousands, Int(report.requestsPerSecond).inThousands)
        let title = "Latency of \(requests) requests, \(rate) a second"
        try write(report.latencyPlot(title: title).svg, to: path)
    }
    return isFine && report.wrong == 0 && report.errors.isEmpty ? .success : .refused
}

private let loadOptions = [
    Option(
        "server", "HOST:PORT", standard: "localhost:7570", isRepeatable: true,
        "the service to talk to; tls://HOST:PORT: with TLS; unix:/PATH: a local socket; given several times: "
            + "services that share the load"),
    .timeout,
    Option("connections", "C", standard: "4", "connections"),
    Option("batch", "B", standard: "256", "proofs or grants in a request"),
    Option("depth", "D", standard: "2", "requests in flight on a connection"),
    Option("seconds", "SECONDS", standard: "10", "how long to send; the time for signing is not counted"),
    Option("count", "N", "send so many signed proofs instead"),
    Option("invalid", "PERCENT", standard: "0", "share of forgeries, of all kinds"),
    Option("people", "N", standard: "2000", "simulated people, with 5 devices each"),
    Option("collaborations", "N", "collaborations that they take part in (default: 1; with --notices: 100)"),
    Option(
        "zipf", "EXPONENT", standard: "0",
        "choose collaborations and people by Zipf's law, some more often than others; 0: in turn"),
    Option("round", "N", standard: "50000", "proofs that are signed before they are sent"),
    Option(switch: "inclusion-only", "proofs without signatures"),
    Option(
        "mix", "KIND=WEIGHT,...",
        "send several kinds of requests: verify, inclusion, open, check, mutate, post; then --rate counts requests"),
    Option("roots", "N", standard: "1", "root hashes of a mutate request"),
    Option(
        switch: "notices", "post notices to live followers and count those that arrive, instead of sending proofs"),
    Option("followers", "N", standard: "1000", "with --notices: live followers"),
    Option("events", "N", standard: "8", "notices in a post"),
    Option(
        "rate", "N",
        "send so many proofs a second, answered or not, and count latency from when each was due; with --notices: "
            + "notices posted a second (default: 10000)"),
    Option(switch: "ramp", "raise the rate step by step, from --rate on, until answers are late"),
    Option("ramp-limit", "MS", standard: "20", "with --ramp: the p99 of latency from which on answers are late"),
    Option(
        "record", "FILE",
        "send nothing: write what the service's clients do in each second, without whom it is about"),
    Option("replay", "FILE", "send as many requests of each kind in each second as a recording has"),
    Option("scale", "FACTOR", standard: "1", "with --replay: so many times the requests of the recording"),
    Option("hdr", "FILE", "file for the distribution of latency, as HdrHistogram's tools read it"),
    Option("plot", "FILE", "file for a plot of that distribution as SVG"), .quiet, .json,
]
