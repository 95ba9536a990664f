import Core
import Foundation
import LoadHarness
import RootgateClient

/// `rootgate load --notices`: posts notices to live followers and counts every notice where it arrives.
func driveNotices(_ arguments: Arguments) async throws -> ExitCode {
    let services = try serverOptions(arguments)
    guard let service = services.first, services.count == 1 else { throw UsageError("--notices takes one --server") }
    var plan = NoticeLoad.Plan()
    plan.connections = try arguments.number("connections", in: 1...4096)
    if arguments.text("collaborations") != nil {
        plan.collaborations = try arguments.number("collaborations", in: 1...10_000)
    }
    plan.followers = try arguments.number("followers", in: 1...65_536)
    plan.batch = try arguments.number("events", in: 1...Limits.noticesPerPostMax)
    guard plan.followers <= plan.connections * Limits.followsPerConnectionMax else {
        throw UsageError("a connection takes \(Limits.followsPerConnectionMax) followers: give more --connections")
    }
    let rate = arguments.text("rate") == nil ? 10_000 : try arguments.number("rate", in: 1...10_000_000)
    let seconds = try arguments.decimal("seconds", in: 0.1...86_400)
    let count =
        arguments.text("count") == nil
        ? Int(Double(rate) * seconds) : try arguments.number("count", in: 1...1_000_000_000)
    let isJSON = arguments.isOn("json")
    let progress = progressMeter(arguments)
    defer { progress.end() }
    _ = arguments.text("timeout")
    try arguments.checkAllRead()
    progress.begin("starting collaborations")
    let load = try await NoticeLoad(service.endpoint, tls: service.tls, key: service.key, plan, progress)
    progress.begin("posting notices", share: 0...1)
    let report = try await load.run(count: count, perSecond: Double(rate), progress)
    progress.begin("ending the collaborations")
    await load.close()
    progress.end()
    let (median, late) = (report.latency.quantile(0.5), report.latency.quantile(0.99))
    printNow(
        isJSON
            ? try json([
                "posted": report.posted, "expected": report.expected, "delivered": report.delivered,
                "misplaced": report.misplaced, "noticesPerSecond": report.postsPerSecond,
                "latencyMilliseconds": ["p50": Double(median) / 1e6, "p99": Double(late) / 1e6],
            ])
            : """
            \(report.posted) notices posted in \(String(format: "%.2f", report.seconds)) s: \
            \(Int(report.postsPerSecond)) notices/s
            \(report.delivered) of \(report.expected) delivered to \(plan.followers) followers, \
            \(report.misplaced) twice or out of order
            until delivered: median \(String(format: "%.1f", Double(median) / 1e6)) ms, \
            99 % \(String(format: "%.1f", Double(late) / 1e6)) ms
            \(report.isComplete ? "every notice arrived, once and in order" : "NOTICES ARE MISSING OR MISPLACED")
            """)
    return report.isComplete ? .success : .refused
}
