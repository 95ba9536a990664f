import Core
import Dispatch
import Foundation
import Identity
import RootgateClient
import ServiceTestSupport
import TLS
import TestSupport
import Testing
import Transport
import Verification

@testable import Server

@Suite("The operator's pages", .serialized)
struct OperatorTests {
    private func makeService(
        calendar: TestCalendar? = nil, _ adjust: (inout Configuration) -> Void = { _ in }
    ) throws -> TestService {
        try TestService(calendar: calendar) { configuration in
            configuration.operatorEndpoints = [Endpoint(host: "127.0.0.1", port: 0)]
            adjust(&configuration)
        }
    }

    /// The faults that a page names, by check, and whether its status fits them.
    private func faults(_ path: String, _ service: TestService) throws -> [String: String] {
        let endpoint = try #require(service.service.operatorEndpoints.first)
        let page = try PageVisitor.page(path, of: endpoint)
        #expect(page.fields.contains("Content-Type: text/plain; charset=utf-8"))
        #expect(page.body.hasSuffix("\n"))
        var faults: [String: String] = [:]
        for line in page.body.dropLast().split(separator: "\n", omittingEmptySubsequences: false) {
            let words = line.split(separator: " ", maxSplits: 1).map(String.init)
            try #require(words.count == 2, "\(line)")
            if words[1] == "ok" { continue }
            try #require(words[1].hasPrefix("failed: "), "\(line)")
            faults[words[0]] = String(words[1].dropFirst("failed: ".count))
        }
        #expect(page.status == (faults.isEmpty ? 200 : 503))
        return faults
    }

    @Test("A service that serves is live, and ready as soon as a proof of its own was verified")
    func ready() throws {
        let service = try makeService()
        #expect(try faults("/livez", service).isEmpty)
        #expect(
            becomesTrue { (try? faults("/readyz", service).isEmpty) == true },
            "\((try? faults("/readyz", service)) ?? [:])")
        let endpoint = try #require(service.service.operatorEndpoints.first)
        let names = try PageVisitor.page("/readyz?verbose", of: endpoint).body.split(separator: "\n").map {
            String($0.prefix { $0 != " " })
        }
        #expect(names == ["drain", "storage", "writer", "room", "disk", "workers", "proof", "certificate"])
        #expect(try PageVisitor.page("/livez/", of: endpoint).status == 404)
    }

    @Test("Proofs of the service's own are granted again and again, and challenges are forgotten when they expire")
    func ownProofs() throws {
        let service = try makeService()
        let time = Shared<UInt64>(0)
        let proof = OwnProof(
            service.service.pool, service.service.resources.signatures, clock: MonotonicClock { time.value },
            random: .system)
        for round in 1...60 {
            proof.verifyOne()
            #expect(becomesTrue { proof.state.count == round })
            #expect(proof.state == OwnProof.State(granted: time.value, fault: nil, count: UInt64(round)))
            time.with { $0 += 1000 }
        }
    }

    @Test("The handbook lists the pages and their checks")
    func handbook() throws {
        let document = try ProtocolDocument("deploy/handbook/operating.md")
        func names(_ heading: String) -> [String] {
            document.table(under: heading).map { $0[0].trimmingCharacters(in: ["`"]) }
        }
        #expect(names("Pages") == OperatorSite.paths)
        let scratch = ScratchDirectory()
        let service = try makeService { $0.auditPath = scratch.path + "/audit.jsonl" }
        let endpoint = try #require(service.service.operatorEndpoints.first)
        for (path, heading) in [("/livez", "Liveness"), ("/readyz", "Readiness")] {
            let lines = try PageVisitor.page(path, of: endpoint).body.split(separator: "\n")
            // This service is alone.
            #expect(lines.map { String($0.prefix { $0 != " " }) } == names(heading).filter { $0 != "cluster" })
        }
        for path in OperatorSite.paths { #expect(try PageVisitor.page(path, of: endpoint).status != 404) }
    }

    @Test("A damaged storage makes the service unready, and leaves it live")
    func damaged() throws {
        let service = try makeService()
        #expect(becomesTrue { (try? faults("/readyz", service).isEmpty) == true })
        service.service.resources.rootSets.health.report(.damaged, "a test\nsays so")
        #expect(try faults("/readyz", service) == ["storage": "the storage is damaged: see the service's log"])
        #expect(try faults("/livez", service).isEmpty)
    }

    @Test("An audit that can't be written makes the service unready, and leaves it live")
    func audit() async throws {
        let scratch = ScratchDirectory()
        let service = try makeService { $0.auditPath = scratch.path + "/audit.jsonl" }
        #expect(becomesTrue { (try? faults("/readyz", service).isEmpty) == true })
        try FileManager.default.removeItem(atPath: scratch.path)
        let client = try service.client()
        await #expect(throws: ServiceError(.storageFailed, "")) {
            try await client.createCollaboration(try #require(CollaborationIdentifier("deck")))
        }
        let found = try faults("/readyz", service)
        #expect(found.keys.sorted() == ["audit"] && found["audit"]?.contains("the audit can't be written") == true)
        #expect(try self.faults("/livez", service).isEmpty)
    }

    @Test("Workers that hang and a shutdown that waits are named, and the pages are served until its end")
    func hanging() async throws {
        let service = try makeService { $0.workers = 1 }
        #expect(becomesTrue { (try? faults("/readyz", service).isEmpty) == true })
        let release = DispatchSemaphore(value: 0)
        let isHanging = Shared(false)
        #expect(
            service.service.pool.submit(from: WorkSource()) {
                isHanging.with { $0 = true }
                release.wait()
            })
        #expect(becomesTrue { isHanging.value })
        let begin = ContinuousClock.now
        #expect(becomesTrue { (try? faults("/readyz", service).count) == 2 })
        #expect(.now - begin > .milliseconds(Limits.workerSilentMilliseconds) - .seconds(2))
        #expect(try Set(faults("/readyz", service).keys) == ["workers", "proof"])
        #expect(try faults("/readyz", service)["workers"]?.hasPrefix("worker 0 has been silent for ") == true)
        #expect(try faults("/livez", service).isEmpty)
        release.signal()
        #expect(
            becomesTrue { (try? faults("/readyz", service).isEmpty) == true },
            "\((try? faults("/readyz", service)) ?? [:])")

        isHanging.with { $0 = false }
        #expect(
            service.service.pool.submit(from: WorkSource()) {
                isHanging.with { $0 = true }
                release.wait()
            })
        #expect(becomesTrue { isHanging.value })
        let endpoint = try #require(service.service.operatorEndpoints.first)
        let running = service.service
        async let ending = Task.detached { running.shutDown() }.value
        #expect(
            becomesTrue { (try? PageVisitor.page("/readyz", of: endpoint).body.hasPrefix("drain failed: ")) == true })
        release.signal()
        #expect(await ending == .drained)
        #expect(throws: ServiceError.self) { try PageVisitor.page("/readyz", of: endpoint) }
    }

    @Test("A certificate that is about to expire makes the service unready")
    func certificate() throws {
        let directory = ScratchDirectory()
        let paths = try SimulatedAuthority().issue().write(to: directory.path, as: "server")
        // It is valid for an hour from now.
        let now = Int(Date().timeIntervalSince1970 * 1000)
        for (minutes, fault) in [(-10, nil), (30, "the certificate expires in "), (70, "the certificate has expired")] {
            let service = try makeService(calendar: TestCalendar(milliseconds: now + minutes * 60_000)) {
                $0.tls = ServerTLSSettings(certificatePath: paths.certificate, keyPath: paths.key)
            }
            #expect(becomesTrue { (try? faults("/readyz", service)["proof"]) == nil })
            let found = try faults("/readyz", service)["certificate"]
            #expect(found?.prefix(fault?.count ?? 0) == fault?.prefix(.max), "\(minutes) min: \(found ?? "no fault")")
        }
    }

    @Test(
        "Addresses that other machines could reach are refused without a certificate",
        arguments: ["0.0.0.0", "::", "192.0.2.1", "example"])
    func openAddresses(_ host: String) {
        let failure = thrown(StartupFailure.self) {
            _ = try makeService {
                $0.operatorEndpoints = [Endpoint(host: host, port: 0)]
                $0.allowsPlainText = true
            }
        }
        guard case .openOperator? = failure else {
            Issue.record("\(failure.map { "\($0)" } ?? "it has started")")
            return
        }
        #expect(failure?.description.contains("or --operator 127.0.0.1:PORT or unix:/PATH") == true)
    }

    @Test(
        "Addresses of the service's own that are the same port are named, and others are not",
        arguments: [
            ("0.0.0.0", "127.0.0.1", true), ("127.0.0.1", "0.0.0.0", true), ("127.0.0.1", "127.0.0.1", true),
            ("::", "::1", true), ("::", "127.0.0.1", false), ("127.0.0.1", "127.0.0.2", false),
            ("localhost", "127.0.0.1", true), ("::1", "LOCALHOST", true), ("localhost", "0.0.0.0", true),
            ("0.0.0.0", "::1", false),
        ])
    func overlaps(_ first: String, _ second: String, _ isRefused: Bool) throws {
        let free = try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0))
        let port = free[0].endpoint.port
        for listener in free { listener.close() }
        var configuration = Configuration(dataDirectory: "unused", workers: 1)
        configuration.endpoints = [Endpoint(host: first, port: port)]
        configuration.associationEndpoint = Endpoint(host: second, port: port)
        configuration.allowsPlainText = true
        let failure = thrown(StartupFailure.self) { try Service.check(configuration) }
        #expect((failure != nil) == isRefused, "\(failure.map { "\($0)" } ?? "")")
        if isRefused { #expect(failure?.description.contains("are both this service's own") == true) }
        configuration.associationEndpoint = Endpoint(host: second, port: port - 1)
        #expect(thrown(StartupFailure.self) { try Service.check(configuration) } == nil)
    }

    @Test("The pages are served at several addresses, and a local socket's file is removed at the end")
    func addresses() throws {
        let folder = ScratchDirectory()
        let path = folder.path + "/operator"
        let service = try makeService { $0.operatorEndpoints.append(Endpoint(path: path)) }
        #expect(service.service.operatorEndpoints.count == 2)
        for endpoint in service.service.operatorEndpoints {
            #expect(try PageVisitor.page("/livez", of: endpoint).status == 200)
        }
        service.stop()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("A report has a line for each check and names each reason")
    func report() {
        let good = ReadinessReport([("a", nil), ("b", nil)])
        #expect(good.page.status == .ok && good.page.body == Array("a ok\nb ok\n".utf8))
        let bad = ReadinessReport([("a", "no\r\nroom"), ("b", nil)])
        #expect(bad.page.status == .unavailable && bad.page.body == Array("a failed: no room\nb ok\n".utf8))
    }

    @Test("A worker is asked once until it answers, and the most silent one is named")
    func pulse() {
        let time = Shared<UInt64>(1000)
        let asked = Shared<[[@Sendable () -> Void]]>([[], []])
        let workers = (0..<2).map { number -> WorkerPulse.Asking in
            { answer in asked.with { $0[number].append(answer) } }
        }
        let pulse = WorkerPulse(workers, clock: MonotonicClock { time.value })
        for _ in 0..<3 { pulse.ask() }
        #expect(asked.value.map(\.count) == [1, 1])
        time.with { $0 = 4000 }
        asked.value[1][0]()
        time.with { $0 = 5000 }
        #expect(pulse.mostSilent?.worker == 0)
        #expect(pulse.mostSilent?.milliseconds == 4000)
        pulse.ask()
        #expect(asked.value.map(\.count) == [1, 2])
        asked.value[0][0]()
        #expect(pulse.mostSilent?.worker == 1)
        #expect(pulse.mostSilent?.milliseconds == 1000)
    }
}
