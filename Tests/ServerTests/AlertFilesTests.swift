import Core
import EtcdTestSupport
import Foundation
import Identity
import ServiceTestSupport
import TLS
import TestSupport
import Testing
import Transport

@testable import Server

@Suite("The files for Prometheus and Grafana")
struct AlertFilesTests {
    private static func path(_ name: String) -> String { packageFile("deploy/" + name) }

    private func text(_ name: String) throws -> String {
        try String(contentsOfFile: Self.path(name), encoding: .utf8)
    }

    /// Every sample that a service may serve: with a certificate, with kernels that were measured, and as one of a
    /// cluster, where there is an etcd.
    private func served() throws -> [OpenMetricsReader.Sample] {
        var samples = try servedAlone()
        guard etcd != nil else { return samples }
        let cluster = try TestCluster(services: 1) {
            $0.operatorEndpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        }
        let endpoint = try #require(cluster.services[0].service.operatorEndpoints.first)
        let page = try OpenMetricsReader(try PageVisitor.page("/metrics", of: endpoint).body)
        samples += page.families.flatMap(\.samples)
        return samples
    }

    private func servedAlone() throws -> [OpenMetricsReader.Sample] {
        let directory = ScratchDirectory()
        let paths = try SimulatedAuthority().issue().write(to: directory.path, as: "server")
        let service = try TestService { configuration in
            configuration.operatorEndpoints = [Endpoint(host: "127.0.0.1", port: 0)]
            configuration.tls = ServerTLSSettings(certificatePath: paths.certificate, keyPath: paths.key)
        }
        let endpoint = try #require(service.service.operatorEndpoints.first)
        let page = try OpenMetricsReader(try PageVisitor.page("/metrics", of: endpoint).body)
        return page.families.flatMap(\.samples)
    }

    /// The alerts that the rules define, in order.
    private func alerts() throws -> [String] {
        try text("prometheus/rules.yml").matches(of: /- alert: (\w+)\n/).map { String($0.1) }
    }

    @Test(
        "Every metric and every label's value that the files name is one that the service serves",
        .enabled(if: etcd != nil, "there is no program etcd"))
    func names() throws {
        let samples = try served()
        let names = Set(samples.map(\.name)).union(["rootgate_kernel_rate"])
        for file in [
            "prometheus/rules.yml", "prometheus/rules.test.yml", "prometheus/dashboard.json", "handbook/alerts.md",
        ] {
            let text = try text(file)
            for name in Set(text.matches(of: /\brootgate_\w+/).map { String($0.0) }) {
                #expect(names.contains(name), "\(file) names \(name)")
            }
            for match in text.matches(of: /\b(check|verdict|reason|role|outcome)(?:=|=~|!=|!~)\\?"([^"\\]+)\\?"/) {
                let label = String(match.1)
                let values = Set(samples.compactMap { $0.labels[label] })
                // A pattern is a list of values, or the beginning of some.
                for value in match.2.split(separator: "|") {
                    let isKnown =
                        value.hasSuffix(".+")
                        ? values.contains { $0.hasPrefix(value.dropLast(2)) } : values.contains(String(value))
                    #expect(isKnown, "\(file) has \(label)=\(value)")
                }
            }
        }
        let rules = try text("prometheus/rules.yml")
        for check in Set(samples.compactMap { $0.labels["check"] }) {
            #expect(rules.contains("rootgate_ready{check=\"\(check)\"} == 0"), "no alert is about the check \(check)")
        }
    }

    @Test("Every alert has a row in the handbook and a test, and the reverse")
    func rows() throws {
        let alerts = try alerts()
        #expect(alerts.count > 20 && Set(alerts).count == alerts.count)
        let page = try ProtocolDocument("deploy/handbook/alerts.md")
        let rows = ["The service itself", "Verdicts", "The storage", "The cluster", "Clients"].flatMap {
            page.table(under: $0).map { $0[0] }
        }
        #expect(rows.sorted() == alerts.sorted())
        let tests = try text("prometheus/rules.test.yml")
        let tested = Set(tests.matches(of: /Rootgate\w+/).map { String($0.0) })
        #expect(tested == Set(alerts))
    }

    @Test("Promtool accepts the rules and the dashboard's expressions, and the tests of the rules pass")
    func promtool() throws {
        guard let promtool = programPath("promtool") else {
            print("SKIPPED: there is no promtool, so rules and dashboard are not checked")
            return
        }
        for words in [
            ["check", "rules", Self.path("prometheus/rules.yml")],
            ["test", "rules", Self.path("prometheus/rules.test.yml")],
        ] {
            let result = try runProgram(promtool, words)
            #expect(result.code == 0, "\(result.output)\(result.errors)")
        }
        let expressions = try dashboardExpressions()
        #expect(expressions.count > 30)
        let folder = ScratchDirectory()
        let rules = expressions.enumerated().map { "      - {record: 'a\($0)', expr: '\($1)'}" }
        let file = "groups:\n  - name: a\n    rules:\n" + rules.joined(separator: "\n") + "\n"
        try Data(file.utf8).write(to: URL(fileURLWithPath: folder.path + "/rules.yml"))
        let result = try runProgram(promtool, ["check", "rules", folder.path + "/rules.yml"])
        #expect(result.code == 0, "\(result.output)\(result.errors)")
    }

    /// The expressions of the dashboard, as Grafana sends them.
    private func dashboardExpressions() throws -> [String] {
        struct Dashboard: Decodable {
            struct Panel: Decodable {
                struct Target: Decodable { let expr: String }
                struct Place: Decodable { let x, y, w, h: Int }
                let id: Int
                let title: String
                let gridPos: Place
                let targets: [Target]
            }
            let panels: [Panel]
        }
        let board = try JSONDecoder().decode(Dashboard.self, from: Data(try text("prometheus/dashboard.json").utf8))
        #expect(Set(board.panels.map(\.id)).count == board.panels.count)
        #expect(Set(board.panels.map(\.title)).count == board.panels.count)
        #expect(board.panels.allSatisfy { $0.gridPos.x + $0.gridPos.w <= 24 })
        return board.panels.flatMap(\.targets).map {
            $0.expr.replacingOccurrences(of: "$__rate_interval", with: "5m")
        }
    }
}
