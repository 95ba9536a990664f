import Collaboration
import Core
import Foundation
import Principals
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Transport

@testable import Server

@Suite("The console's pages of records")
struct RecordPagesTests {
    private static let word = "<script>alert(1)</script>\"><img src=x onerror=alert(1)>'"

    private func makeService() throws -> (TestService, Endpoint) {
        let service = try TestService { configuration in
            configuration.operatorEndpoints = [Endpoint(host: "127.0.0.1", port: 0)]
            configuration.showsRecords = true
        }
        return (service, try #require(service.service.operatorEndpoints.first))
    }

    private func get(_ path: String, _ fields: [(String, String)], _ endpoint: Endpoint) throws -> (
        status: Int, fields: [String], body: String
    ) {
        let query = fields.map { "\($0.0)=\(FormFields.encoded($0.1))" }.joined(separator: "&")
        return try PageVisitor.page(query.isEmpty ? path : path + "?" + query, of: endpoint)
    }

    /// No tag and no attribute comes from a text, and no character of it steers the layout.
    private func expectText(_ body: String, _ place: String) {
        // What stands in the value of an attribute is none of the page's own markup.
        let bare = body.replacing(/"[^"]*"/, with: "\"\"")
        let tags = Set(bare.matches(of: /<([a-z0-9]+)/).map { String($0.1) })
        #expect(!tags.contains("script"), "\(place)")
        #expect(!bare.contains(/<[^>]* on[a-z]+=/), "\(place)")
        #expect(!body.contains(/<img (?!class="thumbnail" src="\/thumbnail\?)/), "\(place)")
        #expect(!body.unicodeScalars.contains { $0.isControl && $0 != "\n" }, "\(place)")
    }

    @Test("Every page shows hostile names and titles as text, and looking changes nothing")
    func hostileNames() async throws {
        let (service, endpoint) = try makeService()
        let contents = try await ConsoleContents(try service.client(), word: Self.word)
        let sequence = {
            try service.service.resources.rootSets.read { snapshot throws(ServiceError) in try snapshot.lastSequence() }
        }
        // An identifier may steer the direction of writing; the layer refuses that in names and titles.
        let steering = try #require(CollaborationIdentifier("\u{202e}" + Self.word))
        try await contents.client.createCollaboration(steering)
        let before = try sequence()
        let pages: [(String, [(String, String)])] = [
            ("/collaborations", []), ("/collaborations", [("prefix", Self.word)]),
            ("/collaboration", [("id", contents.collaboration.description)]), ("/collaboration", [("id", Self.word)]),
            ("/collaboration", [("id", steering.description)]),
            ("/shelf", [("account", "ana")]), ("/shelf", [("account", "<b>")]), ("/principals", []),
        ]
        for (path, fields) in pages {
            let page = try get(path, fields, endpoint)
            #expect([200, 400, 404].contains(page.status))
            expectText(page.body, "\(path) \(fields)")
        }
        #expect(try sequence() == before)
        #expect(service.service.pool.verdictCounts.reduce(0) { $0 + $1.count } == 2)
    }

    @Test("A collaboration's page has the popover, people with roles, options, notices and attribution")
    func details() async throws {
        let (service, endpoint) = try makeService()
        let contents = try await ConsoleContents(try service.client(), word: "W")
        let page = try get("/collaboration", [("id", contents.collaboration.description)], endpoint)
        #expect(page.status == 200)
        for text in [
            "<h1><bdi>Trip to the lakes W</bdi></h1>", "4 people · Everyone can make changes", "Manage Shared File",
            "<bdi>Show the map W</bdi>", "<bdi>Olga Example W</bdi>", "owner", "<bdi>olga@example.com W</bdi>",
            "<b class=\"good\">selected</b> <bdi>Everyone can make changes</bdi>",
            "<span>not selected</span> <bdi>Everyone can view</bdi>", "effects: addParticipants",
            "<a href=\"/shelf?account=ana\"><bdi>ana</bdi></a>", "From Bo Chen W and Olga Example W",
            "<bdi>Bo Chen W</bdi> in <bdi>Family W</bdi>", "<code>\(contents.link.absoluteString)</code>",
        ] { #expect(page.body.contains(text), "\(text)") }
        for person in contents.people {
            #expect(page.body.contains("<code>\(person.rootHash.description.prefix(16))…</code>"))
        }
        let client = try service.client()
        let plain = try #require(CollaborationIdentifier("roots only"))
        try await client.createCollaboration(plain, policy: .deviceNonce(windowSeconds: 60))
        let bare = try get("/collaboration", [("id", "roots only")], endpoint)
        #expect(bare.status == 200 && bare.body.contains("device nonces (60 s)"))
        #expect(bare.body.contains("It has a set of root hashes only"))
        #expect(try get("/collaboration", [("id", "nobody")], endpoint).status == 404)
        #expect(try get("/collaboration", [], endpoint).status == 400)
        #expect(try PageVisitor.page("/collaboration?id=%", of: endpoint).status == 400)
    }

    @Test("Collaborations are listed by prefix, a page at a time, each once")
    func list() async throws {
        let (service, endpoint) = try makeService()
        let client = try service.client()
        let names = (0..<Limits.consoleRowsMax + 20).map { "team/\($0)" }
        for name in names + ["other"] {
            try await client.createCollaboration(try #require(CollaborationIdentifier(name)))
        }
        var found: [String] = []
        var path: String? = "/collaborations?prefix=team%2F"
        var pages = 0
        while let target = path {
            let body = try PageVisitor.page(target, of: endpoint).body
            found += body.matches(of: /<bdi>(.*?)<\/bdi>/).map { String($0.1) }
            path = body.firstMatch(of: /<a href="(.*?)">Show more/).map {
                $0.1.replacingOccurrences(of: "&amp;", with: "&")
            }
            pages += 1
            try #require(pages < 5)
        }
        #expect(pages == 2 && found.sorted() == names.sorted())
        #expect(try PageVisitor.page("/collaborations?prefix=none", of: endpoint).body.contains("There is none."))
    }

    @Test("A shelf has its cards in order with pills, and a stored thumbnail is served as the picture that it is")
    func shelf() async throws {
        let (service, endpoint) = try makeService()
        let contents = try await ConsoleContents(try service.client(), word: "W")
        let page = try get("/shelf", [("account", "ana")], endpoint)
        let titles = page.body.matches(of: /<h3><bdi>(.*?)<\/bdi>/).map { String($0.1) }
        #expect(Set(titles) == ["Trip to the lakes W", "Ten huts above the clouds W"])
        #expect(page.body.contains("ana</bdi>: 2 items") && page.body.contains("<span class=\"badge\">pinned</span>"))
        #expect(page.body.contains("From Bo Chen W and Olga Example W") && page.body.contains("From Cyril Osei W"))
        #expect(page.body.components(separatedBy: "<span class=\"pill\">").count == 4)
        let image = try #require(page.body.firstMatch(of: /src="(\/thumbnail\?.*?)"/)).1
        let path = image.replacingOccurrences(of: "&amp;", with: "&")
        let answer = try PageVisitor.page(path, of: endpoint)
        #expect(answer.status == 200 && answer.fields.contains("Content-Type: image/png"))
        #expect(answer.fields.contains("X-Content-Type-Options: nosniff"))
        #expect(answer.fields.contains("Content-Length: \(ConsoleContents.picture.count)"))
        #expect(
            try PageVisitor.page(path.replacingOccurrences(of: "account=ana", with: "account=bo"), of: endpoint).status
                == 404)
        #expect(try PageVisitor.page("/thumbnail?account=ana", of: endpoint).status == 400)
        #expect(try get("/shelf", [("account", "nobody")], endpoint).body.contains("Nothing is on it."))
        #expect(try get("/shelf", [("account", "ana"), ("offset", "-1")], endpoint).status == 400)
        #expect(try get("/shelf", [("account", "a\u{1}")], endpoint).status == 400)
        withExtendedLifetime(contents) {}
    }

    @Test("Principals are listed with roles, limits and uses, and never with keys")
    func principals() async throws {
        let (service, endpoint) = try makeService()
        #expect(try get("/principals", [], endpoint).body.contains("There is none"))
        let client = try service.client()
        let key = APIKey.random()
        let name = try #require(PrincipalName("backend"))
        var limits = PrincipalLimits()
        limits.proofsPerSecond = 1_000
        let prefix = try #require(CollaborationPrefix("team/"))
        let administrator = try #require(PrincipalName("administrator"))
        let first = APIKey.random()
        _ = try await client.send(
            CreatePrincipal(
                administrator, roles: PrincipalRole.allCases.map { LimitedRole($0, prefixes: [.every]) },
                key: NewKey(KeyHash(first))))
        let keyed = try RootgateClient(
            service.endpoint, configuration: .init(requestTimeout: patience, key: first))
        _ = try await keyed.send(
            CreatePrincipal(
                name, roles: [LimitedRole(.verify, prefixes: [prefix]), LimitedRole(.observe, prefixes: [.every])],
                key: NewKey(KeyHash(key)), limits: limits))
        let body = try get("/principals", [], endpoint).body
        for text in [
            "<bdi>backend</bdi>", "verify for team/", "<div>observe</div>", "1 key", "1,000 proofs/s", "never",
        ] {
            #expect(body.contains(text), "\(text)")
        }
        #expect(!body.contains(key.text) && !body.contains(/[0-9a-f]{16}/))
    }
}
