import Core
import Foundation
import Principals
import RootgateClient
import Server

/// `rootgate keys create`: makes a principal, and prints its key unless a certificate or a local user identifies it.
func createPrincipal(_ arguments: Arguments) async throws -> ExitCode {
    let name = try principalName(arguments)
    let certificates = try certificates(arguments)
    let user = try localUser(arguments)
    let key = certificates.isEmpty && user == nil ? APIKey.random() : nil
    guard key != nil || arguments.text("expires") == nil else {
        throw UsageError("--expires is for a key, and a certificate or local user has none")
    }
    let request = CreatePrincipal(
        name, roles: try limitedRoles(arguments), key: try key.map { try newKey($0, arguments) },
        certificates: certificates.isEmpty ? nil : certificates, localUser: user,
        limits: try changedLimits(arguments).applied(to: PrincipalLimits()))
    if arguments.isOn("offline") {
        let storageBytesMax = try arguments.number("storage-max", in: 1...16_777_216) << 20
        _ = try OfflinePrincipals.send(
            request, dataDirectory: try arguments.required("data"), sizeLimitBytes: storageBytesMax)
    } else {
        let client = try connect(arguments)
        defer { client.close() }
        _ = try await client.send(request)
    }
    try show(key, of: name, arguments)
    return .success
}

/// `rootgate keys list`: a line for each key, certificate and local user.
func listPrincipals(_ arguments: Arguments) async throws -> ExitCode {
    let client = try connect(arguments)
    defer { client.close() }
    for principal in try await principals(client, where: { _ in true }) {
        if arguments.isOn("json") {
            printNow(String(decoding: try JSON.encode(principal), as: UTF8.self).escapingControls)
        } else {
            for line in principal.lines { printNow(line.escapingControls) }
        }
    }
    return .success
}

/// `rootgate keys rotate`: adds a key beside the present one, and prints it.
func rotateKey(_ arguments: Arguments) async throws -> ExitCode {
    let name = try principalName(arguments)
    let key = APIKey.random()
    let client = try connect(arguments)
    defer { client.close() }
    _ = try await client.send(AddKey(try newKey(key, arguments), to: name))
    try show(key, of: name, arguments)
    complain("the key before stays valid: remove it with rootgate keys remove --key ID when no client uses it")
    return .success
}

/// `rootgate keys update`: changes what a principal may do, how it is known, and its limits. What is not named stays.
func updatePrincipal(_ arguments: Arguments) async throws -> ExitCode {
    let name = try principalName(arguments)
    var request = UpdatePrincipal(name)
    if ["role", "prefix", "app"].contains(where: arguments.isGiven) {
        request.roles = .set(try limitedRoles(arguments))
    }
    if arguments.isGiven("certificate") {
        let isNone = arguments.texts("certificate") == ["none"]
        request.certificates = isNone ? .clear : .set(try certificates(arguments))
    }
    if arguments.isGiven("local-user") {
        let isNone = arguments.text("local-user") == "none"
        request.localUser = try isNone ? .clear : localUser(arguments).map { .set($0) } ?? .keep
    }
    let changes = try changedLimits(arguments)
    if !changes.isEmpty { request.changedLimits = changes }
    guard request != UpdatePrincipal(name) else {
        throw UsageError("say what changes: its roles, certificates or local user, or one of its limits")
    }
    let client = try connect(arguments)
    defer { client.close() }
    let receipt = try await client.send(request)
    if receipt.changed == 0 { complain("\(name) was so already") }
    for principal in try await principals(client, where: { $0.name == name }) {
        for line in principal.lines { printNow(line.escapingControls) }
    }
    return .success
}

/// The names of certificates that the arguments give.
private func certificates(_ arguments: Arguments) throws -> [CertificateName] {
    try arguments.texts("certificate").map { text in
        guard let name = CertificateName(text) else {
            throw UsageError(
                "--certificate takes spiffe://..., dns:HOST or subject:NAME, without patterns, not \(text)")
        }
        return name
    }
}

/// The local user that the arguments give, if they do.
private func localUser(_ arguments: Arguments) throws -> UInt32? {
    try arguments.text("local-user").map { text in
        guard let user = UInt32(text) else { throw UsageError("--local-user takes the number of a user, not \(text)") }
        return user
    }
}

/// The principals that a condition chooses.
private func principals(
    _ client: RootgateClient, where isChosen: (ListedPrincipal) -> Bool
) async throws -> [ListedPrincipal] {
    var chosen: [ListedPrincipal] = []
    var after: PrincipalName?
    repeat {
        let page = try await client.send(ListPrincipals(after: after))
        chosen += page.principals.filter(isChosen)
        after = page.hasMore ? page.principals.last?.name : nil
    } while after != nil
    return chosen
}

/// The limits that the arguments give. What they don't name stays.
private func changedLimits(_ arguments: Arguments) throws -> LimitChanges {
    var changes: [PrincipalLimits.Kind: Patch<Int>] = [:]
    for kind in PrincipalLimits.Kind.allCases {
        guard let text = arguments.text(kind.option) else { continue }
        changes[kind] =
            try text == "none" ? .clear : .set(arguments.number(kind.option, in: 0...Limits.principalLimitMax))
    }
    return LimitChanges(changes)
}

extension PrincipalLimits {
    /// The limits for people.
    fileprivate var text: String {
        let texts = Kind.allCases.compactMap { kind in self[kind].map { "\($0) \(kind.unit)" } }
        return texts.isEmpty ? "no limits" : "at most " + texts.joined(separator: ", ")
    }
}

extension PrincipalLimits.Kind {
    /// The option that gives such a limit: the words of the field with hyphens.
    var option: String { rawValue.map { $0.isUppercase ? "-" + $0.lowercased() : String($0) }.joined() }
}

/// `rootgate keys remove`: removes a principal with its keys, or one key.
func removePrincipal(_ arguments: Arguments) async throws -> ExitCode {
    let client = try connect(arguments)
    defer { client.close() }
    let receipt: ChangeReceipt
    // Only from the command line: ROOTGATE_KEY in the environment is the key that this client presents.
    if arguments.isGiven("key"), let text = arguments.text("key") {
        guard arguments.operands.count == 1 else { throw UsageError("remove takes a NAME or --key, not both") }
        guard let identifier = KeyIdentifier(text) else {
            throw UsageError("--key takes the identifier of a key, 16 hexadecimal characters")
        }
        receipt = try await client.send(RemoveKey(identifier))
    } else {
        receipt = try await client.send(RemovePrincipal(try principalName(arguments)))
    }
    printNow(receipt.changed == 0 ? "there was nothing to remove" : "removed")
    // This may have been the caller itself, or its only key.
    let left = try? await principals(client) { $0.roles.contains { $0.role == .administer } }
    if left?.isEmpty ?? true {
        complain("no administrator is left, or this was the given key: keys create --offline makes another one")
    }
    return .success
}

private func principalName(_ arguments: Arguments) throws -> PrincipalName {
    guard arguments.operands.count == 2, let name = PrincipalName(arguments.operands[1]) else {
        throw UsageError(
            "name the principal: 1 to 128 letters, digits and . _ - @ : /, a letter or digit first, "
                + "and neither anonymous nor service")
    }
    return name
}

/// The roles that the arguments give, each with the same limits.
private func limitedRoles(_ arguments: Arguments) throws -> [LimitedRole] {
    let names = arguments.texts("role")
    guard !names.isEmpty else { throw UsageError("--role is needed") }
    let texts = arguments.texts("prefix")
    let prefixes = try texts.map { text in
        guard let prefix = CollaborationPrefix(text) else {
            throw UsageError("--prefix takes the beginning of identifiers without a * at its end, not \(text)")
        }
        return prefix
    }
    let app = arguments.text("app")
    let roles = try names.map { name in
        guard let role = PrincipalRole(rawValue: name) else {
            let all = PrincipalRole.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError("--role takes one of \(all), not \(name)")
        }
        return LimitedRole(
            role, prefixes: role == .administer ? [.every] : prefixes, app: role == .collaborate ? app : nil)
    }
    guard app == nil || roles.contains(where: { $0.role == .collaborate }) else {
        throw UsageError("--app is for the role collaborate")
    }
    // What is left out never widens a role.
    guard texts.isEmpty == roles.allSatisfy({ $0.role == .administer }) else {
        throw UsageError(
            texts.isEmpty
                ? "--prefix is needed: the beginning of the collaborations' identifiers, or '*' for all of them"
                : "--prefix is for roles other than administer")
    }
    return roles
}

private func newKey(_ key: APIKey, _ arguments: Arguments) throws -> NewKey {
    var expiry: Date?
    if arguments.text("expires") != nil {
        expiry = Date() + Double(try arguments.number("expires", in: 1...36_500)) * 24 * 3600
    }
    return NewKey(KeyHash(key), expiresAt: expiry)
}

/// Prints a fresh key, the only time that it is shown.
private func show(_ key: APIKey?, of name: PrincipalName, _ arguments: Arguments) throws {
    if arguments.isOn("json") {
        let fields = ["name": name.text, "key": key?.text, "identifier": key.map { "\($0.identifier)" }]
        return printNow(try json(fields.compactMapValues { $0 }))
    }
    guard let key else { return printNow("\(name) is created") }
    printNow(key.text)
    complain("this is the key of \(name), shown once: keep it in a file that only its client can read")
}

extension ListedPrincipal {
    /// Lines for people: one for each way in which it is known.
    fileprivate var lines: [String] {
        let roles = roles.map { role in
            let prefixes =
                role.role == .administer ? "" : " " + role.prefixes.map(\.description).joined(separator: " ")
            return role.role.rawValue + prefixes + (role.app.map { " app \($0)" } ?? "")
        }.joined(separator: ", ")
        let end = expiresAt.map { ", until \($0.formatted(.iso8601))" } ?? ""
        return ["\(name): \(roles)\(end)"] + (limits == PrincipalLimits() ? [] : ["  \(limits.text)"])
            + keys.map { key in
                let expiry = key.expiresAt.map { ", until \($0.formatted(.iso8601))" } ?? ""
                return "  key \(key.identifier), \(used(key.lastUsedAt))\(expiry)"
            }
            + certificates.map { "  certificate \($0), \(used(lastUsedAt))" }
            + (localUser.map { ["  local user \($0), \(used(lastUsedAt))"] } ?? [])
    }

    private func used(_ date: Date?) -> String { date.map { "last used \($0.formatted(.iso8601))" } ?? "never used" }
}
