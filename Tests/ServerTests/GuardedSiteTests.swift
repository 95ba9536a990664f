import Collaboration
import Core
import Foundation
import Identity
import Principals
import RootgateClient
import ServiceTestSupport
import TLS
import TestSupport
import Testing
import Transport

@testable import Server

/// The operator's pages at an address that other machines reach. Python's `ssl` and `http.client` are the visitor.
@Suite("The operator's pages for other machines", .enabled(if: python != nil, "there is no Python"))
struct GuardedSiteTests {
    /// A service whose clients use a local socket.
    private struct Guarded {
        let authority = SimulatedAuthority()
        let directory = ScratchDirectory()
        let authorityPath: String
        let service: TestService
        private let principals: GuardedService?

        /// `hasPrincipals`: whether there is an administrator.
        init(
            demandsCertificate: Bool = false, hasPrincipals: Bool = true, clock: MonotonicClock = .system,
            _ adjust: @escaping (inout Configuration) -> Void = { _ in }
        ) async throws {
            authorityPath = try authority.write(to: directory.path)
            let paths = try authority.issue().write(to: directory.path, as: "server")
            let settings = ServerTLSSettings(
                certificatePath: paths.certificate, keyPath: paths.key,
                clientAuthoritiesPath: demandsCertificate ? authorityPath : nil)
            let clients = directory.path + "/clients"
            func configure(_ configuration: inout Configuration) {
                configuration.endpoints = [Endpoint(path: clients), Endpoint(host: "127.0.0.1", port: 0)]
                configuration.tls = settings
                configuration.operatorEndpoints = [
                    Endpoint(host: "0.0.0.0", port: 0), Endpoint(host: "127.0.0.1", port: 0),
                ]
                configuration.showsRecords = true
                adjust(&configuration)
            }
            principals = hasPrincipals ? try await GuardedService(clock: clock, configure) : nil
            service = try principals?.service ?? TestService(clock: clock, configure)
        }

        var base: GuardedService { get throws { try #require(principals) } }

        var endpoints: [Endpoint] { service.service.operatorEndpoints }

        private static let visitor = """
            import http.client, json, ssl, sys
            order = json.load(sys.stdin)
            context = ssl.create_default_context(cafile=order["authority"])
            if order["protocols"]:
                context.set_alpn_protocols(order["protocols"])
            if order["certificate"]:
                context.load_cert_chain(order["certificate"], order["key"])
            connection = http.client.HTTPSConnection("localhost", order["port"], context=context, timeout=60)
            answers = []
            for method, path, fields, body in order["requests"]:
                try:
                    connection.request(method, path, body, fields)
                    answer = connection.getresponse()
                    text = answer.read().decode()
                    answers.append([answer.status, text, answer.getheader("WWW-Authenticate") or ""])
                except (ssl.SSLError, ConnectionError) as error:
                    answers.append([0, str(error), ""])
                connection.close()
            json.dump(answers, sys.stdout)
            """

        /// Each request's status, body and challenge; a status of 0: there was no connection.
        func visit(
            _ requests: [(method: String, path: String, fields: [String: String], body: String?)],
            protocols: [String] = ["http/1.1"], certificate: (certificate: String, key: String)? = nil
        ) throws -> [(status: Int, body: String, challenge: String)] {
            let order: [String: Any] = [
                "authority": authorityPath, "protocols": protocols, "port": Int(endpoints[0].port),
                "certificate": certificate?.certificate ?? "", "key": certificate?.key ?? "",
                "requests": requests.map { [$0.method, $0.path, $0.fields, $0.body as Any? ?? NSNull()] as [Any] },
            ]
            let input = String(decoding: try JSONSerialization.data(withJSONObject: order), as: UTF8.self)
            let result = try runProgram(try #require(python), ["-c", Self.visitor], input: input)
            try #require(result.code == 0, "\(result.errors)")
            let answers = try #require(
                JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[Any]])
            return try answers.map { answer in
                (
                    try #require(answer[0] as? Int), try #require(answer[1] as? String),
                    try #require(answer[2] as? String)
                )
            }
        }

        /// The status of a page for the fields of a request.
        func status(_ path: String, _ fields: [String: String]) throws -> Int {
            try visit([("GET", path, fields, nil)])[0].status
        }
    }

    private static func basic(_ name: String, _ key: String) -> [String: String] {
        ["Authorization": "Basic " + Data("\(name):\(key)".utf8).base64EncodedString()]
    }

    private static func bearer(_ key: String) -> [String: String] { ["Authorization": "Bearer \(key)"] }

    private static let paths =
        OperatorSite.paths + ConsoleSite.parts + ["/collaborations", "/shelf", "/principals", "/nothing"]

    @Test("Nobody without a key gets a page, or learns whether there is one")
    func strangers() async throws {
        let guarded = try await Guarded()
        let answers = try guarded.visit(Self.paths.map { ("GET", $0, [:], nil) })
        for (path, answer) in zip(Self.paths, answers) {
            #expect(answer.status == 401, "\(path)")
            #expect(answer.body == answers[0].body, "\(path)")
            #expect(answer.challenge == "Basic realm=\"rootgate\", charset=\"UTF-8\"")
        }
        // On this machine they are there as before.
        #expect(try PageVisitor.page("/livez", of: guarded.endpoints[1]).status == 200)
    }

    @Test("A principal gets the pages that its roles allow, and 403 for the others")
    func roles() async throws {
        let guarded = try await Guarded()
        let every: [CollaborationPrefix] = [.every]
        let watcher = try await guarded.base.principal("watcher", [LimitedRole(.observe, prefixes: every)])
        let reader = try await guarded.base.principal(
            "reader", [PrincipalRole.observe, .enrol, .collaborate, .verify].map { LimitedRole($0, prefixes: every) })
        let narrow = try await guarded.base.principal(
            "narrow",
            PrincipalRole.allCases.filter { $0 != .administer }.map {
                LimitedRole($0, prefixes: [try #require(CollaborationPrefix("a"))])
            })
        let verifier = try await guarded.base.principal("verifier", [LimitedRole(.verify, prefixes: every)])
        let general = ["/", "/livez", "/readyz", "/metrics", "/debug/requests"]
        let parts = ["/console.css", "/console.js", "/console.svg"]
        let records = ["/collaborations", "/shelf"]
        func statuses(_ key: APIKey, _ paths: [String]) throws -> [Int] {
            // The certificate of the test expires within the hour, so the service is not ready, and says so.
            try guarded.visit(paths.map { ("GET", $0, Self.bearer(key.text), nil) }).map {
                $0.body.contains("certificate failed: ") ? 200 : $0.status
            }
        }
        #expect(try statuses(watcher, general) == [200, 200, 200, 200, 200])
        // Pages of any role are made of them.
        for key in [watcher, narrow, verifier, try guarded.base.administratorKey] {
            #expect(try statuses(key, parts) == [200, 200, 200])
        }
        #expect(try statuses(watcher, records + ["/explain", "/principals"]) == [403, 403, 403, 403])
        #expect(try statuses(reader, general + records + ["/explain"]) == [Int](repeating: 200, count: 8))
        #expect(try statuses(reader, ["/principals", "/nothing"]) == [403, 404])
        #expect(try statuses(narrow, general + records + ["/explain"]) == [Int](repeating: 403, count: 8))
        #expect(try statuses(verifier, general + ["/explain"]) == [Int](repeating: 403, count: 6))
        #expect(try statuses(guarded.base.administratorKey, ["/principals", "/metrics"]) == [200, 403])
        let refused = try guarded.visit([("GET", "/shelf", Self.bearer(watcher.text), nil)])[0]
        #expect(refused.body.contains("missing: enrol, collaborate."))
    }

    @Test("Without records a proof is explained to whoever may verify it")
    func explainWithoutRecords() async throws {
        let guarded = try await Guarded { $0.showsRecords = false }
        let roles = [PrincipalRole.observe, .verify].map { LimitedRole($0, prefixes: [.every]) }
        let key = try await guarded.base.principal("p", roles)
        #expect(try guarded.status("/explain", Self.bearer(key.text)) == 200)
        #expect(try guarded.status("/shelf", Self.bearer(key.text)) == 403)
    }

    @Test("A service without principals, which is open on this machine, shows nothing over HTTPS")
    func openService() async throws {
        let guarded = try await Guarded(hasPrincipals: false)
        for path in ["/livez", "/collaborations", "/nothing"] {
            #expect(try guarded.visit([("GET", path, [:], nil)])[0].status == 401, "\(path)")
        }
        #expect(try PageVisitor.page("/collaborations", of: guarded.endpoints[1]).status == 200)
    }

    @Test("Visitors over HTTPS who take all their places leave those of this machine, from whatever many addresses")
    func places() async throws {
        let guarded = try await Guarded()
        let holder = """
            import socket, ssl, sys
            context = ssl.create_default_context(cafile=sys.argv[1])
            context.check_hostname = False
            held = []
            for number in range(int(sys.argv[3])):
                place = (f"127.0.1.{number + 1}", 0)
                plain = socket.create_connection(("127.0.0.1", int(sys.argv[2])), source_address=place, timeout=60)
                secured = context.wrap_socket(plain)
                secured.sendall(b"GET /")
                held.append(secured)
            print("held", flush=True)
            sys.stdin.read()
            """
        let process = Process()
        let (input, output) = (Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: try #require(python))
        process.arguments =
            ["-c", holder, guarded.authorityPath, "\(guarded.endpoints[0].port)", "\(Limits.visitorsMax + 1)"]
        (process.standardInput, process.standardOutput) = (input, output)
        try process.run()
        defer {
            // It ends at the end of its input.
            try? input.fileHandleForWriting.close()
            process.waitUntilExit()
        }
        // The line may come in two pieces.
        try #require(String(decoding: output.fileHandleForReading.availableData, as: UTF8.self).hasPrefix("held"))
        #expect(try PageVisitor.page("/livez", of: guarded.endpoints[1]).status == 200)
        #expect(try guarded.status("/livez", [:]) == 503)
    }

    @Test("Refusals are in the audit with the principal, the peer and the path, and wrong keys as those of a page")
    func audit() async throws {
        let folder = ScratchDirectory()
        let path = folder.path + "/audit.jsonl"
        let guarded = try await Guarded { $0.auditPath = path }
        let key = try await guarded.base.principal("p", [LimitedRole(.observe, prefixes: [.every])])
        let other = try await guarded.base.principal("q", [])
        #expect(try guarded.status("/shelf", Self.bearer(key.text)) == 403)
        #expect(try guarded.status("/livez", Self.basic("p", other.text)) == 401)
        #expect(try guarded.status("/livez", Self.bearer(APIKey.random().text)) == 401)
        guarded.service.stop()
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map { line in
            try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
        let pages = lines.filter { $0["what"] as? String == "page" }
        #expect(pages.map { $0["outcome"] as? String } == ["role-missing", "key-refused", "key-refused"])
        #expect(pages.allSatisfy { ($0["peer"] as? String)?.hasPrefix("127.0.0.1:") == true })
        #expect(pages.first?["who"] as? String == "p")
        let missing = "missing over everything: enrol, collaborate; the path is /shelf"
        #expect(pages.first?["detail"] as? String == missing)
        #expect(lines.last?["what"] as? String == "stop" && lines.last?["sequence"] as? Int ?? 0 > 2)
        // A key with another principal's name was not used.
        #expect(!lines.contains { $0["who"] as? String == "q" && $0["what"] as? String == "firstUse" })
    }

    @Test("To explain a proof costs as much as to verify it")
    func limits() async throws {
        let guarded = try await Guarded()
        var limits = PrincipalLimits()
        limits.proofsPerSecond = 1
        let roles = [PrincipalRole.observe, .verify, .enrol, .collaborate].map { LimitedRole($0, prefixes: [.every]) }
        let key = try await guarded.base.principal("p", roles, limits: limits)
        let answers = try guarded.visit(
            (0..<2 * Limits.burstSeconds + 20).map { _ in ("GET", "/explain", Self.bearer(key.text), nil) })
        #expect(answers.first?.status == 200)
        #expect(answers.contains { $0.status == 429 && $0.body.contains("proofsPerSecond of 1 is reached") })
        #expect(try guarded.status("/livez", Self.bearer(key.text)) == 200)
        limits.requestsInFlight = 0
        let none = try await guarded.base.principal("q", roles, limits: limits)
        #expect(try guarded.status("/livez", Self.bearer(none.text)) == 403)
    }

    @Test("A key counts as the password of its principal's name and alone; nothing else does")
    func credentials() async throws {
        let guarded = try await Guarded()
        let role = [LimitedRole(.observe, prefixes: [.every])]
        let key = try await guarded.base.principal("p", role)
        let other = try await guarded.base.principal("q", role)
        #expect(try guarded.status("/livez", Self.basic("p", key.text)) == 200)
        #expect(try guarded.status("/livez", Self.bearer(key.text)) == 200)
        let wrong: [[String: String]] = [
            Self.basic("p", other.text), Self.basic("", key.text), Self.basic("P", key.text),
            Self.basic("p", key.text + "x"), Self.basic("p", ""), ["Authorization": "Basic"],
            ["Authorization": "Basic ***"], ["Authorization": "Digest \(key.text)"],
            ["Authorization": key.text], ["Authorization": ""],
            ["Authorization": "Basic " + Data([0xff, 0x3a]).base64EncodedString()],
        ]
        for fields in wrong { #expect(try guarded.status("/livez", fields) == 401, "\(fields)") }
        _ = try await guarded.base.administrator.send(RemovePrincipal(try GuardedService.name("p")))
        #expect(try guarded.status("/livez", Self.basic("p", key.text)) == 401)
    }

    @Test("Wrong keys are slowed, then a right one waits, too, and clients of the same address do not")
    func wrongKeys() async throws {
        let time = Shared<UInt64>(1000)
        let guarded = try await Guarded(clock: MonotonicClock { time.value })
        let key = try await guarded.base.principal("p", [LimitedRole(.observe, prefixes: [.every])])
        let wrong = (0..<Limits.wrongKeysAtOnce).map { _ in Self.bearer(APIKey.random().text) }
        let answers = try guarded.visit((wrong + [Self.bearer(key.text)]).map { ("GET", "/livez", $0, nil) })
        #expect(answers.prefix(Limits.wrongKeysAtOnce).allSatisfy { $0.status == 401 })
        #expect(answers.last?.status == 429 && answers.last?.body.contains("too many wrong keys") == true)
        let port = try #require(guarded.service.service.endpoints.last).port
        let client = try RootgateClient(
            Endpoint(host: "localhost", port: port),
            configuration: .init(
                requestTimeout: patience, tls: TLSOptions(authoritiesPath: guarded.authorityPath), key: key))
        _ = try await client.statistics()
        time.with { $0 += 1000 }
        #expect(try guarded.status("/livez", Self.bearer(key.text)) == 200)
    }

    @Test("A client's certificate shows the principal, and a stranger's gets no connection")
    func certificates() async throws {
        let guarded = try await Guarded(demandsCertificate: true)
        let paths = try guarded.authority.issue(CertificatePlan { $0.usages = [.client] }).write(
            to: guarded.directory.path, as: "visitor")
        #expect(try guarded.visit([("GET", "/livez", [:], nil)])[0].status == 0)
        let shown = try guarded.visit([("GET", "/livez", [:], nil)], certificate: paths)
        #expect(shown[0].status == 401)
        let key = try await guarded.base.principal("p", [LimitedRole(.observe, prefixes: [.every])])
        let both = try guarded.visit([("GET", "/livez", Self.bearer(key.text), nil)], certificate: paths)
        #expect(both[0].status == 200)
    }

    @Test("A visitor who names no protocol of TLS gets a page, and one who wants another does not")
    func protocols() async throws {
        let guarded = try await Guarded()
        let key = try await guarded.base.principal("p", [LimitedRole(.observe, prefixes: [.every])])
        let request = [("GET", "/livez", Self.bearer(key.text), nil as String?)]
        #expect(try guarded.visit(request, protocols: [])[0].status == 200)
        #expect(try guarded.visit(request, protocols: ["h2", "http/1.1"])[0].status == 200)
        for others in [["h2"], ["rootgate/1"]] {
            #expect(try guarded.visit(request, protocols: others)[0].status == 0, "\(others)")
        }
    }

    @Test("A form of another site is refused, and one of the page itself is answered")
    func forms() async throws {
        let guarded = try await Guarded()
        let key = try await guarded.base.principal(
            "p", [PrincipalRole.observe, .verify, .enrol, .collaborate].map { LimitedRole($0, prefixes: [.every]) })
        let port = guarded.endpoints[0].port
        func status(_ origin: String) throws -> Int {
            var fields = Self.bearer(key.text)
            fields["Content-Type"] = "application/x-www-form-urlencoded"
            fields["Origin"] = origin
            return try guarded.visit([("POST", "/explain", fields, "proof=")])[0].status
        }
        #expect(try status("https://localhost:\(port)") != 403)
        #expect(try status("https://elsewhere.example") == 403)
        #expect(try status("http://localhost:\(port)") == 403)
    }
}
