import Core
import Platform
import Transport

extension Configuration {
    /// Takes what the supervisor wants. Inherited sockets replace the addresses of their options.
    ///
    /// Throws when a socket is of a kind that its option does not take, when the association's socket is there and
    /// `--association` is not given, and when other machines could reach a socket and the options don't allow that.
    package mutating func take(_ supervision: Supervision) throws(StartupFailure) {
        watchdogMicroseconds = supervision.watchdogMicroseconds
        for socket in supervision.sockets {
            do throws(SystemFailure) {
                let listener = try Socket.listener(inheriting: socket.descriptor, mode: listenMode)
                inherited[socket.purpose, default: []].append(listener)
            } catch {
                throw .inheritedSocket(socket.descriptor, socket.purpose, error.reason)
            }
        }
        if let listeners = inherited[.association], let first = listeners.first {
            guard associationEndpoint != nil else {
                throw .inheritedSocket(
                    first.descriptor, .association, "--association is not given, with --link-base and --app-ids")
            }
            guard listeners.allSatisfy({ $0.endpoint.path == nil }) else {
                throw .inheritedSocket(first.descriptor, .association, "--association takes no local socket")
            }
            associationEndpoint = nil
        }
        if inherited[.clients] != nil { endpoints = [] }
        if inherited[.operators] != nil { operatorEndpoints = [] }
    }

    /// The addresses of the inherited sockets for a purpose.
    func inheritedEndpoints(for purpose: Supervision.Purpose) -> [Endpoint] {
        (inherited[purpose] ?? []).map(\.endpoint)
    }

    /// Whether the operator's pages are served.
    var servesOperator: Bool { !operatorEndpoints.isEmpty || inherited[.operators] != nil }

    /// All addresses of the operator's pages.
    var allOperatorEndpoints: [Endpoint] { operatorEndpoints + inheritedEndpoints(for: .operators) }

    /// Whether the association's page is served.
    var servesAssociation: Bool { associationEndpoint != nil || inherited[.association] != nil }

    /// The milliseconds between two looks at how the service is; `nil`: nobody wants to know.
    var watchMilliseconds: Int? {
        guard servesOperator || watchdogMicroseconds != nil else { return nil }
        let longest = servesOperator ? Limits.watchMilliseconds : Limits.watchMillisecondsMax
        guard let microseconds = watchdogMicroseconds else { return longest }
        let part = Int(clamping: microseconds / (1000 * Limits.watchesPerWatchdog))
        return max(Limits.watchMillisecondsMin, min(part, longest))
    }
}
