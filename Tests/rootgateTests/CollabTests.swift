import Core
import Foundation
import Server
import ServiceTestSupport
import TestSupport
import Testing
import Transport

@testable import rootgate

/// `rootgate collab` against a live service, as a shell would run it.
@Suite struct CollabTests {
    private static let options = """
        {"groups":[{"kind":"picker","identifier":"permission","title":"","footer":"","options":[
        {"title":"Can change","subtitle":"","identifier":"change","isSelected":true,"requiredOptionsIdentifiers":[],
        "effects":["readWrite"]},
        {"title":"Can view","subtitle":"","identifier":"view","isSelected":false,"requiredOptionsIdentifiers":[],
        "effects":["readOnly"]}]}]}
        """

    private final class Shell: Sendable {
        let service: TestService
        private let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appendingPathComponent("rootgate").path

        init() throws {
            service = try TestService { $0.linkBase = "https://example.com/c" }
        }

        func run(_ words: [String], input: String? = nil) throws -> (code: Int32, output: String, errors: String) {
            try runProgram(
                program, words, input: input, environment: ["ROOTGATE_SERVER": service.endpoint.description])
        }

        /// The fields of the answer to a verb that must succeed.
        func fields(_ words: String...) throws -> [String: Any] { try fields(words) }

        func fields(_ words: [String]) throws -> [String: Any] {
            let result = try run(["collab"] + words + ["--json"])
            #expect(result.code == 0, "\(words.joined(separator: " ")): \(result.errors)")
            let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8))
            return try #require(object as? [String: Any], "\(words.joined(separator: " ")): \(result.output)")
        }

        func file(_ name: String, _ text: String) throws -> String { try file(name, Data(text.utf8)) }

        func file(_ name: String, _ content: Data) throws -> String {
            let path = service.directory.path + "/" + name
            try content.write(to: URL(fileURLWithPath: path))
            return path
        }
    }

    private func strings(_ fields: [String: Any], _ key: String, _ inner: String) -> [String] {
        (fields[key] as? [[String: Any]] ?? []).compactMap { $0[inner] as? String }
    }

    @Test("A grant is issued, used and revoked")
    func grants() throws {
        let shell = try Shell()
        let options = try shell.file("options", Self.options)
        let prepared = try shell.fields("prepare", "deck", "--owner", "olga", "--title", "Deck", "--options", options)
        let deck = try #require(prepared["collaborationIdentifier"] as? String)
        let link = try #require(prepared["url"] as? String)
        #expect(link == "https://example.com/c/" + deck)
        #expect(try shell.fields("highlight", link)["summary"] as? String == "Can change")

        let simulated = try shell.run(
            ["simulate", "--collaboration", deck, "--people", "2", "--register", "--participants"])
        let proofs = try shell.file("proofs", simulated.output)
        let roots = try simulated.output.split(separator: "\n").map { line -> String in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try #require(object?["rootHash"] as? String)
        }
        #expect(roots.count == 4)
        let opened = try shell.run(["collab", "open", deck, proofs])
        #expect(opened.code == 0, "\(opened.errors)")
        let grants = try opened.output.split(separator: "\n").map { line -> String in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            #expect(object?["verdict"] as? String == "granted")
            return try #require(object?["grant"] as? String)
        }
        #expect(try shell.run(["collab", "open", deck, proofs]).code == 1, "challenges were accepted twice")
        _ = try shell.fields("update", deck, roots[0], "--name", "Ana")
        #expect(try shell.fields("update", deck, roots[0], "--name", "Ana")["changed"] as? Int == 0)
        #expect(try shell.run(["collab", "update", deck, roots[0], "--clear", "nmae"]).code == 2)
        #expect(
            try shell.run(["collab", "check", deck, grants[0], "--with-options"]).output
                == "valid readWrite member change\n")
        let posted = try shell.fields("post", deck, "edit", "mention=" + roots[2], "--grant", grants[0])
        #expect(posted["changed"] as? Int == 2)
        #expect(strings(try shell.fields("notices", deck), "notices", "sentence") == ["Ana edited “Deck”"])
        let his = try shell.fields("notices", deck, "--identity", roots[2])
        #expect(strings(his, "notices", "sentence") == ["Ana edited “Deck”", "Ana mentioned you in “Deck”"])
        let german = try shell.fields("notices", deck, "--language", "de")
        #expect(strings(german, "notices", "sentence") == ["Ana hat „Deck“ bearbeitet"])
        _ = try shell.fields("post", deck, "comment", "--grant", grants[0], "--link", link + "/page/3")
        let placed = try shell.fields("notices", deck)["notices"] as? [[String: Any]]
        #expect((placed?.last?["event"] as? [String: Any])?["link"] as? String == link + "/page/3")
        #expect(
            try shell.run(
                ["collab", "post", deck, "edit", "--grant", grants[0], "--link", "https://example.com/d"]).code == 2)
        _ = try shell.fields("clear", deck, "--grant", grants[2])
        #expect(strings(try shell.fields("notices", deck, "--identity", roots[2]), "notices", "sentence").isEmpty)
        _ = try shell.fields("link", deck, roots[0], "--account", "ana")
        #expect(strings(try shell.fields("notices", "--account", "ana"), "notices", "sentence").count == 2)

        #expect(try shell.run(["collab", "check", deck] + grants).output.hasPrefix("valid readWrite member\n"))
        let removal = try shell.fields("change", deck, "--remove", roots[0])
        #expect(strings(removal, "removed", "account") == ["ana"])
        #expect(strings(try shell.fields("find", deck, roots[0]), "participants", "account") == ["ana"])
        let sequence = try #require(removal["sequence"] as? Int)
        let checked = try shell.run(["collab", "check", deck, grants[0], grants[2], "--at-least", "\(sequence)"])
        #expect(checked.code == 1)
        #expect(checked.output == "revoked\nvalid readWrite member\n")
        _ = try shell.fields("options", deck, "--select", "view")
        #expect(try shell.run(["collab", "check", deck, grants[2]]).output == "revoked\n")
        #expect(
            strings(try shell.fields("participants", deck, "--past"), "participants", "state").sorted() == [
                "joined", "removed",
            ])
        #expect(try shell.fields("details", deck)["participantCount"] as? Int == 1)
        _ = try shell.fields("customize", deck, "--manage-title", "Manage Deck")
        #expect(try shell.fields("details", deck)["manageButtonTitle"] as? String == "Manage Deck")
        _ = try shell.fields("stop", deck)
        #expect(try shell.run(["collab", "details", deck]).code == 2)
    }

    @Test("An owner claims an identity from a shell, once")
    func ownership() throws {
        let shell = try Shell()
        let prepared = try shell.fields(
            "prepare", "deck", "--owner", "olga", "--policy", "device-nonce", "--permission", "readWrite")
        let deck = try #require(prepared["collaborationIdentifier"] as? String)
        #expect(prepared["permission"] as? String == "readWrite")
        let (mine, other) = (String(repeating: "ab", count: 32), String(repeating: "cd", count: 32))
        #expect(try shell.fields("claim", deck, mine, "--owner", "olga", "--name", "Olga")["changed"] as? Int == 1)
        #expect(try shell.run(["collab", "claim", deck, other, "--owner", "olga"]).code == 2)
        #expect(strings(try shell.fields("participants", deck), "participants", "role") == ["owner"])
        let refused = try shell.run(["collab", "transfer", deck, other, "--owner", "olga"])
        #expect(refused.code == 2 && refused.errors.contains("takes no part"))
        #expect(try shell.run(["collab", "list"]).output.contains("device-nonce"))
    }

    @Test("Shelves work from a shell")
    func shelves() throws {
        let shell = try Shell()
        let (first, second) = ("https://example.com/1", "https://example.com/2")
        let picture = try shell.file("picture", Data([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1]))
        for (link, thumbnail) in [(first, picture), (second, "https://example.com/2.png")] {
            _ = try shell.fields(
                "share", link, "--app", "reader", "--conversation", "c", "--sharer", "Olga", "--to", "ana,bo",
                "--subtitle", "Under it", "--thumbnail", thumbnail)
        }
        let (mine, all) = (["--account", "ana", "--app", "reader"], ["--account", "ana", "--every-app"])
        func links(_ words: [String]) throws -> [String] {
            strings(try shell.fields(["shelf"] + words), "highlights", "url")
        }
        #expect(try links(mine).isEmpty, "nothing was pinned or allowed")
        let pin = try shell.fields(["pin", first] + all)
        #expect(pin["offersAutomaticSharing"] as? Bool == true)
        #expect(pin["offeredLevel"] as? [String: String] == ["app": "reader"])
        #expect(try links(mine) == [first])
        _ = try shell.fields("consent", "app=reader", "yes", "--account", "ana")
        #expect(try links(mine) == [first, second])
        #expect(try links(["--account", "ana", "--app", "other"]).isEmpty)
        let items = try #require(try shell.fields(["shelf"] + mine)["highlights"] as? [[String: Any]])
        #expect(items.compactMap { $0["subtitle"] as? String } == ["Under it", "Under it"])
        let stored = try #require(items[0]["thumbnail"] as? [String: Any])
        let hash = try #require(stored["hash"] as? String)
        #expect(try shell.fields(["thumbnail", first, hash] + mine)["data"] as? String == "iVBORw0KGgoB")
        #expect(items[1]["thumbnail"] as? [String: String] == ["url": "https://example.com/2.png"])
        let attributions = try #require(items[0]["attributions"] as? [[String: Any]])
        let handle = try #require(attributions[0]["handle"] as? String)
        #expect(attributions[0]["sharer"] == nil && attributions[0]["conversation"] == nil)
        _ = try shell.fields(["unpin", first, "--handle", handle] + mine)
        #expect(try links(mine) == [second, first])
        _ = try shell.fields(["signal", second, "shown", "--context", "detail"] + mine)
        _ = try shell.fields(["hide", first] + mine)
        #expect(try links(all) == [second])
        _ = try shell.fields("consent", "conversation=c", "yes", "--account", "bo")
        #expect(
            try shell.fields("attribution", first, "--account", "bo", "--every-app")["summary"] as? String
                == "From Olga")
        #expect(try shell.fields("attribution", first, "--account", "bo", "--app", "reader")["summary"] == nil)
        #expect(try shell.fields("consent", "--account", "bo")["conversations"] as? [String: Bool] == ["c": true])
    }

    @Test("Invitations work from a shell")
    func invitations() throws {
        let shell = try Shell()
        let deck = try #require(
            try shell.fields("prepare", "deck", "--owner", "olga", "--permission", "readWrite")[
                "collaborationIdentifier"] as? String)
        let invitation = try shell.fields("invite", deck, "--hours", "1", "--name", "Olga", "--handle", "o@a.example")
        let token = try #require(invitation["token"] as? String)
        #expect(strings(try shell.fields("invitations", deck), "invitations", "state") == ["pending"])
        let preview = try shell.fields("invitation", token)
        #expect(preview["inviterName"] as? String == "Olga" && preview["inviterHandle"] as? String == "o@a.example")
        #expect(preview["state"] as? String == "pending" && preview["permission"] as? String == "readWrite")
        #expect(try shell.fields("accept", token, "--account", "ana")["state"] as? String == "accepted")
        #expect(strings(try shell.fields("shares", "--account", "ana"), "shares", "title").isEmpty)
        #expect(try shell.fields("withdraw", token, "--account", "ana")["changed"] as? Int == 1)
        #expect(try shell.fields("accept", token, "--account", "ana")["share"] == nil)
        let identity = String(repeating: "ab", count: 32)
        let accepted = try shell.fields("accept", token, "--account", "ana", "--identity", identity)
        #expect(accepted["state"] as? String == "in" && accepted["share"] != nil)
        #expect(try shell.run(["collab", "accept", token, "--account", "bo"]).code == 1)
        #expect(try shell.run(["collab", "withdraw", token, "--account", "ana"]).code == 2)
        #expect(strings(try shell.fields("shares", "--account", "ana"), "shares", "collaborationIdentifier") == [deck])
        let mine = try shell.fields("shares", "--account", "olga", "--scope", "private")
        #expect(strings(mine, "shares", "collaborationIdentifier") == [deck])
        #expect(strings(mine, "shares", "localIdentifier") == ["deck"])
        let second = try shell.fields("invite", deck)
        let name = try #require(second["identifier"] as? String)
        _ = try shell.fields("revoke", deck, name)
        #expect(
            strings(try shell.fields("invitations", deck, "--past"), "invitations", "state").sorted() == [
                "completed", "revoked",
            ])
        _ = try shell.fields("stop", deck)
        #expect(try shell.run(["collab", "invitation", token]).code == 1)
        #expect(strings(try shell.fields("shares", "--account", "ana"), "shares", "title").isEmpty)
    }

    /// What a list prints in pages of one item: the items of `key`, by way of `--after` and by `--all`.
    private func check(
        _ shell: Shell, _ words: [String], key: String, _ inner: String, items count: Int
    ) throws -> [String] {
        func items(_ output: String) throws -> [String] {
            try output.split(separator: "\n").flatMap { line in
                let page = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                return strings(try #require(page), key, inner)
            }
        }
        let name = words.joined(separator: " ")
        let list = ["collab"] + words + ["--json", "--limit", "1"]
        let whole = try shell.run(list + ["--all"])
        let all = try items(whole.output)
        #expect(whole.code == 0 && whole.errors.isEmpty, "\(name): \(whole.errors)")
        #expect(all.count == count && Set(all).count == count, "\(name)")
        var paged: [String] = []
        var after: [String] = []
        for index in 0..<count {
            let page = try shell.run(list + after)
            paged += try items(page.output)
            let words = page.errors.split(separator: " ").map(String.init)
            guard index < count - 1 else {
                #expect(page.errors.isEmpty, "\(name): \(page.errors)")
                break
            }
            #expect(page.errors.hasPrefix("rootgate: there are more: --after "), "\(name): \(page.errors)")
            after = ["--after", try #require(words.drop { $0 != "--after" }.dropFirst().first)]
        }
        #expect(paged == all, "\(name)")
        return all
    }

    @Test("Lists say when there are more, and page through")
    func lists() throws {
        let shell = try Shell()
        let decks = try ["one", "two", "three"].map { local -> String in
            let prepared = try shell.fields("prepare", local, "--owner", "olga")
            return try #require(prepared["collaborationIdentifier"] as? String)
        }
        let deck = decks[0]
        let people = (1...3).map { String(repeating: "0\($0)", count: 32) }
        _ = try shell.run(["collab", "add", deck] + people)
        _ = try shell.fields("remove", deck, people[1])
        #expect(
            try check(shell, ["participants", deck], key: "participants", "identity", items: 2)
                == [people[0], people[2]])
        #expect(
            try check(shell, ["participants", deck, "--past"], key: "participants", "identity", items: 3) == people)
        for _ in 0..<3 { _ = try shell.fields("invite", deck) }
        _ = try check(shell, ["invitations", deck], key: "invitations", "identifier", items: 3)
        let shares = try check(
            shell, ["shares", "--account", "olga", "--scope", "private"], key: "shares", "collaborationIdentifier",
            items: 3)
        #expect(Set(shares) == Set(decks))
        for number in 1...3 {
            _ = try shell.fields(
                "share", "https://example.com/\(number)", "--app", "reader", "--conversation", "c", "--sharer", "Olga",
                "--to", "ana")
            _ = try shell.fields("pin", "https://example.com/\(number)", "--account", "ana", "--every-app")
        }
        _ = try check(shell, ["shelf", "--account", "ana", "--app", "reader"], key: "highlights", "url", items: 3)
        #expect(try shell.run(["collab", "participants", deck, "--limit", "1"]).errors.contains(people[0]))
    }

    @Test("Lists of root hashes and collaborations are whole unless a page is wanted")
    func rootLists() throws {
        let shell = try Shell()
        for name in ["a", "b", "c"] { #expect(try shell.run(["collab", "create", name]).code == 0) }
        let roots = (1...3).map { String(repeating: "0\($0)", count: 32) }
        #expect(try shell.run(["roots", "add", "--collaboration", "a"] + roots).code == 0)
        let list = ["roots", "list", "--collaboration", "a"]
        #expect(try shell.run(list).output == roots.joined(separator: "\n") + "\n")
        let page = try shell.run(list + ["--limit", "2"])
        #expect(page.output == roots[..<2].joined(separator: "\n") + "\n")
        #expect(page.errors.hasPrefix("rootgate: there are more: --after \(roots[1]) "))
        let rest = try shell.run(list + ["--limit", "2", "--after", roots[1]])
        #expect(rest.output == roots[2] + "\n" && rest.errors.isEmpty)
        #expect(try shell.run(list + ["--limit", "1", "--all"]).output == roots.joined(separator: "\n") + "\n")

        let names = try shell.run(["collab", "list"])
        #expect(names.output.split(separator: "\n").count == 3 && names.errors.isEmpty)
        let first = try shell.run(["collab", "list", "--limit", "2"])
        #expect(first.output.split(separator: "\n").count == 2)
        let after = try #require(first.output.split(separator: "\n").last?.split(separator: "\t").first)
        #expect(first.errors.hasPrefix("rootgate: there are more: --after \(after) "))
        let last = try shell.run(["collab", "list", "--limit", "2", "--after", String(after)])
        #expect(first.output + last.output == names.output && last.errors.isEmpty)
        #expect(try shell.run(["collab", "list", "--limit", "1", "--all"]).output == names.output)
    }

    @Test("Drop refuses a collaboration that was started, and drops one of root hashes")
    func drop() throws {
        let shell = try Shell()
        let deck = try #require(
            try shell.fields("prepare", "deck", "--owner", "olga")["collaborationIdentifier"] as? String)
        let refused = try shell.run(["collab", "drop", deck])
        #expect(refused.code == 2 && refused.errors.contains("rootgate collab stop"), "\(refused)")
        #expect(try shell.run(["collab", "list"]).output.contains(deck))
        #expect(try shell.run(["collab", "stop", deck]).code == 0)
        let stopped = try shell.run(["collab", "drop", deck])
        #expect(stopped.code == 2 && stopped.errors.contains("unknown-collaboration"), "\(stopped)")
        #expect(try shell.run(["collab", "create", "plain"]).code == 0)
        #expect(try shell.run(["collab", "drop", "plain"]).output.hasPrefix("dropped 1 "))
    }

    @Test("An option of a role names only the roles that can be given")
    func roles() throws {
        let shell = try Shell()
        for role in ["chief", "owner"] {
            let result = try shell.run(["collab", "add", "x", String(repeating: "ab", count: 32), "--role", role])
            #expect(result.code == 2, "\(result)")
            #expect(result.errors.contains("--role is administrator or member, not \(role)"), "\(result)")
        }
    }

    @Test("What changes nothing says so")
    func nothingChanged() throws {
        let shell = try Shell()
        #expect(try shell.run(["collab", "create", "deck"]).output.hasPrefix("created 1 "))
        let again = try shell.run(["collab", "create", "deck"])
        #expect(again.code == 0 && again.output.hasPrefix("it exists already, with that policy: nothing was changed"))
        #expect(try shell.fields("create", "deck")["changed"] as? Int == 0)
        #expect(try shell.run(["collab", "create", "deck", "--policy", "device-nonce"]).code == 2)
        let deck = try #require(
            try shell.fields("prepare", "deck", "--owner", "olga")["collaborationIdentifier"] as? String)
        let empty = try shell.run(["collab", "customize", deck])
        #expect(empty.code == 2 && empty.output.isEmpty)
        #expect(empty.errors.hasPrefix("rootgate: say what to change: --title, --items, --manage-title or --clear"))
        #expect(try shell.fields("customize", deck, "--title", "Deck")["changed"] as? Int == 1)
        let same = try shell.fields("customize", deck, "--title", "Deck")
        #expect(same["changed"] as? Int == 0)
    }

    @Test(
        "Wrong words end with exit code 2 and one line",
        arguments: [
            [], ["dance"], ["prepare"], ["prepare", "x"], ["add", "x"], ["add", "x", "zz"], ["check", "x"],
            ["check", "x", "not-a-grant"], ["post", "x", "edit"], ["consent", "moon", "yes", "--account", "a"],
            ["shelf"], ["shelf", "--account", "a"], ["shelf", "--account", "a", "--app", "b", "--every-app"],
            ["pin", "https://a", "--account", "a", "--app", "b", "--handle", "no"],
            ["share", "https://a", "--conversation", "c", "--sharer", "s"],
            ["shares", "--account", "a", "--scope", "other"], ["highlight", "::"],
            ["accept", "--account", "a"],
            ["invitation", "x"], ["withdraw", "x", "--account", "a"],
            ["add", "x", "zz", "--role", "king"], ["signal", "https://a", "smelled", "--account", "a"],
        ])
    func wrongWords(_ words: [String]) throws {
        let shell = try Shell()
        let result = try shell.run(["collab"] + words)
        #expect(result.code == 2, "\(words)")
        #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
        #expect(result.output.isEmpty)
    }
}
