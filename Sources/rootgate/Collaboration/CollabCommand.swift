import Core
import Foundation
import RootgateClient

/// One thing that `rootgate collab` does.
struct CollabVerb: Sendable {
    let name: String
    let operands: String
    let summary: String
    let run: @Sendable (CollabCall) async throws -> ExitCode

    init(
        _ name: String, _ operands: String, _ summary: String,
        run: @escaping @Sendable (CollabCall) async throws -> ExitCode
    ) {
        self.name = name
        self.operands = operands
        self.summary = summary
        self.run = run
    }

    /// A verb that sends one request and prints its answer.
    init<Request: CollaborationRequest>(
        _ name: String, _ operands: String, _ summary: String,
        request: @escaping @Sendable (CollabCall) throws -> Request
    ) {
        self.init(name, operands, summary) { call in
            try call.show(try await call.client.send(try request(call)))
            return .success
        }
    }
}

/// A verb's arguments, and the client that it talks through.
struct CollabCall: Sendable {
    let client: RootgateClient
    let arguments: Arguments
    /// The operands behind the verb.
    let operands: [String]

    /// The operand at a place; `what` says what is missing.
    func operand(_ index: Int, _ what: String) throws -> String {
        guard operands.indices.contains(index) else { throw UsageError("name \(what)") }
        return operands[index]
    }

    /// The collaboration that the first operand names.
    func collaboration() throws -> CollaborationIdentifier {
        try rootgate.collaboration(try operand(0, "the collaboration"))
    }

    func link(_ index: Int = 0) throws -> URL {
        try url(try operand(index, "the link"))
    }

    func url(_ text: String) throws -> URL {
        guard let url = URL(string: text), url.scheme != nil else { throw UsageError("\(text) is not a link") }
        return url
    }

    func account(_ option: String = "account") throws -> Account {
        try account(named: try arguments.required(option))
    }

    func account(named text: String) throws -> Account {
        guard let account = Account(text) else {
            throw UsageError("an account's name is 1 to 128 bytes of UTF-8 without control characters")
        }
        return account
    }

    func identity(_ text: String) throws -> PersonIdentity {
        guard let root = Digest(hexadecimal: text) else {
            throw UsageError("\(text) is not a root hash in hexadecimal")
        }
        return PersonIdentity(rootHash: root)
    }

    func identities(from index: Int) throws -> [PersonIdentity] {
        let texts = operands.dropFirst(index)
        guard !texts.isEmpty else { throw UsageError("name at least one identity, a root hash in hexadecimal") }
        return try texts.map(identity)
    }

    /// The identity that `--identity` gives, if it does.
    func givenIdentity() throws -> PersonIdentity? {
        try arguments.text("identity").map(identity)
    }

    func grant(_ text: String) throws -> AccessGrant {
        guard let grant = AccessGrant(text: text) else { throw UsageError("\(text.prefix(40)) is not a grant") }
        return grant
    }

    /// One of an enumeration's names.
    func choice<Value: RawRepresentable & CaseIterable>(
        _ type: Value.Type, _ text: String
    ) throws -> Value where Value.RawValue == String {
        guard let value = Value(rawValue: text) else {
            throw UsageError("\(text) is not one of \(Value.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return value
    }

    func choice<Value: RawRepresentable & CaseIterable>(
        _ type: Value.Type, option: String
    ) throws -> Value? where Value.RawValue == String {
        try arguments.text(option).map { try choice(type, $0) }
    }

    /// Names separated by commas.
    func names(_ option: String) -> [String]? {
        arguments.text(option)?.split(separator: ",").map(String.init)
    }

    /// A value from a file of JSON.
    func value<Value: Decodable>(_ type: Value.Type, fromFile option: String) throws -> Value? {
        guard let path = arguments.text(option) else { return nil }
        let data =
            path == "-"
            ? FileHandle.standardInput.readDataToEndOfFile() : try Data(contentsOf: URL(fileURLWithPath: path))
        do throws(ServiceError) {
            return try JSON.decode(type, from: Array(data))
        } catch {
            throw UsageError("\(path): \(error.reason)")
        }
    }

    /// Prints an answer: one line for machines, indented for people.
    func show(_ answer: some Encodable) throws {
        let bytes = try JSON.encode(answer)
        if arguments.isOn("json") { return printNow(String(decoding: bytes, as: UTF8.self)) }
        let object = try JSONSerialization.jsonObject(with: Data(bytes), options: [.fragmentsAllowed])
        let pretty = try JSONSerialization.data(
            withJSONObject: object, options: [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes, .fragmentsAllowed])
        printNow(String(decoding: pretty, as: UTF8.self))
    }
}

let collabCommand = Command(
    "collab", operands: "VERB [OPERAND ...]", operandsMax: 4096,
    """
    start and keep collaborations: share options, participants, grants, notices, shelves, invitations

    verbs:
    \(collabVerbs.map { verb in
        "  " + "\(verb.name) \(verb.operands)".padding(toLength: 38, withPad: " ", startingAt: 0) + verb.summary
    }.joined(separator: "\n"))
    """,
    options: [
        .server, .timeout, .json,
        Option("policy", "POLICY", standard: "challenge", "create: challenge or device-nonce"),
        Option("window", "SECONDS", standard: "86400", "create, device-nonce: how long a nonce is remembered"),
        Option("owner", "ACCOUNT", "prepare, abandon: who starts it"),
        Option(
            "title", "TEXT", "prepare, customize, share: the content's title; attribution: of the entry that removes"),
        Option("handle", "TEXT", "prepare: the address of who starts it"),
        Option("options", "FILE", "prepare: share options as JSON"),
        Option("select", "ID,...", "prepare, options: identifiers of the selected options"),
        Option("identity", "HEX", "a root hash: the owner's, the viewer's, the accepter's"),
        Option("name", "TEXT", "the participant's name, as notices tell it"),
        Option("role", "ROLE", "administrator or member"),
        Option("permission", "NAME", "readOnly or readWrite; what the share options say, unless it is given"),
        Option("account", "ACCOUNT", "the person, as the app's backend names it"),
        Option("grant", "GRANT", "post, clear: the grant of who does it"),
        Option("after", "SEQUENCE", standard: "0", "notices: from behind this sequence on"),
        Option("limit", "N", standard: "64", "items in an answer"),
        Option("at-least", "SEQUENCE", standard: "0", "open, check: a sequence that must have been applied"),
        Option(switch: "follow", "notices: go on until interrupted"),
        Option(switch: "all", "participants, invitations: those that are over too"),
        Option("app", "ID", standard: "app", "share: the bundle identifier of the app that opens the link"),
        Option("sharer", "NAME", "share: who shared it"),
        Option("conversation", "ID", "share, pin, unpin: the conversation"),
        Option(switch: "group", "share: the conversation is a group"),
        Option(switch: "strangers", "share: the recipients know nobody in the conversation"),
        Option("to", "ACCOUNT,...", "share: on whose shelves it belongs"),
        Option("context", "NAME", "signal shown: summary or detail"),
        Option("items", "FILE", "customize: custom items as JSON"),
        Option("manage-title", "TEXT", "customize: the title of the manage button"),
        Option("hours", "N", "invite: after so many hours the invitation expires"),
        Option("scope", "SCOPE", standard: "shared", "shares: shared or private"),
    ]
) { arguments in
    guard let name = arguments.operands.first else { throw UsageError("say what to do") }
    guard let verb = collabVerbs.first(where: { $0.name == name }) else { throw UsageError("there is no verb \(name)") }
    let client = try connect(try arguments.required("server"), arguments)
    defer { client.close() }
    return try await verb.run(
        CollabCall(client: client, arguments: arguments, operands: Array(arguments.operands.dropFirst())))
}
