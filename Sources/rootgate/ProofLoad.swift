import Core
import Foundation
import LoadHarness
import RootgateClient
import Synchronization

/// Proofs of simulated people, sent to a service as a plan says.
struct ProofLoad {
    let plan: LoadPlan
    let population: Population
    let client: RootgateClient
    let run: LoadRun
    let progress: ProgressMeter

    /// Sends for the plan's time, or the plan's number of proofs.
    func drive() async throws -> (report: LoadReport, isFine: Bool) {
        (try await drive(requestsPerSecond: plan.requestsPerSecond), true)
    }

    /// `roundsMax`: how often requests are made and sent.
    private func drive(requestsPerSecond: Double?, roundsMax: Int = .max) async throws -> LoadReport {
        var report = LoadReport()
        if plan.isInclusionOnly, requestsPerSecond == nil {
            let count = max(plan.connections * plan.depth * 2, plan.people * 5 / plan.batch + 1)
            let requests = try population.inclusionRequests(count: count, batch: plan.batch)
            return await run.driveShowing(progress, of: plan, after: report) { [run, plan] in
                run.drive(requests, isRepeating: true, seconds: plan.seconds)
            }
        }
        var (sent, rounds) = (0, 0)
        while rounds < roundsMax, report.seconds < plan.seconds, sent < plan.count {
            let left = plan.seconds - report.seconds
            var size = min(plan.round, plan.count - sent)
            // What is sent on a schedule is sent as a whole.
            if let requestsPerSecond, left.isFinite {
                size = min(size, max(plan.batch, Int(left * requestsPerSecond * Double(plan.batch))))
            }
            let done = plan.seconds.isFinite ? report.seconds / plan.seconds : Double(sent) / Double(plan.count)
            progress.show("\(sent) answered, \(plan.isInclusionOnly ? "making" : "signing") \(size)", done: done)
            let requests = try await requests(size, after: sent)
            let answered = report.proofs
            report.add(
                await run.driveShowing(progress, of: plan, after: report) { [run] in
                    requestsPerSecond.map { run.drive(requests, perSecond: $0) } ?? run.drive(requests, seconds: left)
                })
            (sent, rounds) = (sent + size, rounds + 1)
            // Nobody answers any more.
            if report.proofs == answered, !report.errors.isEmpty { break }
        }
        return report
    }

    /// Requests with so many proofs, the next behind `sent` others.
    private func requests(_ size: Int, after sent: Int) async throws -> [LoadRequest] {
        guard !plan.isInclusionOnly else {
            return try population.inclusionRequests(
                count: (size + plan.batch - 1) / plan.batch, batch: plan.batch)
        }
        let challenges = try await client.takeChallenges(size)
        return try population.signedRequests(
            challenges: challenges, batch: plan.batch, invalidPercent: plan.invalidPercent
        ) { sent + $0 }
    }

    // MARK: A ramp

    /// The factor from a step's rate to the next one's.
    private static let rampFactor = 1.5
    /// The part of a step's rate that must have been answered in its time.
    private static let answeredMin = 0.9

    /// Raises the rate until answers are late: the p99 is above the limit, fewer are answered than are sent, or a
    /// request gets an error. Shows a line for each step, and the last rate at which answers were in time. Returns the
    /// report of that step, and whether there is one.
    func ramp(isJSON: Bool) async throws -> (report: LoadReport, isFine: Bool) {
        var rate = plan.rate ?? 1
        var (steps, best): ([[String: Any]], (rate: Double, report: LoadReport)?) = ([], nil)
        if !isJSON { printNow("proofs/s sent   answered    p50 us    p99 us") }
        while true {
            let report = try await drive(requestsPerSecond: rate / Double(plan.batch), roundsMax: 1)
            let late = Double(report.latency.quantile(0.99))
            let isInTime =
                late <= (plan.ramp ?? 0) * 1e6 && report.errors.isEmpty && report.wrong == 0
                && report.proofsPerSecond >= ProofLoad.answeredMin * rate
            let median = Double(report.latency.quantile(0.5))
            steps.append([
                "sentPerSecond": rate, "answeredPerSecond": report.proofsPerSecond, "p50Microseconds": median / 1000,
                "p99Microseconds": late / 1000, "inTime": isInTime, "errors": report.errors,
            ])
            if !isJSON {
                let fields = [rate, report.proofsPerSecond, median / 1000, late / 1000].map {
                    String(format: "%10.0f", $0)
                }
                printNow("  " + fields.joined(separator: " ") + (isInTime ? "" : "  late"))
            }
            if report.wrong > 0 { return (report, false) }
            guard isInTime else { break }
            best = (rate, report)
            rate *= ProofLoad.rampFactor
        }
        if isJSON {
            printNow(try json(["steps": steps, "highestInTime": best?.rate ?? 0]))
        } else {
            let limit = String(format: "%g", plan.ramp ?? 0)
            printNow(
                best.map { "\(Int($0.rate)) proofs/s is the highest rate of these with a p99 of at most \(limit) ms" }
                    ?? "answers are late at the first rate: give a lower --rate")
        }
        return (best?.report ?? LoadReport(), best != nil)
    }
}

extension LoadRun {
    /// Runs `drive`, which blocks, on a thread of its own, and shows meanwhile how far the plan is. `report` is what
    /// was sent before.
    fileprivate func driveShowing(
        _ progress: ProgressMeter, of plan: LoadPlan, after report: LoadReport,
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
