import Core
import Foundation
import LoadHarness
import RootgateClient
import TLS

/// Where a service is, and how the connection to it is encrypted.
struct ServiceAddress {
    let endpoint: Endpoint
    /// `nil`: the connection is not encrypted.
    let tls: TLSOptions?
    /// The API key by which the service knows this client, if there is one.
    let key: APIKey?
}

/// What an address begins with that speaks TLS.
let tlsScheme = "tls://"

/// The service that the arguments name. The connection is encrypted when the address or another option says so.
func serverOption(_ arguments: Arguments) throws -> ServiceAddress {
    try serviceAddress(try arguments.required("server"), arguments)
}

/// The services that the arguments name, where several may be given. The options of TLS and the key are for all.
func serverOptions(_ arguments: Arguments) throws -> [ServiceAddress] {
    let servers = arguments.texts("server")
    guard Set(servers).count == servers.count else { throw UsageError("a --server is given twice") }
    return try servers.map { try serviceAddress($0, arguments) }
}

private func serviceAddress(_ server: String, _ arguments: Arguments) throws -> ServiceAddress {
    let isEncrypted = server.hasPrefix(tlsScheme)
    guard let endpoint = Endpoint(isEncrypted ? String(server.dropFirst(tlsScheme.count)) : server) else {
        throw UsageError("--server takes HOST:PORT, tls://HOST:PORT or unix:/PATH, not \(server)")
    }
    let tls = TLSOptions(
        authoritiesPath: arguments.text("tls-ca"), certificatePath: arguments.text("tls-certificate"),
        keyPath: arguments.text("tls-key"), serverName: arguments.text("tls-server-name"))
    guard (tls.certificatePath == nil) == (tls.keyPath == nil) else {
        throw UsageError("--tls-certificate and --tls-key belong together")
    }
    guard endpoint.path == nil || !isEncrypted && tls == TLSOptions() else {
        throw UsageError("\(endpoint) is a local socket, which has no TLS: leave out tls:// and the options of TLS")
    }
    return ServiceAddress(
        endpoint: endpoint, tls: isEncrypted || tls != TLSOptions() ? tls : nil, key: try keyOption(arguments))
}

/// The environment variable with an API key. No option has the key itself: lists of processes show options.
private let keyVariable = "ROOTGATE_KEY"

/// The API key in the file that `--key-file` names, or else in the environment.
///
/// Throws when the file can't be read, or when it or the variable is no key. The error does not repeat the key.
private func keyOption(_ arguments: Arguments) throws -> APIKey? {
    let (source, text): (String, String)
    if let path = arguments.text("key-file") {
        (source, text) = (path, String(decoding: try contents(of: path), as: UTF8.self))
        warnIfOthersCanUse(keyFile: path)
    } else if let value = ProcessInfo.processInfo.environment[keyVariable], !value.isEmpty {
        (source, text) = (keyVariable, value)
    } else {
        return nil
    }
    guard let key = APIKey(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
        throw UsageError("\(source) does not contain a whole key: rgk_ and \(Limits.keyTextBytes - 4) more characters")
    }
    return key
}

/// Says so when others than its owner may read or write the file. Pipes and devices are not judged.
private func warnIfOthersCanUse(keyFile path: String) {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 != 0 else { return }
    let digits = String(status.st_mode & 0o7777, radix: 8)
    let mode = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    complain("others than its owner can use the key in \(path), whose mode is \(mode): say chmod 600 \(path)")
}

/// A client for the service that the arguments name.
func connect(_ arguments: Arguments) throws -> RootgateClient {
    try connect(arguments, to: try serverOption(arguments))
}

/// A client for a service, with the time-out that the arguments name.
func connect(_ arguments: Arguments, to service: ServiceAddress) throws -> RootgateClient {
    let timeout = try arguments.decimal("timeout", in: 0.01...86_400)
    return try RootgateClient(
        service.endpoint,
        configuration: RootgateClient.Configuration(
            requestTimeout: .milliseconds(Int(timeout * 1000)), tls: service.tls, key: service.key))
}

/// The collaboration that the arguments name.
func collaborationOption(_ arguments: Arguments) throws -> CollaborationIdentifier {
    try collaboration(try arguments.required("collaboration"))
}

func collaboration(_ text: String) throws -> CollaborationIdentifier {
    guard let identifier = CollaborationIdentifier(text) else {
        throw UsageError("a collaboration's identifier is 1 to 128 bytes of UTF-8 without control characters")
    }
    return identifier
}

/// Root hashes from a file (`-`: standard input), one a line, as `RootLines` reads them.
///
/// Throws when the file can't be read or a line is something else.
func readRoots(_ path: String) throws -> [Digest] {
    let lines = try RootLines(path)
    var roots: [Digest] = []
    while let portion = try lines.next(Limits.rootsPerRequestMax) { roots += portion.roots }
    return roots
}

extension RootgateClient {
    /// Adds any number of root hashes, as many in a request as it takes. `progress` is shown how many are added.
    func addAll(
        _ roots: [Digest], to collaboration: CollaborationIdentifier, _ progress: ProgressMeter
    ) async throws {
        try await roots.inChunks(of: Limits.rootsPerRequestMax, progress) { roots in
            try await addRoots(roots, to: collaboration)
        }
    }

    /// Any number of fresh challenges.
    func takeChallenges(_ count: Int) async throws -> [[UInt8]] {
        var taken: [[UInt8]] = []
        while taken.count < count {
            taken += try await challenges(min(Limits.challengesPerRequestMax, count - taken.count)).challenges
        }
        return taken
    }
}

extension Array {
    /// Calls `body` with the elements in order, at most `count` at a time. `progress` is shown how many are done.
    func inChunks(of count: Int, _ progress: ProgressMeter, _ body: ([Element]) async throws -> Void) async throws {
        for start in stride(from: 0, to: self.count, by: count) {
            let done = Swift.min(self.count, start + count)
            try await body(Array(self[start..<done]))
            progress.show("\(done) of \(self.count)", done: Double(done) / Double(self.count))
        }
    }
}
