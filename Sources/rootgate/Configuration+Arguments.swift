import Cluster
import Core
import Foundation
import Kernels
import Platform
import RootgateClient
import Server
import TLS
import Transport

private let encryptionOptions = [
    Option("tls-certificate", "FILE", "the service's certificate with its chain, in PEM; all addresses speak TLS"),
    Option("tls-key", "FILE", "the key of --tls-certificate, in PEM, without a password"),
    Option("tls-client-ca", "FILE", "the authorities that clients' certificates must come from, in PEM"),
    Option(switch: "tls-allow-1.2", "allow TLS 1.2 beside 1.3"),
]

private let secretAndAuditOptions = [
    Option("secret-file", "FILE", "file with the secret; without it the one in --data, which is made when missing"),
    Option(
        "secret-days", "DAYS", standard: "90",
        "days after which the secret in --data is rotated; 0: never"),
    Option("audit", "FILE", "file for a line about each change, refusal by role and act of administration"),
    Option("audit-max", "MIB", standard: "64", "size after which another --audit file is begun, in MiB"),
    Option(switch: "audit-optional", "let changes go on when --audit can't be written"),
]

private let sandboxOptions = [
    Option(
        "sandbox", "auto|off|required", standard: "auto",
        "give up what the service does not need: auto takes what the system has, required refuses to start without")
]

/// What clients may use of the service.
private let capacityOptions = [
    Option("connections-max", "N", standard: "10000", "connections at once; one address gets at most half of them"),
    Option(
        "waiting-proofs-max", "N", standard: "131072",
        "proofs that may wait for a worker, where 32 challenges count as one; one address gets at most half"),
    Option(
        "request-memory", "MIB", standard: "256",
        "memory of frames, requests and unread answers, in MiB; addresses share it, and get busy for more"),
]

/// Who may look at how the service is.
private let operatorOptions = [
    Option(
        "operator", "HOST:PORT,...",
        "addresses of the console, probes and metrics over HTTP: /, /readyz, /metrics; beyond this machine over HTTPS, "
            + "for principals"),
    Option(
        switch: "console",
        "with --operator: also pages that show collaborations, people and principals: here to everybody who may "
            + "connect, elsewhere to principals with more roles"),
    Option(
        "sample-proofs", "N", standard: "0",
        "with --console: refused proofs that are kept in memory, at most \(Limits.sampledProofsMax), to be explained"),
]

/// The log.
private let logOptions = [
    Option(
        "log-format", "auto|text|json|journal", standard: "auto",
        "how lines of the log look; auto is journal where standard error is the journal, else text"),
    Option(
        "log-level", "LEVEL", standard: "info", "critical, error, warning, info or debug: what matters less is left out"
    ),
    Option(switch: "log-addresses", "name the addresses of clients in the log, not only their networks"),
]

/// The data on disk.
private let storageOptions = [
    Option(
        "storage-max", "MIB", standard: "16384",
        "size of the data file, in MiB; additions that need more are refused"),
    Option(
        "storage-reserve", "MIB", standard: "16",
        "room kept for removals beyond --storage-max, and on the disk, in MiB"),
    Option("log-retention", "MIB", standard: "32", "size of the change log, in MiB"),
]

/// The options of `serve`, which `check-config` takes too.
let serviceOptions =
    [
        Option("config", "FILE", "file with options, one name = value a line; SIGHUP reads it again"),
        Option("data", "DIR", "directory of the storage; made when missing (required)"),
        Option(
            "listen", "HOST:PORT,...", standard: "localhost:7570",
            "addresses to listen on; port 0 takes a free port; unix:/PATH is a local socket"),
        Option("listen-mode", "MODE", standard: "0600", "permissions of the files of local sockets, octal"),
        Option(switch: "allow-plain-text", "allow addresses other than loopback although nothing is encrypted"),
        Option("workers", "N", "threads that read and verify (default: one a core)"),
        Option("challenge-seconds", "SECONDS", standard: "120", "how long a challenge is valid"),
        Option("replay-memory", "MIB", standard: "64", "memory for spent challenges, in MiB"),
        Option("nonces-max", "N", standard: "1048576", "device nonces remembered at once"),
        Option(
            "signatures", "auto|openssl", standard: "auto",
            "what verifies signatures: auto takes kernels where they run, else OpenSSL"),
        Option(
            "kernel", "NAME,...",
            "kernels to use, one for signatures and one for hashing at most (default: the quickest)"),
        Option("known-keys", "MIB", standard: "256", "memory for tables of known keys, in MiB; 0: no tables"),
        Option(
            "cross-check", "N", standard: "4096",
            "OpenSSL verifies one signature in N again; 0: the first batch only"),
        Option("idle-seconds", "SECONDS", standard: "300", "an idle connection is closed after this time"),
        Option(
            "stall-seconds", "SECONDS", standard: "30",
            "time for receiving one frame, and for a client to read its answers"),
        Option("drain-seconds", "SECONDS", standard: "30", "time for answering accepted requests at shutdown"),
        Option("link-base", "URL", "the beginning of universal links; without it nothing can be shared"),
        Option(
            "association", "HOST:PORT",
            "address that serves /.well-known/apple-app-site-association for --link-base over HTTP"),
        Option("app-ids", "ID,...", "with --association: the apps that open the links, TEAM.bundle.identifier"),
        Option("grant-seconds", "SECONDS", standard: "300", "how long a grant is valid"),
        Option("notice-days", "DAYS", standard: "30", "how long notices are kept"),
        Option(
            "notices-kept", "N", standard: "1000", "posts that a collaboration keeps at least, unless too old"),
        Option("slow-milliseconds", "MS", "log requests that take longer, with the time of each stage"),
        Option("trace", "FILE", "file for the stages of requests, in the trace event format"),
        Option("trace-interval", "N", standard: "1000", "with --trace: one request in N is written"),
    ] + storageOptions + clusterOptions + capacityOptions + operatorOptions + logOptions + encryptionOptions
    + secretAndAuditOptions
    + sandboxOptions

extension Configuration {
    /// What the arguments of `serve` describe.
    ///
    /// Throws a `UsageError` that names the option.
    init(_ arguments: Arguments) throws { self = try serviceConfiguration(arguments) }
}

private func serviceConfiguration(_ arguments: Arguments) throws -> Configuration {
    var configuration = Configuration(
        dataDirectory: try arguments.required("data"), workers: ProcessInfo.processInfo.activeProcessorCount)
    configuration.optionsPath = arguments.file?.path
    configuration.vetsKernelsLater = true
    configuration.tls = try encryption(arguments)
    try readListenOptions(arguments, into: &configuration)
    if arguments.text("workers") != nil { configuration.workers = try arguments.number("workers", in: 1...1024) }
    configuration.connectionsMax = try arguments.number("connections-max", in: 1...1_000_000)
    configuration.waitingProofsMax = try arguments.number("waiting-proofs-max", in: 1...16_777_216)
    configuration.requestBytesMax = try arguments.number("request-memory", in: 8...65_536) << 20
    configuration.challengeSeconds = UInt64(
        try arguments.number("challenge-seconds", in: 1...Limits.validitySecondsMax))
    configuration.replayBytesMax = try arguments.number("replay-memory", in: 1...65_536) << 20
    configuration.noncesMax = try arguments.number("nonces-max", in: 1...1_000_000_000)
    switch try arguments.required("signatures") {
    case "auto": configuration.usesSignatureKernels = true
    case "openssl": configuration.usesSignatureKernels = false
    case let other: throw UsageError("--signatures takes auto or openssl, not \(other)")
    }
    let choice = try KernelChoice(arguments)
    if let kernel = choice[.signatures], !configuration.usesSignatureKernels {
        throw UsageError("--kernel \(kernel.name) and --signatures openssl exclude each other")
    }
    configuration.knownKeyBytesMax = try arguments.number("known-keys", in: 0...1_048_576) << 20
    configuration.crossCheckInterval = try arguments.number("cross-check", in: 0...1_000_000_000)
    configuration.times.idle = UInt64(try arguments.number("idle-seconds", in: 1...86_400))
    configuration.times.stall = UInt64(try arguments.number("stall-seconds", in: 1...3600))
    configuration.times.drain = UInt64(try arguments.number("drain-seconds", in: 0...3600))
    configuration.storageBytesMax = try arguments.number("storage-max", in: 1...16_777_216) << 20
    configuration.storageReserveBytes = try arguments.number("storage-reserve", in: 1...65_536) << 20
    configuration.logRetentionBytes = try arguments.number("log-retention", in: 1...1_048_576) << 20
    try readCollaborationOptions(arguments, into: &configuration)
    try readSecretOptions(arguments, into: &configuration)
    configuration.cluster = try ClusterSettings(arguments)
    if arguments.text("slow-milliseconds") != nil {
        configuration.slowMilliseconds = UInt64(try arguments.number("slow-milliseconds", in: 0...3_600_000))
    }
    configuration.tracePath = arguments.text("trace")
    configuration.traceInterval = UInt64(try arguments.number("trace-interval", in: 1...1_000_000_000))
    return configuration
}

/// Where to listen. Comes after the files of TLS.
private func readListenOptions(_ arguments: Arguments, into configuration: inout Configuration) throws {
    configuration.endpoints = try arguments.required("listen").split(separator: ",").map { text in
        let isEncrypted = text.hasPrefix(tlsScheme)
        guard let endpoint = Endpoint(String(isEncrypted ? text.dropFirst(tlsScheme.count) : text)) else {
            throw UsageError(
                "--listen takes HOST:PORT, [V6]:PORT, unix:/PATH or, with a certificate, tls://HOST:PORT, with a "
                    + "port up to 65535, not \(text)")
        }
        guard !isEncrypted || endpoint.path == nil else {
            throw UsageError("--listen \(text): a local socket has no TLS")
        }
        guard !isEncrypted || configuration.tls != nil else {
            throw UsageError("--listen \(text) needs --tls-certificate and --tls-key")
        }
        return endpoint
    }
    let mode = try arguments.required("listen-mode")
    guard let bits = UInt32(mode, radix: 8), bits <= 0o777, !mode.hasPrefix("+") else {
        throw UsageError("--listen-mode takes octal permissions from 0 to 777, not \(mode)")
    }
    configuration.listenMode = bits
    configuration.allowsPlainText = arguments.isOn("allow-plain-text")
    configuration.operatorEndpoints = try (arguments.text("operator") ?? "").split(separator: ",").map { text in
        guard let endpoint = Endpoint(String(text)) else {
            throw UsageError(
                "--operator takes HOST:PORT, [V6]:PORT or unix:/PATH, with a port up to 65535, not \(text)")
        }
        return endpoint
    }
    configuration.showsRecords = arguments.isOn("console")
    configuration.sampledProofs = try arguments.number("sample-proofs", in: 0...Limits.sampledProofsMax)
    guard configuration.showsRecords || configuration.sampledProofs == 0 else {
        throw UsageError("--sample-proofs is for --console, which is not given: it shows who was refused")
    }
}

/// The files of TLS; `nil` when the service speaks plain text.
private func encryption(_ arguments: Arguments) throws -> ServerTLSSettings? {
    let (certificate, key) = (arguments.text("tls-certificate"), arguments.text("tls-key"))
    guard let certificate, let key else {
        guard certificate == nil, key == nil else {
            throw UsageError("--tls-certificate and --tls-key belong together")
        }
        guard arguments.text("tls-client-ca") == nil, !arguments.isOn("tls-allow-1.2") else {
            throw UsageError("--tls-client-ca and --tls-allow-1.2 need --tls-certificate and --tls-key")
        }
        return nil
    }
    return ServerTLSSettings(
        certificatePath: certificate, keyPath: key, clientAuthoritiesPath: arguments.text("tls-client-ca"),
        allowsTLS12: arguments.isOn("tls-allow-1.2"))
}

/// The options of the collaboration layer.
private func readCollaborationOptions(_ arguments: Arguments, into configuration: inout Configuration) throws {
    if let base = arguments.text("link-base") {
        if let fault = CollaborationSettings.fault(ofLinkBase: base) {
            throw UsageError(
                "--link-base takes an https URL without user information, query and fragment, not \(base): \(fault)")
        }
        configuration.linkBase = base
    }
    if let text = arguments.text("association") {
        guard let endpoint = Endpoint(text), endpoint.path == nil else {
            throw UsageError("--association takes HOST:PORT, not \(text)")
        }
        guard configuration.linkBase != nil, let apps = arguments.text("app-ids") else {
            throw UsageError("--association needs --link-base and --app-ids")
        }
        configuration.associationEndpoint = endpoint
        configuration.appIdentifiers = apps.split(separator: ",").map(String.init)
    }
    guard configuration.associationEndpoint != nil || !arguments.isGiven("app-ids") else {
        throw UsageError("--app-ids is for --association, which is not given")
    }
    configuration.grantSeconds = UInt64(try arguments.number("grant-seconds", in: 1...Limits.validitySecondsMax))
    configuration.noticeDays = UInt64(try arguments.number("notice-days", in: 1...3650))
    configuration.noticesKept = try arguments.number("notices-kept", in: 1...100_000)
}

/// The options of the secret and the audit.
private func readSecretOptions(_ arguments: Arguments, into configuration: inout Configuration) throws {
    configuration.secretPath = arguments.text("secret-file")
    configuration.secretDays = UInt64(try arguments.number("secret-days", in: 0...3650))
    guard configuration.secretPath == nil || !arguments.isGiven("secret-days") else {
        throw UsageError("--secret-days is for the secret in --data: rotate a --secret-file with rootgate keys")
    }
    configuration.auditPath = arguments.text("audit")
    if configuration.auditPath == nil {
        let isOptional = arguments.isOn("audit-optional")
        if let name = arguments.isGiven("audit-max") ? "audit-max" : isOptional ? "audit-optional" : nil {
            throw UsageError("--\(name) is for --audit, which is not given")
        }
    }
    configuration.auditBytesMax = try arguments.number("audit-max", in: 1...1_048_576) << 20
    configuration.isAuditOptional = arguments.isOn("audit-optional")
}
