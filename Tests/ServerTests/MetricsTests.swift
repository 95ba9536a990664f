import Core
import Foundation
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Transport

@testable import Server

@Suite("Metrics and the slowest requests")
struct MetricsTests {
    private func makeService() throws -> TestService {
        try TestService { $0.operatorEndpoints = [Endpoint(host: "127.0.0.1", port: 0)] }
    }

    private func metrics(_ service: TestService) throws -> (page: OpenMetricsReader, text: String) {
        let page = try PageVisitor.page("/metrics", of: try #require(service.service.operatorEndpoints.first))
        #expect(page.status == 200)
        #expect(
            page.fields.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8"))
        return (try OpenMetricsReader(page.body), page.body)
    }

    @Test("Counts and histograms agree with what was done, and name nobody")
    func counts() async throws {
        let service = try makeService()
        let small = try await SmallCollaboration(try service.client(), named: "very-secret-name")
        let requests = try await small.proofs(300)
        #expect(try await small.client.verify(requests).allSatisfy { $0.verdict == .granted })
        for request in try await small.proofs(5) {
            #expect(try await small.client.verify(request.proof, in: small.collaboration) == .granted)
        }
        #expect(try await small.client.verify(requests[0].proof, in: small.collaboration) == .challengeReplayed)
        // A request is counted when its answer is on its way.
        var (page, text) = try metrics(service)
        let deadline = ContinuousClock.now + .seconds(20)
        while page.value("rootgate_request_duration_seconds_count", ["role": "verify"]) != 9, .now < deadline {
            (page, text) = try metrics(service)
        }
        #expect(page.value("rootgate_request_duration_seconds_count", ["role": "verify"]) == 9)
        #expect(page.value("rootgate_request_duration_seconds_count", ["role": "enrol"]) == 2)
        #expect(page.value("rootgate_request_duration_seconds_count", ["role": "administer"]) == 0)
        #expect(page.value("rootgate_verdicts_total", ["verdict": "granted"]) == 305)
        #expect(page.value("rootgate_verdicts_total", ["verdict": "challenge-replayed"]) == 1)
        #expect(page.value("rootgate_pass_proofs_sum") == 306)
        let passes = try #require(page.value("rootgate_pass_proofs_count"))
        #expect(passes >= 7 && passes == page.value("rootgate_pass_duration_seconds_count"))
        #expect(page.value("rootgate_pass_stage_duration_seconds_count", ["stage": "spend"]) == passes)
        let commits = try #require(page.value("rootgate_commits_total"))
        #expect(commits >= 1 && page.value("rootgate_commit_mutations_count") == commits)
        #expect(page.value("rootgate_commit_mutations_sum") == page.value("rootgate_mutations_total"))
        #expect(try #require(page.value("rootgate_commit_write_duration_seconds_sum")) > 0)
        #expect(page.value("rootgate_request_stage_duration_seconds_count", ["stage": "committing"]) == 2)
        #expect(page.value("rootgate_collaborations") == 1)
        #expect(page.value("rootgate_build_info", ["version": Service.version]) == 1)
        #expect(!text.contains("secret"))
        let endpoint = try #require(service.service.operatorEndpoints.first)
        let slowest = try PageVisitor.page("/debug/requests", of: endpoint)
        #expect(slowest.status == 200 && !slowest.body.contains("secret"))
        #expect(slowest.body.contains("createCollaboration, request ") && slowest.body.contains(", committing "))
        #expect(slowest.body.contains("verify, 1 requests of one proof: queued "))
        #expect(slowest.body.split(separator: "\n").count <= Limits.slowestPerMinute * Limits.slowestMinutes)
    }

    @Test("Every figure of the statistics is in one metric, and the handbook lists every metric")
    func everyFigure() async throws {
        let service = try makeService()
        let client = try service.client()
        var figures = try await client.statistics()
        #expect(figures.count > 50)
        var text = MetricsText()
        for metric in FigureMetric.all {
            let count = figures.count
            metric.write(&figures, to: &text)
            let mayLack = metric.name == "kernel_rate" || metric.name.hasPrefix("cluster_")
            #expect(figures.count < count || mayLack, "\(metric.name) has no figure")
        }
        #expect(figures.map(\.name) == [])
        _ = try OpenMetricsReader(String(decoding: text.finished(), as: UTF8.self))

        let listed = try ProtocolDocument("deploy/handbook/operating.md").table(under: "Metrics").map {
            $0[0].trimmingCharacters(in: ["`"])
        }
        let optional: Set = [
            "rootgate_tls_handshakes", "rootgate_tls_certificate_end_timestamp_seconds", "rootgate_kernel_rate",
            // `AlertFilesTests` sees them, with an etcd.
            "rootgate_cluster_segment", "rootgate_cluster_behind_seconds", "rootgate_cluster_foreign_secrets",
        ]
        let served = try metrics(service).page.families.map(\.name)
        #expect(Set(served).subtracting(optional) == Set(listed).subtracting(optional))
        #expect(optional.isSubset(of: listed))
        #expect(Set(listed).count == listed.count)
    }

    @Test("Labels and helps are escaped, and numbers keep their value")
    func escapes() throws {
        let value = "a\"b\\c\nd"
        var text = MetricsText()
        text.gauge("odd", value, [([("x", value), ("y", "")], 0.5)])
        text.counter("big", "Big.", .max)
        text.gauge("small_bytes", "Small.", -12)
        let reader = try OpenMetricsReader(String(decoding: text.finished(), as: UTF8.self))
        #expect(reader.value("rootgate_odd", ["x": value, "y": ""]) == 0.5)
        #expect(reader.families.first?.help == value)
        #expect(reader.value("rootgate_big_total") == Double(UInt64.max))
        #expect(reader.value("rootgate_small_bytes") == -12)
    }

    @Test(
        "The reader of these tests refuses what the format does not allow",
        arguments: [
            "", "# TYPE a gauge\n# HELP a b\na 1\n", "# HELP a b\na 1\n# EOF\n", "# TYPE a gauge\na 1\n# EOF\n",
            "# TYPE a gauge\n# HELP a b\na{x=\"1\",x=\"2\"} 1\n# EOF\n",
            "# TYPE a gauge\n# HELP a b\na 1\na 1\n# EOF\n",
            "# TYPE a counter\n# HELP a b\na 1\n# EOF\n",
            "# TYPE a_total counter\n# HELP a_total b\na_total 1\n# EOF\n",
            "# TYPE a_seconds gauge\n# HELP a_seconds b\na_seconds 1\n# EOF\n",
            "# TYPE a gauge\n# HELP a b\na one\n# EOF\n", "# TYPE a gauge\n# HELP a b\n\na 1\n# EOF\n",
            "# TYPE a histogram\n# HELP a b\na_bucket{le=\"1.0\"} 2\na_bucket{le=\"+Inf\"} 1\n"
                + "a_count 1\na_sum 1\n# EOF\n",
            "# TYPE a histogram\n# HELP a b\na_bucket{le=\"1.0\"} 1\na_count 1\na_sum 1\n# EOF\n",
            "# TYPE a gauge\n# HELP a b\na 1\n# TYPE b gauge\n# HELP b b\nb 1\n# HELP a c\n# EOF\n",
        ])
    func strictness(_ text: String) {
        #expect(throws: OpenMetricsReader.Fault.self) { _ = try OpenMetricsReader(text) }
    }

    @Test("The slowest requests of each minute are kept, and the oldest minute is forgotten")
    func slowest() {
        let slowest = SlowestRequests(date: { Date(timeIntervalSince1970: 0) })
        func note(_ milliseconds: UInt64) {
            var times = StageTimes(.queued, now: 0)
            times.begin(.suspended, now: milliseconds * 1_000_000)
            times.begin(.answering, now: 3_600_000_000_000)
            slowest.note(times) { "number \(milliseconds)" }
        }
        func numbers() -> [Int] {
            String(decoding: slowest.page.body, as: UTF8.self).split(separator: "\n").compactMap { line in
                line.split(separator: "number ").last.flatMap { Int($0.prefix { $0.isNumber }) }
            }
        }
        for number in (1...100).shuffled() { note(UInt64(number)) }
        #expect(numbers() == Array((85...100).reversed()))
        slowest.beginMinute()
        note(3)
        #expect(numbers() == Array((85...100).reversed()) + [3])
        for _ in 0..<Limits.slowestMinutes - 1 { slowest.beginMinute() }
        #expect(numbers() == [3])
        let line = "Thu, 01 Jan 1970 00:00:00 GMT 3.000 ms number 3: queued 3.000, suspended 3599997.000\n"
        #expect(slowest.page.body == Array(line.utf8))
        slowest.beginMinute()
        #expect(numbers() == [])
    }

    @Test("A request is counted under its role and in its stages, and its wait for a change is no time of its own")
    func meter() {
        let meter = RequestMeter(date: { Date(timeIntervalSince1970: 0) })
        let (one, other) = (Shared(0), Shared(0))
        var times = StageTimes(now: 1000)
        times.begin(.queued, now: 3000)
        times.begin(.suspended, now: 6000)
        times.begin(.queued, now: 1_000_000)
        times.begin(.answering, now: 1_000_001)
        #expect(times[.decoding] == 2000 && times[.queued] == 3001 && times.busy == 5001)
        meter.count(times, .collaborate, of: ObjectIdentifier(one)) { "a" }
        meter.count(times, .collaborate, requests: 3, of: ObjectIdentifier(other)) { "b" }
        let figures = meter.figures
        #expect(figures.durations(of: .collaborate).count == 4)
        #expect(figures.durations(of: .collaborate).sum == 4 * 5001)
        #expect(figures.durations(of: nil).count == 0)
        #expect(figures.durations(in: .queued).sum == 4 * 3001)
        #expect(figures.durations(in: .suspended).sum == 4 * 994_000)
        #expect(figures.durations(in: .committing).count == 0)
        #expect(RequestMeter.role(of: .verify, named: nil) == .verify)
        #expect(RequestMeter.role(of: .collaborate, named: "readNotices") == .collaborate)
        #expect(RequestMeter.role(of: .collaborate, named: nil) == nil)
        #expect(RequestMeter.role(of: .ping, named: nil) == nil)
        #expect(RequestMeter.role(of: nil, named: nil) == nil)
    }
}
