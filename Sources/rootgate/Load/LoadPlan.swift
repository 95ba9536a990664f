import Core
import Foundation
import LoadHarness

/// What the options of `load` ask for.
struct LoadPlan {
    /// Requests as a recording has them.
    struct Replay {
        let shape: TrafficShape
        /// How many requests are sent for each that was recorded.
        let scale: Double
    }

    let connections: Int
    let depth: Int
    let seconds: Double
    let count: Int
    /// Of the proofs and of the checked grants, from 0 to 1.
    let invalidPart: Double
    let people: Int
    let collaborations: Int
    /// The exponent of Zipf's law by which collaborations and people are chosen; 0: they take turns.
    let skew: Double
    /// The most proofs, grants or other requests that are made before they are sent.
    let round: Int
    let mix: TrafficMix
    /// Whether rates count requests, of which a mix has several kinds. Otherwise they count proofs.
    let countsRequests: Bool
    let sizes: MixedRequests.Sizes
    /// Proofs, or requests, a second; `nil`: as many as are answered.
    let rate: Double?
    /// With a ramp: the milliseconds of p99 from which on answers are late.
    let ramp: Double?
    let replay: Replay?
    /// Where the distribution of latency is written, and where a plot of it.
    let distributionPath: String?
    let plotPath: String?

    /// The kinds of requests that are sent.
    var kinds: [LoadKind] {
        guard let replay else { return mix.kinds }
        return LoadKind.allCases.filter { kind in replay.shape.periods.contains { $0.count(kind) > 0 } }
    }

    /// Of which there are `rate` in a second.
    var unit: String { countsRequests ? "requests" : "proofs" }

    /// Requests a second at a rate in the plan's unit.
    func requestsPerSecond(at rate: Double) -> Double { countsRequests ? rate : rate / sizes.batch }

    init(_ arguments: Arguments) throws {
        connections = try arguments.number("connections", in: 1...20_000)
        people = try arguments.number("people", in: 1...1_000_000)
        round = try arguments.number("round", in: 1...5_000_000)
        skew = try arguments.decimal("zipf", in: 0...10)
        replay = try LoadPlan.replay(arguments)
        collaborations =
            arguments.text("collaborations") == nil
            ? 1 : try arguments.number("collaborations", in: 1...10_000)
        guard collaborations <= people else {
            throw UsageError("each of the --collaborations needs one of the --people")
        }
        let mix = try LoadPlan.mix(arguments, isReplay: replay != nil)
        (self.mix, countsRequests) = mix
        let kinds = replay == nil ? mix.mix.kinds : LoadKind.allCases
        var sizes = MixedRequests.Sizes()
        if kinds.contains(.mutate) { sizes.roots = try arguments.number("roots", in: 1...Limits.rootsPerRequestMax) }
        if kinds.contains(.post) { sizes.notices = try arguments.number("events", in: 1...Limits.noticesPerPostMax) }
        distributionPath = arguments.text("hdr")
        plotPath = arguments.text("plot")
        guard plotPath == nil || plotPath != distributionPath else {
            throw UsageError("--hdr and --plot need a file each")
        }
        guard replay == nil else {
            // The recording says all of that.
            (depth, seconds, count, invalidPart, rate, ramp) = (1, .infinity, .max, 0, nil, nil)
            self.sizes = sizes
            return
        }
        sizes.batch = Double(try arguments.number("batch", in: 1...Limits.proofsPerRequestMax))
        self.sizes = sizes
        depth = try arguments.number("depth", in: 1...Limits.requestsInFlightPerConnectionMax)
        let hasCount = arguments.text("count") != nil
        count = hasCount ? try arguments.number("count", in: 1...1_000_000_000) : .max
        seconds = hasCount ? .infinity : try arguments.decimal("seconds", in: 0.1...86_400)
        invalidPart = Double(try arguments.number("invalid", in: 0...100)) / 100
        guard !hasCount || mix.mix.kinds == [.verify] else {
            throw UsageError("--count is for signed proofs only, and everything else takes --seconds")
        }
        let isRamp = arguments.isOn("ramp")
        guard isRamp || !arguments.isGiven("ramp-limit") else { throw UsageError("--ramp-limit is for --ramp") }
        if isRamp, hasCount { throw UsageError("--ramp takes --seconds for a step, not --count") }
        rate =
            arguments.text("rate") == nil
            ? (isRamp ? 1000 : nil) : Double(try arguments.number("rate", in: 1...100_000_000))
        ramp = isRamp ? try arguments.decimal("ramp-limit", in: 0.01...60_000) : nil
    }

    /// What is sent, and whether rates count requests.
    private static func mix(
        _ arguments: Arguments, isReplay: Bool
    ) throws -> (mix: TrafficMix, countsRequests: Bool) {
        guard !isReplay else { return (TrafficMix(.verify), true) }
        let isInclusionOnly = arguments.isOn("inclusion-only")
        guard let text = arguments.text("mix") else {
            return (TrafficMix(isInclusionOnly ? .inclusion : .verify), false)
        }
        guard !isInclusionOnly else { throw UsageError("--mix has inclusion for proofs without signatures") }
        guard let mix = TrafficMix(text) else {
            let names = LoadKind.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError("--mix takes KIND=WEIGHT,... with the kinds \(names), each once, not \(text)")
        }
        return (mix, true)
    }

    private static func replay(_ arguments: Arguments) throws -> Replay? {
        guard let path = arguments.text("replay") else { return nil }
        let text = String(decoding: try contents(of: path), as: UTF8.self)
        let shape: TrafficShape
        do throws(TrafficShape.Malformed) {
            shape = try TrafficShape(text: text)
        } catch {
            throw UsageError("\(path) is no recording: \(error)")
        }
        guard shape.periods.contains(where: { period in LoadKind.allCases.contains { period.count($0) > 0 } }) else {
            throw UsageError("\(path) has no request that a load sends")
        }
        return Replay(shape: shape, scale: try arguments.decimal("scale", in: 0.001...1000))
    }
}
