import Core
import Foundation
import LoadHarness

/// What the options of `load` ask for.
struct LoadPlan {
    let connections: Int
    let batch: Int
    let depth: Int
    let seconds: Double
    let count: Int
    let invalidPercent: Int
    let people: Int
    let round: Int
    let isInclusionOnly: Bool
    /// Proofs a second; `nil`: as many as are answered.
    let rate: Double?
    /// With a ramp: the milliseconds of p99 from which on answers are late.
    let ramp: Double?
    /// Where the distribution of latency is written.
    let distributionPath: URL?

    /// Requests a second.
    var requestsPerSecond: Double? { rate.map { $0 / Double(batch) } }

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
        let isRamp = arguments.isOn("ramp")
        guard isRamp || !arguments.isGiven("ramp-limit") else { throw UsageError("--ramp-limit is for --ramp") }
        if isRamp, hasCount { throw UsageError("--ramp takes --seconds for a step, not --count") }
        rate =
            arguments.text("rate") == nil
            ? (isRamp ? 1000 : nil) : Double(try arguments.number("rate", in: 1...100_000_000))
        ramp = isRamp ? try arguments.decimal("ramp-limit", in: 0.01...60_000) : nil
        distributionPath = arguments.text("hdr").map { URL(fileURLWithPath: $0) }
    }
}
