import Collaboration
import Core
import Foundation
import Identity
import Principals
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
        let base: GuardedService

        init(demandsCertificate: Bool = false, _ adjust: @escaping (inout Configuration) -> Void = { _ in })
            async throws
        {
            authorityPath = try authority.write(to: directory.path)
            let paths = try authority.issue().write(to: directory.path, as: "server")
            let settings = ServerTLSSettings(
                certificatePath: paths.certificate, keyPath: paths.key,
                clientAuthoritiesPath: demandsCertificate ? authorityPath : nil)
            let clients = directory.path + "/clients"
            base = try await GuardedService {
                $0.endpoints = [Endpoint(path: clients)]
                $0.tls = settings
                $0.operatorEndpoints = [
                    Endpoint(host: "0.0.0.0", port: 0), Endpoint(host: "127.0.0.1", port: 0),
                ]
                $0.showsRecords = true
                adjust(&$0)
            }
        }

        var endpoints: [Endpoint] { base.service.service.operatorEndpoints }

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
        let general = ["/", "/livez", "/readyz", "/metrics", "/debug/requests", "/console.css"]
        let records = ["/collaborations", "/shelf"]
        func statuses(_ key: APIKey, _ paths: [String]) throws -> [Int] {
            // The certificate of the test expires within the hour, so the service is not ready, and says so.
            try guarded.visit(paths.map { ("GET", $0, Self.bearer(key.text), nil) }).map {
                $0.body.contains("certificate failed: ") ? 200 : $0.status
            }
        }
        #expect(try statuses(watcher, general) == [200, 200, 200, 200, 200, 200])
        #expect(try statuses(watcher, records + ["/explain", "/principals"]) == [403, 403, 403, 403])
        #expect(try statuses(reader, general + records + ["/explain"]) == [Int](repeating: 200, count: 9))
        #expect(try statuses(reader, ["/principals", "/nothing"]) == [403, 404])
        #expect(try statuses(narrow, general + records + ["/explain"]) == [Int](repeating: 403, count: 9))
        #expect(try statuses(verifier, general + ["/explain"]) == [Int](repeating: 403, count: 7))
        #expect(try statuses(guarded.base.administratorKey, ["/principals", "/metrics"]) == [200, 403])
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

    @Test("Wrong keys are slowed as those of clients are, and then a right one waits, too")
    func wrongKeys() async throws {
        let guarded = try await Guarded()
        let key = try await guarded.base.principal("p", [LimitedRole(.observe, prefixes: [.every])])
        let count = Limits.wrongKeysAtOnce + 20
        let answers = try guarded.visit(
            (0..<count).map { _ in ("GET", "/livez", Self.bearer(APIKey.random().text), nil) })
        #expect(answers.prefix(Limits.wrongKeysAtOnce).allSatisfy { $0.status == 401 })
        #expect(answers.contains { $0.status == 429 && $0.body.contains("too many wrong keys") })
        #expect(becomesTrue { (try? guarded.status("/livez", Self.bearer(key.text))) == 200 })
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
            "p", [PrincipalRole.observe, .verify].map { LimitedRole($0, prefixes: [.every]) })
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
