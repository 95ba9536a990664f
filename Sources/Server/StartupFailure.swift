package import Core
package import Platform
package import Transport

/// What keeps a service from starting. It is for the operator, on the command line; a client never gets one.
package enum StartupFailure: Error, Sendable {
    /// Another process listens on that port of that address.
    case portTaken(Endpoint)
    /// The address can be reached from other machines, nothing is encrypted, and nobody has said that this is meant.
    case plainText(Endpoint)
    /// The system does not let the service listen there.
    case cannotListen(Endpoint, SystemFailure)
    /// The storage in that directory can't be opened.
    case storage(directory: String, ServiceError)
    /// What universal links shall begin with is no URL.
    case linkBase(String)
    /// The file for the trace of requests can't be made.
    case trace(path: String, String)
    /// The system has no memory or no descriptors for the service's threads.
    case outOfResources(String)

    /// Whether somebody else has what the service needs, so that the same start may succeed later.
    package var isInUse: Bool {
        switch self {
        case .portTaken: true
        case .storage(_, let error): error.code == .storageInUse
        default: false
        }
    }
}

extension StartupFailure: CustomStringConvertible {
    /// One line: what is wrong and what to do.
    package var description: String {
        switch self {
        case .portTaken(let endpoint):
            "port \(endpoint.port) on \(endpoint.host) is taken: another process listens there"
        case .plainText(let endpoint):
            "refused to listen on \(endpoint): it is not a loopback address and nothing is encrypted; "
                + "say --allow-plain-text if that is meant"
        case .cannotListen(let endpoint, let failure): "can't listen on \(endpoint): \(failure)"
        case .storage(let directory, let error): "can't open the storage in \(directory): \(error)"
        case .linkBase(let text): "the link base \(text) is no URL"
        case .trace(let path, let reason): "can't write the trace to \(path): \(reason)"
        case .outOfResources(let reason): "the system can't give the service what it needs: \(reason)"
        }
    }
}
