package import Audit
package import Core
package import Platform
package import Secrets
package import Transport

/// The reason why a service can't start. It is for the operator, on the command line; a client never gets one.
package enum StartupFailure: Error, Sendable {
    /// Another process listens on that port of that address, or on that local socket.
    case portTaken(Endpoint)
    /// Two addresses of this service are the same port.
    case overlap(Endpoint, Endpoint)
    /// Other machines can reach the address, traffic is not encrypted, and the operator has not allowed plain text.
    case plainText(Endpoint)
    /// A member of etcd is on another machine, and what goes there is not encrypted.
    case plainCluster(Endpoint)
    /// Services on other machines are to get snapshots from that address, and what goes there is not encrypted.
    case plainSnapshots(Endpoint)
    /// A service of a cluster has no secret in common with the others.
    case clusterWithoutSecret
    /// Other machines can reach the address for the operator's pages.
    case openOperator(Endpoint)
    /// The operator's pages are to show collaborations, and there is no address for them.
    case consoleWithoutOperator
    /// The host has no address: the system can't look it up.
    case unresolved(Endpoint, SystemFailure)
    /// The system does not let the service listen there.
    case cannotListen(Endpoint, SystemFailure)
    /// The storage in that directory can't be opened.
    case storage(directory: String, ServiceError)
    /// The file with the root secret can't be used.
    case secret(SecretFailure)
    /// The file with the durable clock of that data directory can't be opened.
    case clock(directory: String, SystemFailure)
    /// The audit can't be kept.
    case audit(AuditFailure)
    /// The configured base of universal links is not allowed, for the given reason.
    case linkBase(String, reason: String)
    /// A certificate, a key or a file of authorities can't be used, for the given reason.
    case certificates(String)
    /// The file for the trace of requests can't be made.
    case trace(path: String, String)
    /// A sandbox is required, and the system does not have all of it; what holds and what is missing.
    case sandbox(SandboxReport)
    /// What the supervisor says in the environment can't be understood.
    case supervision(String)
    /// The socket of that descriptor was inherited for a purpose, and can't be used for it.
    case inheritedSocket(CInt, Supervision.Purpose, String)
    /// The system has no memory or no descriptors for the service's threads.
    case outOfResources(String)

    /// Whether another process has the port or the storage. Then the same start may succeed later.
    package var isInUse: Bool {
        switch self {
        case .portTaken: true
        case .storage(_, let error): error.code == .storageInUse
        case .audit(.inUse): true
        default: false
        }
    }
}

extension StartupFailure: CustomStringConvertible {
    /// One line: what is wrong and what to do.
    package var description: String {
        switch self {
        case .portTaken(let endpoint):
            (endpoint.path.map { "the socket \($0)" } ?? "port \(endpoint.port) on \(endpoint.host)")
                + " is taken: something listens there already"
        case .overlap(let first, let second):
            "\(first) and \(second) are both this service's own, and none can be opened twice: give one of them "
                + "another \(first.path == nil ? "port" : "path")"
        case .plainText(let endpoint):
            "refused to listen on \(endpoint): it is not a loopback address and nothing is encrypted; "
                + "give --tls-certificate and --tls-key, or say --allow-plain-text if that is meant"
        case .plainCluster(let endpoint):
            "refused to use etcd at \(endpoint): it is not a loopback address and nothing is encrypted; "
                + "give --cluster etcds://..., or say --allow-plain-text if that is meant"
        case .plainSnapshots(let endpoint):
            "refused to give snapshots at \(endpoint): it is not a loopback address and nothing is encrypted; give "
                + "--tls-certificate, --tls-key and --cluster-address-ca, or say --allow-plain-text if that is meant"
        case .clusterWithoutSecret:
            "--cluster is given without --secret-file: the services of a cluster need the same secret, so that each "
                + "knows the others' grants"
        case .openOperator(let endpoint):
            "refused to serve the operator's pages on \(endpoint): it is not a loopback address, and nothing is "
                + "encrypted; give --tls-certificate and --tls-key, or --operator 127.0.0.1:PORT or unix:/PATH"
        case .consoleWithoutOperator: "--console is for --operator, which is not given"
        case .unresolved(let endpoint, let failure):
            "can't listen on \(endpoint): the host can't be resolved (\(failure.reason))"
        case .cannotListen(let endpoint, let failure): "can't listen on \(endpoint): \(failure)"
        case .storage(let directory, let error): "can't open the storage in \(directory): \(error)"
        case .secret(let failure): "\(failure)"
        case .clock(let directory, let failure): "can't keep the time in \(directory): \(failure)"
        case .audit(let failure): "\(failure)"
        case .linkBase(let text, let reason): "the link base \(text) can't be used: \(reason)"
        case .certificates(let reason): reason
        case .trace(let path, let reason): "can't write the trace to \(path): \(reason)"
        case .sandbox(let report): "\(report); --sandbox auto starts without what is missing"
        case .supervision(let reason): reason
        case .inheritedSocket(let descriptor, let purpose, let reason):
            "the inherited socket \(descriptor) can't be used for \(purpose.option): \(reason)"
        case .outOfResources(let reason): "the system can't give the service what it needs: \(reason)"
        }
    }
}
