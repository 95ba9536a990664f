import Core
import Foundation
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

@testable import rootgate

/// A collaboration with everything that a file can have, at a service of its own.
private final class TransferScene: Sendable {
    let source: TestService
    let target: TestService
    let collaboration: CollaborationIdentifier
    /// Two people with one device each, who have joined; the first is an administrator, linked to the account `ana`.
    let people: [String]
    /// A grant of each of them.
    let grants: [String]
    static let owner = String(repeating: "0", count: 63) + "7"
    static let invited = String(repeating: "0", count: 63) + "8"
    static let bare = String(repeating: "0", count: 63) + "9"
    static let takenOut = String(repeating: "0", count: 63) + "a"
    static let title = "Deck \"one\" \u{1f4c8} \\ \u{130} \u{301}"
    private static let options = """
        {"groups":[{"kind":"picker","identifier":"permission","title":"Who","footer":"","options":[
        {"title":"Can change","subtitle":"","identifier":"change","isSelected":false,"requiredOptionsIdentifiers":[],
        "effects":["readWrite"]},
        {"title":"Can view","subtitle":"s","identifier":"view","isSelected":true,"requiredOptionsIdentifiers":[],
        "effects":["readOnly"]}]},{"kind":"switches","identifier":"more","title":"","footer":"f","options":[
        {"title":"Comments","subtitle":"","identifier":"comments","isSelected":true,
        "requiredOptionsIdentifiers":["view"],"effects":["comment","addParticipants"]}]}],
        "givenSummary":"As \\"agreed\\""}
        """
    private static let items = """
        [{"identifier":"one","title":"Show","subtitle":"all","url":"https://example.com/one"},
        {"identifier":"two","title":"\\u00e9"}]
        """

    init() throws {
        source = try TestService()
        target = try TestService { $0.linkBase = "https://elsewhere.example/decks" }
        let folder = source.directory.path
        try Data(TransferScene.options.utf8).write(to: URL(fileURLWithPath: folder + "/options"))
        try Data(TransferScene.items.utf8).write(to: URL(fileURLWithPath: folder + "/items"))
        let picture: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]
        try Data(picture).write(to: URL(fileURLWithPath: folder + "/picture"))
        let prepared = try TransferScene.fields(
            source,
            [
                "prepare", "deck.key", "--owner", "olga", "--title", "first", "--handle", "olga@example.com",
                "--options", folder + "/options", "--name", "Olga", "--policy", "device-nonce", "--window", "600",
            ])
        let deck = try #require(prepared["collaborationIdentifier"] as? String)
        collaboration = try #require(CollaborationIdentifier(deck))
        people = try TransferScene.join(source, deck)
        let opened = try TransferScene.run(source, ["collab", "open", deck, folder + "/proofs"])
        #expect(opened.code == 0, "\(opened.errors)")
        grants = try opened.output.split(separator: "\n").map {
            let object = try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
            return try #require(object?["grant"] as? String)
        }
        for words in [
            ["claim", deck, TransferScene.owner, "--owner", "olga"],
            ["update", deck, TransferScene.owner, "--clear", "name"],
            ["link", deck, people[0], "--account", "ana"],
            ["update", deck, people[0], "--role", "administrator", "--name", "Ana \"A\""],
            ["add", deck, TransferScene.invited, "--permission", "readWrite", "--name", "Ben"],
            ["add", deck, TransferScene.takenOut],
            [
                "customize", deck, "--title", TransferScene.title, "--items", folder + "/items", "--manage-title",
                "Manage Shared File",
            ],
            ["invite", deck, "--name", "Olga", "--hours", "3"],
            [
                "share", "https://example.com/collab/\(deck)/page/3?x#y", "--app", "com.example.x", "--sharer", "Olga",
                "--conversation", "family", "--group", "--to", "ana,ben", "--title", "T", "--thumbnail",
                folder + "/picture",
            ],
            ["pin", "https://example.com/collab/\(deck)/page/3?x#y", "--account", "ana", "--every-app"],
            ["post", deck, "comment", "--grant", grants[1]],
        ] { _ = try TransferScene.fields(source, words) }
        for words in [["add", TransferScene.bare], ["remove", TransferScene.takenOut]] {
            let changed = try TransferScene.run(source, ["roots"] + words + ["--collaboration", deck])
            #expect(changed.code == 0, "\(changed.errors)")
        }
    }

    /// Two simulated people who become participants. Their proofs are in a file of the service's folder.
    private static func join(_ service: TestService, _ deck: String) throws -> [String] {
        let simulated = try run(
            service,
            [
                "simulate", "--collaboration", deck, "--people", "2", "--devices", "1", "--register", "--participants",
            ])
        #expect(simulated.code == 0, "\(simulated.errors)")
        try Data(simulated.output.utf8).write(to: URL(fileURLWithPath: service.directory.path + "/proofs"))
        return try simulated.output.split(separator: "\n").map {
            let object = try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
            return try #require(object?["rootHash"] as? String)
        }
    }

    static func run(
        _ service: TestService, _ words: [String], input: String? = nil
    ) throws -> (code: Int32, output: String, errors: String) {
        try runProgram(
            programPath, words, input: input, environment: ["ROOTGATE_SERVER": service.endpoint.description])
    }

    static func fields(_ service: TestService, _ words: [String], input: String? = nil) throws -> [String: Any] {
        let result = try run(service, ["collab"] + words + ["--json"], input: input)
        #expect(result.code == 0, "\(words.joined(separator: " ")): \(result.errors)")
        let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8))
        return try #require(object as? [String: Any], "\(words.joined(separator: " ")): \(result.output)")
    }

    func export(_ service: TestService, _ words: String...) throws -> String {
        let result = try TransferScene.run(
            service, ["collab", "export", collaboration.description, "--owner", "olga"] + words)
        #expect(result.code == 0 && result.errors.isEmpty, "\(result.errors)")
        return result.output
    }
}

/// The lines of a file with an end that fits them, whatever stood there before.
private func ended(_ lines: [String]) throws -> String {
    var end = TransferEnd()
    func count(_ kind: String) -> Int { lines.count { $0.hasPrefix("{\"\(kind)\"") } }
    end.participants = count("participant")
    end.roots = count("root")
    end.invitations = count("invitation")
    end.notices = count("notice")
    end.shares = count("share")
    let text = lines.map { $0 + "\n" }.joined()
    end.sha256 = try #require(Digest(ProofOracle.hash(Array(text.utf8))))
    return text + (try TransferLine(end: end).text())
}

private func lines(_ text: String) -> [String] { text.split(separator: "\n").map(String.init) }

@Suite("Export and import of a collaboration")
struct CollabTransferTests {
    @Test("What is imported is exported again, but for what the handbook says is not moved")
    func roundTrip() async throws {
        let scene = try TransferScene()
        let file = try scene.export(scene.source, "--with-notices", "--with-shelves")
        #expect(try scene.export(scene.source, "--with-notices", "--with-shelves") == file, "the order is another one")
        let kinds = lines(file).map { String($0.dropFirst(2).prefix { $0 != "\"" }) }
        #expect(kinds.filter { $0 == "participant" }.count == 5 && kinds.filter { $0 == "root" }.count == 1)
        #expect(kinds.first == "format" && kinds.suffix(4) == ["invitation", "notice", "share", "end"])
        // The owner's app has chosen the standard title's words: they are not taken for the standard title.
        #expect(file.contains(#""manageButtonTitle":"Manage Shared File""#))
        for secret in scene.grants + ["token"] { #expect(!file.contains(secret)) }
        let report = try TransferScene.fields(scene.target, ["import", "-"], input: file)
        #expect(report["participants"] as? Int == 4 && report["roots"] as? Int == 1 && report["shares"] as? Int == 1)
        #expect(report["leftOut"] as? [String] == [TransferScene.takenOut] && report["isRepeat"] as? Bool == false)
        #expect(report["invitations"] as? Int == 1 && report["notices"] as? Int == 1)
        let links = try #require(report["links"] as? [[String: Any]])
        #expect(links.count == 1 && links[0]["account"] as? String == "ana")
        #expect(report["url"] as? String == "https://elsewhere.example/decks/\(scene.collaboration)")

        // What a person would expect of the second file, by the first one.
        let client = try scene.target.client()
        defer { client.close() }
        let invitedAt = try await client.send(ListParticipants(of: scene.collaboration, limit: 1)).participants[0]
            .invitedAt
        let invited = "\"invitedAt\":\(Int((invitedAt.timeIntervalSince1970 * 1000).rounded()))"
        var expected: [String] = []
        for line in lines(file) where !line.hasPrefix("{\"invitation") && !line.hasPrefix("{\"notice") {
            guard !line.contains(TransferScene.takenOut), !line.hasPrefix("{\"share"), !line.hasPrefix("{\"end") else {
                continue
            }
            expected.append(
                line.replacing(/"invitedAt":\d+/, with: "\"invitedAt\":0").replacing(/,"joinedAt":\d+/, with: "")
                    .replacing("\"account\":\"ana\",", with: "").replacing("\"joined\"", with: "\"invited\"")
                    .replacing("https://example.com/collab/", with: "https://elsewhere.example/decks/"))
        }
        let again = try scene.export(scene.target)
        #expect(again.contains(invited))
        let timeless = lines(again).dropLast().map { $0.replacing(/"invitedAt":\d+/, with: "\"invitedAt\":0") }
        #expect(timeless == expected)
        // Nobody is in by the grants of before, and open doors are those of the file.
        for grant in scene.grants {
            let checked = try TransferScene.run(
                scene.target, ["collab", "check", scene.collaboration.description, grant])
            #expect(checked.code == 1 && checked.output == "forged\n")
        }
        let open = try await client.send(ListInvitations(of: scene.collaboration, includesSettled: true))
        #expect(open.invitations.isEmpty)
        try await checkShelf(scene, client)
    }

    /// The pinned share is on the shelf, with its picture, and nobody else has it.
    private func checkShelf(_ scene: TransferScene, _ client: RootgateClient) async throws {
        let ana = try #require(Account("ana"))
        let shelf = try await client.send(ReadShelf(of: ana, for: .everyApp))
        let item = try #require(shelf.highlights.first)
        #expect(shelf.count == 1 && item.isPinned && item.title == "T" && item.app == "com.example.x")
        #expect(
            item.url.absoluteString == "https://elsewhere.example/decks/\(scene.collaboration)/page/3?x#y")
        #expect(item.attributions.first?.sharer?.name == "Olga")
        #expect(item.attributions.first?.conversation?.isGroup == true)
        guard case .stored(let hash, _, _) = item.thumbnail else {
            Issue.record("the thumbnail is missing")
            return
        }
        let picture = try await client.send(ReadThumbnail(hash, of: item.url, on: ana, for: .everyApp))
        #expect(picture.bytes.count == 11)
        #expect(try await client.send(ReadShelf(of: try #require(Account("ben")), for: .everyApp)).count == 0)
    }

    @Test("An import that is repeated changes nothing, and what was taken away in between does not come back")
    func repetition() async throws {
        let scene = try TransferScene()
        let file = try scene.export(scene.source, "--with-shelves")
        _ = try TransferScene.fields(scene.target, ["import", "-"], input: file)
        let deck = scene.collaboration.description
        _ = try TransferScene.fields(scene.target, ["remove", deck, scene.people[0]])
        let link = "https://elsewhere.example/decks/\(deck)/page/3?x#y"
        _ = try TransferScene.fields(scene.target, ["unpin", link, "--account", "ana", "--every-app"])
        let before = try scene.export(scene.target)
        let again = try TransferScene.fields(scene.target, ["import", "-"], input: file)
        #expect(again["isRepeat"] as? Bool == true)
        #expect(try scene.export(scene.target) == before)
        let shelf = try TransferScene.fields(scene.target, ["shelf", "--account", "ana", "--every-app"])
        #expect(shelf["count"] as? Int == 0)
        // Another file of the same collaboration is another import.
        let other = try scene.export(scene.source)
        let refused = try TransferScene.run(scene.target, ["collab", "import", "-"], input: other)
        #expect(refused.code == 2 && refused.errors.contains("an import changes none"), "\(refused.errors)")
        #expect(try scene.export(scene.target) == before)
        // Once it has ended, both may be imported, and neither while the other one is there.
        for (first, second) in [(file, other), (other, file), (file, other)] {
            _ = try TransferScene.fields(scene.target, ["stop", deck])
            _ = try TransferScene.fields(scene.target, ["import", "-"], input: first)
            #expect(try scene.export(scene.target).contains(scene.people[0]))
            #expect(try TransferScene.run(scene.target, ["collab", "import", "-"], input: second).code == 2)
            // Also the second import of a file can be repeated.
            let repeated = try TransferScene.fields(scene.target, ["import", "-"], input: first)
            #expect(repeated["isRepeat"] as? Bool == true)
        }
    }

    /// Starts an import of 6,000 participants, and returns when some of them are there. Its file is at the path.
    private func halfImport(_ scene: TransferScene) async throws -> (process: Process, path: String) {
        var generator = SeededGenerator(seed: runSeed)
        var moved = lines(try scene.export(scene.source)).filter { $0.contains("\"format\"") || $0.contains("\"url\"") }
        moved += (0..<6_000).map { _ in generator.digest() }.sorted().map {
            #"{"participant":{"identity":"\#($0)","invitedAt":1,"isInSet":true,"role":"member","state":"invited"}}"#
        }
        let path = scene.source.directory.path + "/file"
        try Data(try ended(moved).utf8).write(to: URL(fileURLWithPath: path))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: programPath)
        process.arguments = ["collab", "import", path, "--server", scene.target.endpoint.description]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        let client = try scene.target.client()
        defer { client.close() }
        var count: UInt64 = 0
        while count < 256 { count = (try? await client.state(of: scene.collaboration).rootCount) ?? 0 }
        return (process, path)
    }

    @Test("An import whose collaboration was ended meanwhile goes on in no other one that has taken its place")
    func replaced() async throws {
        let scene = try TransferScene()
        let small = try scene.export(scene.source)
        let process = try await halfImport(scene).process
        let client = try scene.target.client()
        defer { client.close() }
        kill(process.processIdentifier, SIGSTOP)
        _ = try TransferScene.fields(scene.target, ["stop", scene.collaboration.description])
        _ = try TransferScene.fields(scene.target, ["import", "-"], input: small)
        let alone = try await client.state(of: scene.collaboration).rootCount
        kill(process.processIdentifier, SIGCONT)
        process.waitUntilExit()
        #expect(process.terminationStatus == 2)
        // One request may have been on its way behind the last look.
        let after = try await client.state(of: scene.collaboration).rootCount
        #expect(after <= alone + 128 && alone < 100)
    }

    @Test("An import that is killed goes on when it is repeated, and is whole then")
    func killed() async throws {
        let scene = try TransferScene()
        let (process, path) = try await halfImport(scene)
        let client = try scene.target.client()
        defer { client.close() }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        let half = try await client.state(of: scene.collaboration).rootCount
        #expect(half >= 256 && half < 6_000)
        let rest = try TransferScene.fields(scene.target, ["import", path])
        #expect(rest["isRepeat"] as? Bool == true && rest["participants"] as? Int == 6_000)
        #expect(try await client.state(of: scene.collaboration).rootCount == 6_000)
    }

    @Test("An import that the service refuses in the middle says what is there, and how to go on")
    func refusedInTheMiddle() async throws {
        let scene = try TransferScene()
        let file = try scene.export(scene.source, "--with-shelves").replacing("image/png", with: "image/gif")
        let broken = try ended(lines(file).dropLast())
        let result = try TransferScene.run(scene.target, ["collab", "import", "-"], input: broken)
        #expect(result.code == 2)
        #expect(result.errors.contains("not whole: 4 of 5 participants were added"), "\(result.errors)")
        #expect(result.errors.contains("malformed-request"), "\(result.errors)")
        _ = try TransferScene.fields(scene.target, ["stop", scene.collaboration.description])
    }

    @Test("A file that is damaged, cut, newer or says what can't be is refused, and nothing is made")
    func wrongFiles() async throws {
        let scene = try TransferScene()
        let good = try scene.export(scene.source, "--with-notices", "--with-shelves")
        let all = lines(good)
        let body = Array(all.dropLast())
        var wrong: [(file: String, told: String)] = [
            ("", "is empty"), ("{}\n", "names no format"), ("nonsense\n", "names no format"),
            (good.replacing("rootgate-collaboration", with: "rootgate-other"), "its format is another one"),
            (
                "{\"format\":\"rootgate-collaboration\",\"version\":2,\"more\":{}}\n{\"unknown\":1}\n",
                "by a newer rootgate: its version is 2"
            ),
            (good + "{\"root\":\"\(TransferScene.bare)\"}\n", "follows the end"),
            (good.replacing("Olga", with: "Olgb"), "other counts or another SHA-256"),
            (good.replacing("\"roots\":1", with: "\"roots\":2"), "other counts or another SHA-256"),
            (body.map { $0 + "\n" }.joined() + String(repeating: "x", count: 3 << 20), "is longer than 1 MiB"),
        ]
        for count in 1..<all.count {
            wrong.append((all.prefix(count).map { $0 + "\n" }.joined(), "was cut behind line \(count)"))
        }
        wrong.append((String(good.dropLast(20)), "can't be read"))
        func changed(_ change: (inout [String]) -> Void) throws -> String {
            var lines = body
            change(&lines)
            return try ended(lines)
        }
        let person = try #require(body.firstIndex { $0.contains(TransferScene.owner) })
        func replaced(_ old: String, _ new: String, at line: Int? = nil) throws -> String {
            try changed { lines in
                for place in lines.indices where line == nil || line == place {
                    lines[place] = lines[place].replacing(old, with: new)
                }
            }
        }
        wrong += [
            (try changed { $0.swapAt(person, person + 1) }, "not in ascending order"),
            (try changed { $0.insert($0[person], at: person) }, "not in ascending order"),
            (try changed { $0.swapAt(1, 2) }, "neither a collaboration nor a set"),
            (try changed { $0.insert($0[1], at: 2) }, "at the wrong place"),
            (try changed { $0.append($0[person]) }, "at the wrong place"),
            (try changed { $0[1] = #"{"rootSet":{"collaboration":"c"}}"# }, "at the wrong place"),
            (try replaced("\"member\"", "\"owner\""), "second owner"),
            (try replaced("\"joined\"", "\"removed\""), "who was removed"),
            (try replaced("\"isInSet\":true", "\"isInSet\":true,\"more\":1", at: person), "not a known field"),
            (try replaced("\"isInSet\":true", "\"isInSet\":1", at: person), "can't be read"),
            (
                try replaced("{\"participant\"", "{\"root\":\"\(TransferScene.bare)\",\"participant\"", at: person),
                "has not exactly one part"
            ),
            (try replaced("\"Ben\"", "\"\(String(repeating: "x", count: 513))\""), "displayName"),
            (try replaced("\"Ben\"", "\"\\u202e\""), "displayName"),
            (try replaced("\(scene.collaboration)", "a/b"), "not an identifier that prepare gives"),
            (try replaced("\"isSelected\":true", "\"isSelected\":false", at: 1), "no option of the group"),
            (try replaced("\"olga\"", "\"\\u0007\"", at: 1), "not the name of an account"),
            (try replaced("\"deck.key\"", "\"\"", at: 1), "metadata.localIdentifier"),
            (try replaced("\"two\"", "\"one\"", at: 1), "that of an item before it"),
            (try replaced("\"nonceWindowSeconds\":600", "\"nonceWindowSeconds\":0", at: 1), "nonceWindowSeconds"),
        ]
        for (file, told) in wrong {
            let result = try TransferScene.run(scene.target, ["collab", "import", "-"], input: file)
            let isTold = result.errors.contains(told) && result.errors.split(separator: "\n").count == 1
            #expect(result.code == 2 && result.output.isEmpty && isTold, "\(told): \(result.errors)")
        }
        let client = try scene.target.client()
        defer { client.close() }
        #expect(try await client.collaborations().items.isEmpty)
    }

    @Test("Without a role nothing is exported, and an import makes nothing")
    func roles() throws {
        let scene = try TransferScene()
        let file = try scene.export(scene.source, "--with-shelves")
        let data = scene.source.directory.path + "/guarded"
        let made = try runProgram(
            programPath, ["keys", "create", "root", "--role", "administer", "--offline", "--data", data])
        let running = try ServeTests.Running(data, ["--link-base", "https://example.com/collab"])
        func key(_ name: String, _ roles: [String]) throws -> [String: String] {
            let words = ["keys", "create", name, "--prefix", "*"] + roles.flatMap { ["--role", $0] }
            let created = try runProgram(
                programPath, words + ["--server", running.endpoint],
                environment: ["ROOTGATE_KEY": made.output.trimmingCharacters(in: .newlines)])
            #expect(created.code == 0, "\(created.errors)")
            return ["ROOTGATE_KEY": created.output.trimmingCharacters(in: .newlines)]
        }
        func attempt(_ key: [String: String], _ words: String..., input: String? = nil) throws -> String {
            let all = ["collab"] + words + ["--server", running.endpoint]
            let result = try runProgram(programPath, all, input: input, environment: key)
            return result.code == 0 ? "" : result.errors
        }
        let deck = scene.collaboration.description
        let whole = try key("whole", ["enrol", "collaborate", "observe"])
        for (name, roles) in [("a", ["enrol", "observe"]), ("b", ["collaborate", "observe"]), ("c", ["verify"])] {
            let lacking = try key(name, roles)
            #expect(try attempt(lacking, "import", "-", input: file).contains("role-missing"), "\(roles)")
            #expect(try attempt(whole, "highlight", deck).contains("unknown-collaboration"))
        }
        #expect(try attempt(whole, "import", "-", input: file).isEmpty)
        #expect(try attempt(whole, "export", deck, "--owner", "olga").isEmpty)
        for (name, roles) in [
            ("d", ["enrol", "observe"]), ("e", ["collaborate", "observe"]), ("f", ["enrol", "collaborate"]),
        ] {
            let lacking = try key(name, roles)
            #expect(try attempt(lacking, "export", deck, "--owner", "olga").contains("role-missing"), "\(roles)")
        }
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("A collaboration that changes while it is exported gives a file without an end")
    func changedMeanwhile() async throws {
        let scene = try TransferScene()
        let client = try scene.source.client()
        defer { client.close() }
        let deck = scene.collaboration.description
        for (number, words) in [
            ["add", deck, String(repeating: "b", count: 64)], ["remove", deck, TransferScene.invited],
            ["options", deck, "--select", "change"], ["customize", deck, "--title", "Another"],
        ].enumerated() {
            let export = CollabExport(
                client: client, collaboration: scene.collaboration, owner: Account("olga"), wantsNotices: false,
                wantsShares: false)
            var text = ""
            let error = await #expect(throws: UsageError.self, "\(words)") {
                // What is read a second time comes behind the first line of people; what the collaboration is, before.
                try await export.run { line in
                    text += line
                    guard number < 2, line.contains("\"format\"") else { return }
                    #expect(throws: Never.self) { _ = try TransferScene.fields(scene.source, words) }
                } between: {
                    guard number >= 2 else { return }
                    #expect(throws: Never.self) { _ = try TransferScene.fields(scene.source, words) }
                }
            }
            #expect(error?.text.contains("was changed while it was exported") == true, "\(words)")
            #expect(!text.contains("\"end\""))
        }
    }

    @Test("Nobody's account, another's account and a name that does not exist are refused by an export")
    func refusedExports() throws {
        let scene = try TransferScene()
        let deck = scene.collaboration.description
        for (words, told) in [
            ([deck], "name the account with --owner"), ([deck, "--owner", "ben"], "ben is not the account that owns"),
            (["nothing", "--owner", "olga"], "unknown-collaboration"),
            ([deck, "--owner", "a\u{1b}[2J"], "an account's name"),
        ] {
            let result = try TransferScene.run(scene.source, ["collab", "export"] + words)
            #expect(result.code == 2 && result.output.isEmpty && result.errors.contains(told), "\(result.errors)")
        }
    }

    @Test("A set of root hashes is moved with its policy and its name, whatever that is, and never to one that exists")
    func rootSets() async throws {
        let (first, second) = (try TestService(), try TestService())
        let name = "a/b \"c\" \u{202e}\u{2028}\u{9b}\\ \u{1f4c8}"
        let collaboration = try #require(CollaborationIdentifier(name))
        let client = try first.client()
        defer { client.close() }
        try await client.createCollaboration(collaboration, policy: .deviceNonce(windowSeconds: 77))
        var generator = SeededGenerator(seed: runSeed)
        let roots = (0..<33_000).map { _ in generator.digest() }
        try await client.addRoots(Array(roots.prefix(30_000)), to: collaboration)
        try await client.addRoots(Array(roots.dropFirst(30_000)), to: collaboration)
        let file = try TransferScene.run(first, ["collab", "export", name])
        #expect(file.code == 0, "\(file.errors)")
        let controls = file.output.unicodeScalars.filter { $0 != "\n" && $0.properties.generalCategory == .control }
        #expect(controls.isEmpty && !file.output.contains("\u{202e}"))
        let imported = try TransferScene.run(second, ["collab", "import", "-"], input: file.output)
        #expect(imported.code == 0, "\(imported.errors)")
        #expect(!imported.output.contains("\u{202e}"))
        #expect(try TransferScene.run(second, ["collab", "export", name]).output == file.output)
        let again = try TransferScene.run(second, ["collab", "import", "-"], input: file.output)
        #expect(again.code == 2 && again.errors.contains("an import changes none"), "\(again.errors)")
    }
}
