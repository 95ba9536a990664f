import Collaboration
import Core
import Foundation
import Identity
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
            "<h1><bdi>Trip to the lakes W</bdi></h1>", "4 people · <bdi>Everyone can make changes</bdi>",
            "<button type=\"button\" disabled><bdi>Manage Shared File</bdi></button>",
            "<p>Shared by <bdi>Olga W</bdi></p>",
            "<bdi>Show the map W</bdi>", "<bdi>Olga Example W</bdi>", "owner", "<bdi>olga@example.com W</bdi>",
            "<b class=\"good\">selected</b> <bdi>Everyone can make changes</bdi>",
            "<span>not selected</span> <bdi>Everyone can view</bdi>", "effects: addParticipants",
            "<a href=\"/shelf?account=ana\"><bdi>ana</bdi></a>", "From Bo Chen W and Olga Example W",
            "<bdi>Bo Chen W</bdi> in <bdi>Family W</bdi>", "Reply to Family W", "<bdi>Remove</bdi>",
            "Shelves that were looked at: 1 of 1, ",
            "<code>\(contents.link.absoluteString)</code>",
        ] { #expect(page.body.contains(text), "\(text)") }
        for person in contents.people {
            #expect(page.body.contains("<code>\(person.rootHash.description.prefix(16))…</code>"))
        }
        // The owner comes first, whatever the order of root hashes is.
        let popover = try #require(page.body.firstMatch(of: /<div class="popover">.*?<\/section>/.dotMatchesNewlines()))
        let names = popover.0.matches(of: /<li><span class="face".*?<bdi>(.*?)<\/bdi>/).map { String($0.1) }
        #expect(names.first == "Olga Example W")
        #expect(Set(names.dropFirst()) == ["Ana Lund W", "Bo Chen W", "Cyril Osei W"])
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
        #expect(titles == ["Trip to the lakes W", "Ten huts above the clouds W"])
        #expect(page.body.contains("ana</bdi>: 2 items") && page.body.contains("<span class=\"badge\">pinned</span>"))
        #expect(page.body.contains("From Bo Chen W and Olga Example W") && page.body.contains("From Cyril Osei W"))
        #expect(page.body.components(separatedBy: "<p class=\"pill\">").count == 3)
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
        for offset in ["-1", "x", "1.5", ""] {
            #expect(try get("/shelf", [("account", "ana"), ("offset", offset)], endpoint).status == 400, "\(offset)")
        }
        let behind = try get("/shelf", [("account", "ana"), ("offset", "9")], endpoint).body
        #expect(behind.contains("Nothing is behind item 9.") && !behind.contains("Nothing is on it"))
        let reader = try get("/shelf", [("account", "ana"), ("app", "com.example.reader")], endpoint).body
        #expect(reader.contains("ana</bdi>: 1 item<") && reader.contains("From Cyril Osei W"))
        #expect(!reader.contains("Trip to the lakes W</bdi></h3>"))
        #expect(try get("/shelf", [("account", "a\u{1}")], endpoint).status == 400)
        withExtendedLifetime(contents) {}
    }

    @Test("Of removed people no permission and no joining is told, and their shelves are not looked at")
    func removedPeople() async throws {
        let (service, endpoint) = try makeService()
        let contents = try await ConsoleContents(try service.client(), word: "W")
        _ = try await contents.client.send(
            RemoveParticipants([PersonIdentity(rootHash: contents.people[1].rootHash)], from: contents.collaboration))
        let body = try get("/collaboration", [("id", contents.collaboration.description)], endpoint).body
        let rows = body.matches(of: /<tr><th scope="row">(.*?)<\/tr>/).map { String($0.1) }
        let removed = try #require(rows.first { $0.contains("Ana Lund W") })
        #expect(removed.contains("<td>none</td><td>removed</td><td>–</td><td><time"))
        let joined = try #require(rows.first { $0.contains("Olga Example W") })
        #expect(joined.contains("<td>joined</td><td><time") && joined.contains("</time></td><td>–</td>"))
        #expect(
            body.contains("Of no present participant in the table below an account is known.")
                && !body.contains("From Bo Chen W"))
        #expect(body.contains("3 people"))
    }

    @Test("What has no name is told as such, and not by an identifier or a blank")
    func blankNames() async throws {
        let (service, endpoint) = try makeService()
        let client = try service.client()
        let ana = try #require(Account("ana"))
        for (number, sharer, conversation) in [(1, "", nil), (2, "\u{2060}", " "), (3, "Bo", nil)]
            as [(Int, String, String?)]
        {
            _ = try await client.send(
                RecordShare(
                    url: try #require(URL(string: "https://example.com/\(number)")), title: " ",
                    app: "com.example.files",
                    sharer: Sharer(name: sharer),
                    conversation: Conversation(identifier: "internal-\(number)", name: conversation, isGroup: false),
                    recipients: [ShareRecipient(ana)]))
        }
        _ = try await client.send(SetConsent(of: ana, .everything, isAllowed: true))
        let body = try get("/shelf", [("account", "ana")], endpoint).body
        #expect(body.contains("<h3><code>https://example.com/1</code></h3>"))
        #expect(body.contains("From somebody") && body.contains("somebody in a conversation without a name"))
        #expect(body.contains("<bdi>Bo</bdi> in a conversation without a name") && body.contains("Reply to Bo"))
        #expect(!body.contains("internal-") && !body.contains("<bdi></bdi>") && !body.contains("<p></p>"))
        for text in ["", " \u{a0}", "\u{200b}\u{3164}"] { #expect(text.isUnseen) }
        for text in ["a", "\u{200b}x", "。"] { #expect(!text.isUnseen) }
    }

    @Test("What is not shown is counted: people, accounts and conversations beyond the limits")
    func beyondLimits() async throws {
        let (service, endpoint) = try makeService()
        let contents = try await ConsoleContents(try service.client(), word: "W")
        let client = contents.client
        let count = Limits.consoleAttributionsMax + 1
        let people = try (0..<count).map { _ in try Person(deviceCount: 1).identity(in: contents.collaboration) }
        _ = try await client.send(
            AddParticipants(
                people.map { NewParticipant(PersonIdentity(rootHash: $0.rootHash), displayName: "P") },
                to: contents.collaboration))
        let challenges = try await client.challenges(count).challenges
        _ = try await client.open(
            try zip(people, challenges).map { person, challenge in
                AccessRequest(
                    collaboration: contents.collaboration, proof: try person.proof(ofDevice: 0, signing: challenge))
            })
        for (number, person) in people.enumerated() {
            let account = try #require(Account("account-\(number)"))
            _ = try await client.send(
                LinkAccount(account, to: PersonIdentity(rootHash: person.rootHash), in: contents.collaboration))
        }
        for number in 0...Limits.attributionsPerItemMax {
            _ = try await client.send(
                RecordShare(
                    url: contents.link, title: "T", app: "com.example.files", sharer: Sharer(name: "S\(number)"),
                    conversation: Conversation(identifier: "c\(number)", name: "C\(number)", isGroup: true),
                    recipients: [ShareRecipient(contents.ana)]))
        }
        let body = try get("/collaboration", [("id", contents.collaboration.description)], endpoint).body
        let faces = body.matches(of: /<li><span class="face".*?<bdi>(.*?)<\/bdi>/).map { String($0.1) }
        #expect(faces.first == "Olga Example W" && faces.count == Limits.consolePopoverNamesMax)
        #expect(body.contains("and \(4 + count - Limits.consolePopoverNamesMax) more"))
        #expect(body.contains("looked at: \(Limits.consoleAttributionsMax) of \(count + 1), "))
        let shelf = try get("/shelf", [("account", "ana")], endpoint).body
        #expect(shelf.contains("<li>No more than \(Limits.attributionsPerItemMax) are listed.</li>"))
        // The pin is on a conversation that is not listed.
        #expect(shelf.contains("others</bdi></span> <span class=\"badge\">pinned</span></p>"))
    }

    @Test("The owner is named first in a large collaboration, and beyond the newest notices there are more")
    func largeCollaboration() async throws {
        let (service, endpoint) = try makeService()
        let contents = try await ConsoleContents(try service.client(), word: "W")
        for start in [0, 200] {
            let people = try (0..<200).map { number in
                NewParticipant(
                    PersonIdentity(rootHash: try #require(Digest(hexadecimal: Self.lowRootHash(start + number)))),
                    displayName: "P")
            }
            _ = try await contents.client.send(AddParticipants(people, to: contents.collaboration))
        }
        let (grant, collaboration) = (contents.grant, contents.collaboration)
        for _ in 0...Limits.detailNoticesMax {
            _ = try await contents.client.send(PostNotices([.change(trigger: .edit)], on: collaboration, by: grant))
        }
        let body = try get("/collaboration", [("id", collaboration.description)], endpoint).body
        let faces = body.matches(of: /<li><span class="face".*?<bdi>(.*?)<\/bdi>/).map { String($0.1) }
        #expect(faces == ["Olga Example W", "P", "P", "P", "P"])
        #expect(body.contains("<li class=\"empty\">and more</li>"))
    }

    /// Root hashes below those of nearly all trees, so that participants with them are listed first.
    private static func lowRootHash(_ number: Int) -> String {
        let zeros = String(repeating: "0", count: 60)
        return zeros.prefix(12) + [UInt8(number >> 8), UInt8(number & 255)].hexadecimal + zeros.dropFirst(12)
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
