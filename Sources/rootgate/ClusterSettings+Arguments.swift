import Cluster
import Core
import Etcd
import Foundation
import RootgateClient
import TLS
import Transport

/// How to reach the etcd of a cluster.
let clusterAccessOptions = [
    Option(
        "cluster", "etcd://HOST:PORT,...",
        "the members of the etcd by which services share their changes; etcds:// with TLS"),
    Option(
        "cluster-name", "NAME", "with --cluster: the name of these services in etcd: small letters, digits, hyphens"),
    Option("cluster-ca", "FILE", "the authorities that etcd's certificates must come from, in PEM"),
    Option("cluster-certificate", "FILE", "the service's certificate for etcd, in PEM"),
    Option("cluster-key", "FILE", "the key of --cluster-certificate, in PEM, without a password"),
    Option("cluster-user", "NAME", "the user of etcd; --cluster-certificate must then have no common name"),
    Option("cluster-password-file", "FILE", "file with the password of --cluster-user"),
]

/// How a service shares its changes with others.
let clusterOptions =
    clusterAccessOptions + [
        Option(
            "staleness-milliseconds", "MS", standard: "2500",
            "with --cluster: without news of the others for this time, no proof and no grant is answered"),
        Option(
            switch: "per-gate-nonces",
            "with --cluster: collaborations with device nonces may be created, although each service remembers only "
                + "those that it has granted itself"),
        Option(
            "cluster-address", "HOST:PORT",
            "with --cluster: where the other services reach this one's --listen, to get a snapshot when they need one; "
                + "this one gets one by itself then, too"),
        Option(
            "cluster-address-ca", "FILE",
            "with --cluster-address: the authorities that the other services' certificates must come from, in PEM "
                + "(default: those that the system trusts)"),
    ]

extension ClusterSettings {
    private static let schemes = (plain: "etcd://", encrypted: "etcds://")

    /// The cluster that the arguments of a service name; `nil` when they name none.
    ///
    /// Throws a `UsageError` that names the option.
    init?(_ arguments: Arguments) throws {
        guard arguments.text("cluster") != nil else {
            let others = clusterOptions.map(\.name).filter { $0 != "cluster" }
            if let name = others.first(where: { arguments.isGiven($0) }) {
                throw UsageError("--\(name) is for --cluster, which is not given")
            }
            return nil
        }
        try self.init(reachedBy: arguments)
        stalenessMilliseconds = UInt64(
            try arguments.number("staleness-milliseconds", in: Limits.stalenessMillisecondsMin...3_600_000))
        allowsNonces = arguments.isOn("per-gate-nonces")
        try readAddress(arguments)
    }

    /// The cluster, with what it takes to reach its etcd.
    ///
    /// Throws a `UsageError` that names the option.
    init(reachedBy arguments: Arguments) throws {
        let text = try arguments.required("cluster")
        let isEncrypted = text.hasPrefix(Self.schemes.encrypted)
        guard isEncrypted || text.hasPrefix(Self.schemes.plain) else {
            throw UsageError("--cluster takes etcd://HOST:PORT,... or etcds://HOST:PORT,..., not \(text)")
        }
        let scheme = isEncrypted ? Self.schemes.encrypted : Self.schemes.plain
        let endpoints = try text.dropFirst(scheme.count).split(separator: ",", omittingEmptySubsequences: false).map {
            guard let endpoint = Endpoint(String($0)), endpoint.path == nil, endpoint.port != 0 else {
                throw UsageError("--cluster takes \(scheme)HOST:PORT,..., and \($0) is no HOST:PORT")
            }
            return endpoint
        }
        guard let name = LogName(try arguments.required("cluster-name")) else {
            throw UsageError("--cluster-name takes 1 to 64 small letters, digits and hyphens")
        }
        self.init(endpoints, name: name)
        // The members that are asked first should be others at other services.
        firstMember = .random(in: 0..<endpoints.count)
        try readEncryption(isEncrypted, arguments)
        try readUser(arguments)
    }

    private mutating func readAddress(_ arguments: Arguments) throws {
        let authorities = arguments.text("cluster-address-ca")
        guard let text = arguments.text("cluster-address") else {
            if authorities != nil { throw UsageError("--cluster-address-ca is for --cluster-address") }
            return
        }
        guard let address = Endpoint(text), address.path == nil, address.port != 0 else {
            throw UsageError("--cluster-address takes HOST:PORT, not \(text)")
        }
        // The services of a cluster are alike: the others have a certificate when this one has.
        let certificate = arguments.text("tls-certificate")
        guard authorities == nil || certificate != nil else {
            throw UsageError("--cluster-address-ca needs --tls-certificate")
        }
        let isShown = arguments.text("tls-client-ca") != nil
        let options = TLSOptions(
            authoritiesPath: authorities, certificatePath: isShown ? certificate : nil,
            keyPath: isShown ? arguments.text("tls-key") : nil)
        peers = Peers(address: address, tls: certificate == nil ? nil : options)
    }

    private mutating func readEncryption(_ isEncrypted: Bool, _ arguments: Arguments) throws {
        let options = TLSOptions(
            authoritiesPath: arguments.text("cluster-ca"), certificatePath: arguments.text("cluster-certificate"),
            keyPath: arguments.text("cluster-key"))
        guard (options.certificatePath == nil) == (options.keyPath == nil) else {
            throw UsageError("--cluster-certificate and --cluster-key belong together")
        }
        guard isEncrypted || options == TLSOptions() else {
            throw UsageError("--cluster-ca, --cluster-certificate and --cluster-key need --cluster etcds://...")
        }
        guard isEncrypted else { return }
        guard options.authoritiesPath != nil else {
            throw UsageError("--cluster etcds://... needs --cluster-ca: the authority of etcd's certificates")
        }
        tls = options
    }

    private mutating func readUser(_ arguments: Arguments) throws {
        let (user, path) = (arguments.text("cluster-user"), arguments.text("cluster-password-file"))
        guard (user == nil) == (path == nil) else {
            throw UsageError("--cluster-user and --cluster-password-file belong together")
        }
        guard let user, let path else { return }
        let password = String(decoding: try contents(of: path), as: UTF8.self).trimmingCharacters(in: .newlines)
        guard !password.isEmpty else { throw UsageError("--cluster-password-file \(path) has no password") }
        credentials = EtcdMembers.Credentials(name: user, password: password)
    }
}
