import Core
import Foundation
import ServiceTestSupport
import TestSupport
import Testing
import Transport

@testable import Server

@Suite("The console")
struct ConsoleTests {
    private func makeService(_ adjust: (inout Configuration) -> Void = { _ in }) throws -> (TestService, Endpoint) {
        let service = try TestService { configuration in
            configuration.operatorEndpoints = [Endpoint(host: "127.0.0.1", port: 0)]
            adjust(&configuration)
        }
        return (service, try #require(service.service.operatorEndpoints.first))
    }

    private func status(_ answer: String) -> String {
        String(answer.prefix { $0 != "\r\n" }.dropFirst("HTTP/1.1 ".count).prefix(3))
    }

    // MARK: What a browser is told

    @Test("Every page of the console tells browsers to load, run, frame and keep nothing that is not its own")
    func securityFields() throws {
        let (service, endpoint) = try makeService { $0.showsRecords = true }
        for path in ConsoleSite.paths + ConsoleSite.parts + ConsoleSite.recordPaths {
            let page = try PageVisitor.page(path, of: endpoint)
            let policy = page.fields.first { $0.hasPrefix("Content-Security-Policy: ") }
            let rules = Set((policy ?? "").dropFirst("Content-Security-Policy: ".count).components(separatedBy: "; "))
            #expect(
                rules == [
                    "default-src 'none'", "style-src 'self'", "script-src 'self'", "img-src 'self'",
                    "connect-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
                ], "\(path)")
            for field in [
                "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer", "Cache-Control: no-store",
                "Cross-Origin-Resource-Policy: same-origin", "Cross-Origin-Opener-Policy: same-origin",
            ] { #expect(page.fields.contains(field), "\(path): \(field)") }
        }
        withExtendedLifetime(service) {}
    }

    @Test("No page has a script or a style of its own, or loads anything from elsewhere")
    func noInlineParts() throws {
        let (service, endpoint) = try makeService { $0.showsRecords = true }
        for path in ConsoleSite.paths + ["/collaborations", "/shelf", "/principals"] {
            let page = try PageVisitor.page(path, of: endpoint)
            #expect(page.status == 200 && page.fields.contains("Content-Type: text/html; charset=utf-8"))
            let body = page.body.replacingOccurrences(of: "<script src=\"/console.js\" defer></script>", with: "")
            for forbidden in ["<script", "<style", " style=", " on", "javascript:", "http:", "https:", "url("] {
                // “ on” only where an attribute would be.
                let isThere = forbidden == " on" ? body.contains(/<[^>]* on[a-z]+=/) : body.contains(forbidden)
                #expect(!isThere, "\(path) has \(forbidden)")
            }
            #expect(body.contains("<h1>") && body.contains("<html lang=\"en\">") && body.contains("<main id=\"main\""))
        }
        for path in ConsoleSite.parts {
            let part = try PageVisitor.page(path, of: endpoint)
            let body = part.body.replacingOccurrences(of: "http://www.w3.org/2000/svg", with: "")
            #expect(part.status == 200 && !body.contains("http:") && !part.body.contains("https:"))
            #expect(!part.body.contains("innerHTML") && !part.body.contains("@import"))
        }
        withExtendedLifetime(service) {}
    }

    @Test("Without --console there are no pages of records, and none offers a look-up")
    func withoutRecords() throws {
        let (service, endpoint) = try makeService()
        for path in ConsoleSite.recordPaths {
            #expect(try PageVisitor.page(path, of: endpoint).status == 404, "\(path)")
        }
        let explain = try PageVisitor.page("/explain?sample=1", of: endpoint)
        #expect(explain.status == 404)
        let overview = try PageVisitor.page("/", of: endpoint).body
        for path in ConsoleSite.recordPaths { #expect(!overview.contains(path)) }
        #expect(try !PageVisitor.page("/explain", of: endpoint).body.contains("name=\"collaboration\""))
        withExtendedLifetime(service) {}
    }

    @Test("Pages of records without an address for them keep the service from starting")
    func withoutAddress() {
        let failure = thrown(StartupFailure.self) { _ = try TestService { $0.showsRecords = true } }
        guard case .consoleWithoutOperator? = failure else {
            Issue.record("\(failure.map { "\($0)" } ?? "it has started")")
            return
        }
        #expect(failure?.description == "--console is for --operator, which is not given")
    }

    @Test("The overview has the checks of readiness, the plots and the tables, and is live")
    func overview() throws {
        let (service, endpoint) = try makeService()
        #expect(becomesTrue { (try? PageVisitor.page("/", of: endpoint).body.contains(">Ready<")) == true })
        let body = try PageVisitor.page("/", of: endpoint).body
        #expect(body.contains("<main id=\"main\" tabindex=\"-1\" data-live>"))
        for check in ["drain", "storage", "writer", "room", "disk", "workers", "proof", "certificate"] {
            #expect(body.contains("<th scope=\"row\">\(check)</th>"))
        }
        #expect(body.components(separatedBy: "<figure>").count == 10)
        #expect(body.components(separatedBy: "role=\"img\" aria-label=\"").count == 10)
        service.service.resources.rootSets.health.report(.damaged, "a test says so")
        let damaged = try PageVisitor.page("/", of: endpoint).body
        #expect(damaged.contains("Not ready: storage"))
        #expect(
            becomesTrue {
                (try? PageVisitor.page("/", of: endpoint).body.contains("<li>the storage is damaged</li>")) == true
            })
    }

    // MARK: Who may read

    @Test(
        "A host that is not this machine gets no page of the console, and figures and probes all the same",
        arguments: [
            ("localhost", true), ("LOCALHOST:7571", true), ("127.0.0.1", true), ("127.1.2.3:80", true),
            ("[::1]", true), ("[::1]:7571", true), ("", false), ("example.com", false),
            ("127.0.0.1.example.com", false),
            ("localhost.example.com", false), ("localhost@example.com", false), ("192.168.1.2:7571", false),
            ("[::2]", false), ("127.0.0.1:1:2", false), ("unix:/localhost", false), ("0x7f.1", false), ("a b", false),
        ])
    func hosts(_ host: String, _ isAllowed: Bool) throws {
        #expect(ConsoleVisitor.isLocal(host) == isAllowed)
        let (service, endpoint) = try makeService { $0.showsRecords = true }
        func get(_ path: String) throws -> String {
            status(try PageVisitor.answer(of: endpoint, to: ["GET \(path) HTTP/1.1\r\nHost: \(host)\r\n\r\n"]))
        }
        for path in ["/", "/console.js", "/collaborations"] {
            #expect(try get(path) == (isAllowed ? "200" : "421"), "\(path)")
        }
        for path in ["/livez", "/metrics", "/debug/requests"] { #expect(try get(path) == "200") }
        #expect(try get("/readyz") != "421")
        withExtendedLifetime(service) {}
    }

    @Test("A host in the target counts, and who names none gets no page for people")
    func targetHosts() throws {
        let (service, endpoint) = try makeService()
        for (head, code) in [
            ("GET http://example.com/ HTTP/1.1\r\nHost: localhost", "421"),
            ("GET http://localhost/ HTTP/1.1\r\nHost: example.com", "200"), ("GET / HTTP/1.0", "421"),
            ("GET /livez HTTP/1.0", "200"),
            ("HEAD / HTTP/1.1\r\nHost: example.com", "421"), ("POST /explain HTTP/1.1\r\nHost: example.com", "421"),
        ] {
            #expect(try status(PageVisitor.answer(of: endpoint, to: [head + "\r\n\r\n"])) == code, "\(head)")
        }
        withExtendedLifetime(service) {}
    }

    @Test(
        "A form of another site's page is not taken",
        arguments: [
            (["Sec-Fetch-Site: same-origin", "Origin: null"], "200"), (["Sec-Fetch-Site: same-origin"], "200"),
            ([], "200"), (["Origin: http://localhost:7571"], "200"), (["Sec-Fetch-Site: cross-site"], "403"),
            (["Sec-Fetch-Site: same-site"], "403"), (["Sec-Fetch-Site: none"], "403"), (["Origin: null"], "403"),
            (["Origin: http://example.com"], "403"), (["Origin: http://localhost:80"], "403"),
            (["Origin: http://localhost:7571", "Origin: http://localhost:7571"], "403"),
            (["Origin: http://localhost:7571", "Sec-Fetch-Site: cross-site"], "403"),
        ])
    func foreignForms(_ fields: [String], _ code: String) throws {
        let (service, endpoint) = try makeService()
        let answer = try PageVisitor.answer(
            of: endpoint,
            to: [PageVisitor.form("/explain", "proof=%7B%7D", host: "localhost:7571", fields)])
        #expect(status(answer) == code)
        withExtendedLifetime(service) {}
    }

    // MARK: Forms

    @Test("A form is read up to its limit, in pieces too, and refused above it")
    func lengthOfForms() throws {
        let (service, endpoint) = try makeService()
        let limit = Limits.consoleFormBytesMax
        func form(_ count: Int) -> String {
            PageVisitor.form("/explain", "proof=" + String(repeating: "x", count: count - 6))
        }
        let longest = form(limit)
        let answer = try PageVisitor.answer(
            of: endpoint, to: [String(longest.prefix(40)), String(longest.dropFirst(40).dropLast()), "x"])
        #expect(status(answer) == "200" && answer.contains("malformed: "))
        #expect(try status(PageVisitor.answer(of: endpoint, to: [form(limit + 1)])) == "413")
        // What follows the body is another request, and gets no answer.
        let two = try PageVisitor.answer(of: endpoint, to: [form(9) + form(9)])
        #expect(two.components(separatedBy: "HTTP/1.1 ").count == 2)
        withExtendedLifetime(service) {}
    }

    @Test(
        "A body needs a length, a type and an encoding",
        arguments: [
            ("Content-Type: application/x-www-form-urlencoded", "", "411"),
            ("Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked", "0\r\n\r\n", "411"),
            (
                "Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\nContent-Length: 1",
                "a", "411"
            ),
            ("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: -1", "", "400"),
            ("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1\r\nContent-Length: 1", "a", "400"),
            ("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 99999999999999999999", "a", "413"),
            ("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3", "a=%", "400"),
            ("Content-Type: text/plain\r\nContent-Length: 3", "a=b", "415"), ("Content-Length: 3", "a=b", "415"),
            ("Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\nContent-Length: 0", "", "400"),
        ])
    func bodies(_ fields: String, _ body: String, _ code: String) throws {
        let (service, endpoint) = try makeService()
        let head = "POST /explain HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n\r\n"
        #expect(try status(PageVisitor.answer(of: endpoint, to: [head + body])) == code)
        withExtendedLifetime(service) {}
    }

    @Test("A body that does not arrive in time gets its status, and other methods are refused")
    func lateBodies() throws {
        let (service, endpoint) = try makeService()
        let late = try PageVisitor.answer(
            of: endpoint, to: [String(PageVisitor.form("/explain", "proof=xxxx").dropLast())])
        #expect(status(late) == "408")
        for (request, methods) in [
            ("PUT /explain", "GET, HEAD, POST"), ("POST /", "GET, HEAD"), ("POST /metrics", "GET, HEAD"),
        ] {
            let answer = try PageVisitor.answer(of: endpoint, to: ["\(request) HTTP/1.1\r\nHost: localhost\r\n\r\n"])
            #expect(status(answer) == "405" && answer.contains("\r\nAllow: \(methods)\r\n"), "\(request)")
        }
        withExtendedLifetime(service) {}
    }

    // MARK: History

    @Test("The history keeps so many moments, the newest ones, and takes rates from the samples")
    func history() throws {
        let seconds = Shared<UInt64>(0)
        let history = ServiceHistory {
            let now = seconds.value
            var requests = PowerHistogram.durations
            requests.add(1_000_000, times: 100 * now)
            var passes = PowerHistogram(of: .items, exponents: 0...8)
            passes.add(4, times: 10 * now)
            return ServiceHistory.Counted(
                sample: ServiceSample(figures: [
                    "uptime-milliseconds": 1000 * now, "verdict-granted": 30 * now, "verdict-bad-key": 10 * now,
                    "requests": 100 * now, "connections": 7,
                ]), requests: requests, passes: passes, commits: .durations)
        }
        #expect(history.present.moments.isEmpty)
        for second in 1...UInt64(Limits.historyMoments + 5) {
            seconds.with { $0 = second }
            history.observe()
        }
        let present = history.present
        #expect(present.moments.count == Limits.historyMoments)
        let last = try #require(present.moments.last)
        #expect(last.proofs == 40 && last.granted == 30 && last.refused == 10 && last.requests == 100)
        #expect(last.passes == 10 && last.proofsPerPass == 4 && last.connections == 7)
        let half = try #require(last.halfWithin)
        #expect(half > 0.0005 && half < 0.002)
        #expect(last.halfDurable == nil && last.usedBytes == nil && last.mutations == nil)
        #expect(present.view.sample["uptime-milliseconds"] == 1000 * UInt64(Limits.historyMoments + 5))
        // A service that was started again has no negative rates.
        seconds.with { $0 = 1 }
        history.observe()
        #expect(history.present.moments.last?.proofs == 40)
    }
}

extension PageVisitor {
    /// A form as a browser sends it.
    static func form(
        _ target: String, _ body: String, host: String = "localhost", _ fields: [String] = []
    ) -> String {
        let lines =
            [
                "POST \(target) HTTP/1.1", "Host: \(host)", "Content-Type: application/x-www-form-urlencoded",
                "Content-Length: \(body.utf8.count)",
            ] + fields
        return lines.joined(separator: "\r\n") + "\r\n\r\n" + body
    }
}
