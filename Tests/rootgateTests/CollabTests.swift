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
        "permission":"readWrite"},
        {"title":"Can view","subtitle":"","identifier":"view","isSelected":false,"requiredOptionsIdentifiers":[],
        "permission":"readOnly"}]}]}
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
        func fields(_ words: String...) throws -> [String: Any] {
            let result = try run(["collab"] + words + ["--json"])
            #expect(result.code == 0, "\(words.joined(separator: " ")): \(result.errors)")
            let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8))
            return try #require(object as? [String: Any], "\(words.joined(separator: " ")): \(result.output)")
        }

        func file(_ name: String, _ text: String) throws -> String {
            let path = service.directory.path + "/" + name
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
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
        let removal = try shell.fields("remove", deck, roots[0])
        let sequence = try #require(removal["sequence"] as? Int)
        let checked = try shell.run(["collab", "check", deck, grants[0], grants[2], "--at-least", "\(sequence)"])
        #expect(checked.code == 1)
        #expect(checked.output == "revoked\nvalid readWrite member\n")
        _ = try shell.fields("options", deck, "--select", "view")
        #expect(try shell.run(["collab", "check", deck, grants[2]]).output == "revoked\n")
        #expect(
            strings(try shell.fields("participants", deck, "--all"), "participants", "state").sorted() == [
                "joined", "removed",
            ])
        #expect(try shell.fields("details", deck)["participantCount"] as? Int == 1)
        _ = try shell.fields("customize", deck, "--manage-title", "Manage Deck")
        #expect(try shell.fields("details", deck)["manageButtonTitle"] as? String == "Manage Deck")
        _ = try shell.fields("stop", deck)
        #expect(try shell.run(["collab", "details", deck]).code == 2)
    }

    @Test("Shelves and invitations work from a shell")
    func shelves() throws {
        let shell = try Shell()
        for link in ["https://example.com/1", "https://example.com/2"] {
            _ = try shell.fields("share", link, "--conversation", "c", "--sharer", "Olga", "--to", "ana,bo")
        }
        let first = "https://example.com/1"
        let offers = try shell.fields("pin", first, "--account", "ana")["offersAutomaticSharing"] as? Bool
        #expect(offers == true)
        #expect(
            strings(try shell.fields("shelf", "--account", "ana"), "highlights", "url") == [
                first, "https://example.com/2",
            ])
        _ = try shell.fields("unpin", first, "--account", "ana")
        _ = try shell.fields("signal", "https://example.com/2", "shown", "--context", "detail", "--account", "ana")
        _ = try shell.fields("hide", first, "--account", "ana")
        #expect(
            strings(try shell.fields("shelf", "--account", "ana"), "highlights", "url") == ["https://example.com/2"])
        #expect(try shell.fields("attribution", first, "--account", "bo")["summary"] as? String == "From Olga")
        _ = try shell.fields("consent", "conversation=c", "no", "--account", "bo")
        #expect(try shell.fields("shelf", "--account", "bo")["count"] as? Int == 0)
        #expect(try shell.fields("consent", "--account", "bo")["conversations"] as? [String: Bool] == ["c": false])

        let deck = try #require(
            try shell.fields("prepare", "deck", "--owner", "olga")["collaborationIdentifier"] as? String)
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
            strings(try shell.fields("invitations", deck, "--all"), "invitations", "state").sorted() == [
                "completed", "revoked",
            ])
        _ = try shell.fields("stop", deck)
        #expect(try shell.run(["collab", "invitation", token]).code == 1)
        #expect(strings(try shell.fields("shares", "--account", "ana"), "shares", "title").isEmpty)
    }

    @Test(
        "Wrong words end with exit code 2 and one line",
        arguments: [
            [], ["dance"], ["prepare"], ["prepare", "x"], ["add", "x"], ["add", "x", "zz"], ["check", "x"],
            ["check", "x", "not-a-grant"], ["post", "x", "edit"], ["consent", "moon", "yes", "--account", "a"],
            ["shelf"], ["shares", "--account", "a", "--scope", "other"], ["highlight", "::"],
            ["accept", "--account", "a"], ["invitation", "x"], ["withdraw", "x", "--account", "a"],
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
