import Core
import Foundation
import LoadHarness
import RootgateClient

/// Requests to one or several services at once, as a plan says.
struct RequestLoad {
    let plan: LoadPlan
    private let targets: [LoadTarget]

    /// Prepares each service for the load. The connections are divided among them. Progress is that of the first one.
    ///
    /// Throws what a service throws.
    init(
        _ services: [ServiceAddress], _ clients: [RootgateClient], _ plan: LoadPlan, _ leftovers: LoadLeftovers,
        _ progress: ProgressMeter
    ) async throws {
        self.plan = plan
        var targets: [LoadTarget] = []
        for (number, (service, client)) in zip(services, clients).enumerated() {
            let connections = plan.connections / services.count + (number < plan.connections % services.count ? 1 : 0)
            do {
                targets.append(
                    try await LoadTarget(
                        service, client, plan, leftovers, connections: connections, number == 0 ? progress : .silent))
            } catch {
                for target in targets { try? await target.end() }
                throw error
            }
        }
        self.targets = targets
        progress.begin("sending requests", share: 0...1)
    }

    /// Ends what was started at the services.
    func end() async throws {
        for target in targets { try await target.end() }
    }

    /// Sends what the plan says.
    func drive() async throws -> LoadReport {
        let share = 1 / Double(targets.count)
        if let replay = plan.replay {
            return try await all { target, _ in try await target.replay(replay, share: share) }
        }
        return try await drive(rate: plan.rate)
    }

    /// `roundsMax`: how often requests are made and sent.
    private func drive(rate: Double?, roundsMax: Int = .max) async throws -> LoadReport {
        let perSecond = rate.map { plan.requestsPerSecond(at: $0) / Double(targets.count) }
        return try await all { [plan, targets] target, number in
            let count =
                plan.count == .max
                ? Int.max : plan.count / targets.count + (number < plan.count % targets.count ? 1 : 0)
            return try await target.drive(
                seconds: plan.seconds, count: count, perSecond: perSecond, roundsMax: roundsMax)
        }
    }

    /// What `body` has sent to each service, at the same time.
    private func all(
        _ body: @escaping @Sendable (LoadTarget, Int) async throws -> LoadReport
    ) async throws -> LoadReport {
        try await withThrowingTaskGroup(of: LoadReport.self) { group in
            for (number, target) in targets.enumerated() { group.addTask { try await body(target, number) } }
            var whole = LoadReport()
            for try await report in group { whole.merge(report) }
            return whole
        }
    }

    // MARK: A ramp

    /// The factor from a step's rate to the next one's.
    private static let rampFactor = 1.5
    /// The part of what was due in a step that must have been answered in its time.
    private static let answeredMin = 0.9

    /// Raises the rate until answers are late: the p99 is above the limit, answering takes longer than sending, or a
    /// request gets an error. Requests are due at random moments, so their rate is compared with what was due, and not
    /// with the step's rate. Shows a line for each step, and the last rate at which answers were in time. Returns the
    /// report of that step, and whether there is one.
    func ramp(isJSON: Bool) async throws -> (report: LoadReport, isFine: Bool) {
        var rate = plan.rate ?? 1
        var (steps, best): ([[String: Any]], (rate: Double, report: LoadReport)?) = ([], nil)
        if !isJSON { printNow("\(plan.unit)/s sent   answered    p50 us    p99 us") }
        while true {
            let report = try await drive(rate: rate, roundsMax: 1)
            let answered = plan.countsRequests ? report.requestsPerSecond : report.proofsPerSecond
            let late = Double(report.latency.quantile(0.99))
            let isInTime =
                late <= (plan.ramp ?? 0) * 1e6 && report.errors.isEmpty && report.wrong == 0
                && report.seconds * RequestLoad.answeredMin <= report.scheduledSeconds
            let median = Double(report.latency.quantile(0.5))
            steps.append([
                "sentPerSecond": rate, "answeredPerSecond": answered, "p50Microseconds": median / 1000,
                "p99Microseconds": late / 1000, "inTime": isInTime, "errors": report.errors,
            ])
            if !isJSON {
                let fields = [rate, answered, median / 1000, late / 1000].map { String(format: "%10.0f", $0) }
                printNow("  " + fields.joined(separator: " ") + (isInTime ? "" : "  late"))
            }
            if report.wrong > 0 { return (report, false) }
            guard isInTime else { break }
            best = (rate, report)
            rate *= RequestLoad.rampFactor
        }
        if isJSON {
            printNow(try json(["steps": steps, "highestInTime": best?.rate ?? 0, "unit": plan.unit]))
        } else {
            let limit = String(format: "%g", plan.ramp ?? 0)
            printNow(
                best.map {
                    "\(Int($0.rate)) \(plan.unit)/s is the highest rate of these with a p99 of at most \(limit) ms"
                } ?? "answers are late at the first rate: give a lower --rate")
        }
        return (best?.report ?? LoadReport(), best != nil)
    }
}
