import Core
import Foundation
import RootgateClient

/// A verb's arguments, and the client that it talks through.
struct CollabCall: Sendable {
    let arguments: Arguments
    /// The operands behind the verb.
    let operands: [String]
    private let connectedClient: RootgateClient

    init(_ client: RootgateClient, _ arguments: Arguments) {
        connectedClient = client
        self.arguments = arguments
        operands = Array(arguments.operands.dropFirst())
    }

    /// The client. The verb reads its options first: throws `UsageError` when it has not read one that was given.
    func client() throws -> RootgateClient {
        try arguments.checkAllRead()
        return connectedClient
    }

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
        guard let url = URL(string: text, encodingInvalidCharacters: false), url.scheme != nil else {
            throw UsageError("\(text) is not a link; write characters that a link can't have as %XX")
        }
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
        try operands.dropFirst(index).map(identity)
    }

    /// Names separated by commas, at least one.
    func requiredNames(_ option: String) throws -> [String] {
        let names = try arguments.required(option).split(separator: ",").map(String.init)
        guard !names.isEmpty else { throw UsageError("--\(option) is needed") }
        return names
    }

    /// The identities that an option names, separated by commas.
    func identities(option: String) throws -> [PersonIdentity] { try (names(option) ?? []).map(identity) }

    /// The grant that `--grant` gives, if it does.
    func givenGrant() throws -> AccessGrant? { try arguments.text("grant").map(grant) }

    /// The window of `--policy device-nonce`; `nil` for challenges.
    func nonceWindow() throws -> UInt32? {
        switch try arguments.required("policy") {
        case "challenge":
            guard arguments.isGiven("window") else { return nil }
            throw UsageError("--window needs --policy device-nonce")
        case "device-nonce":
            let range = Int(Limits.nonceWindowSecondsMin)...Int(Limits.nonceWindowSecondsMax)
            return UInt32(try arguments.number("window", in: range))
        default: throw UsageError("--policy is challenge or device-nonce")
        }
    }

    /// Throws `UsageError` when `--clear` names an option that the verb can't clear.
    func checkClear(_ options: String...) throws {
        if let stranger = (names("clear") ?? []).first(where: { !options.contains($0) }) {
            throw UsageError("\(stranger) can't be cleared here: --clear takes \(options.joined(separator: ", "))")
        }
    }

    /// What an option sets; cleared when `--clear` names the option, kept when neither says anything.
    func patch<Value>(_ option: String, _ value: Value?) throws -> Patch<Value> {
        guard (names("clear") ?? []).contains(option) else { return value.map { .set($0) } ?? .keep }
        guard value == nil else { throw UsageError("--clear and --\(option) contradict each other") }
        return .clear
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

    /// The role that `--role` gives, if it does. Nobody is made the owner by it.
    func role() throws -> ParticipantRole? {
        guard let text = arguments.text("role") else { return nil }
        let roles = [ParticipantRole.administrator, .member]
        guard let role = roles.first(where: { $0.rawValue == text }) else {
            throw UsageError("--role is administrator or member, not \(text)")
        }
        return role
    }

    /// Names separated by commas.
    func names(_ option: String) -> [String]? {
        arguments.text(option)?.split(separator: ",").map(String.init)
    }

    /// A value from a file of JSON.
    func value<Value: Decodable>(_ type: Value.Type, fromFile option: String) throws -> Value? {
        guard let path = arguments.text(option) else { return nil }
        let data = try contents(of: path)
        do throws(ServiceError) {
            return try JSON.decodeStrictly(type, from: Array(data))
        } catch {
            throw UsageError("\(path): \(error.reason)")
        }
    }

    /// The most items of a page: `--limit`, or 64 when it is not given.
    func limit(upTo most: Int) throws -> Int {
        try arguments.text("limit") == nil ? min(64, most) : arguments.number("limit", in: 1...most)
    }

    /// The number that `--after` gives, or 0.
    func afterNumber() throws -> Int {
        try arguments.text("after") == nil ? 0 : arguments.number("after", in: 0...Int.max)
    }

    /// Prints an answer: one line for machines, indented for people.
    func show(_ answer: some Encodable) throws {
        let bytes = try JSON.encode(answer)
        if arguments.isOn("json") { return printNow(String(decoding: bytes, as: UTF8.self).escapingControls) }
        let object = try JSONSerialization.jsonObject(with: Data(bytes), options: [.fragmentsAllowed])
        let pretty = try JSONSerialization.data(
            withJSONObject: object, options: [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes, .fragmentsAllowed])
        printNow(String(decoding: pretty, as: UTF8.self).escapingControls(besides: "\n"))
    }
}
