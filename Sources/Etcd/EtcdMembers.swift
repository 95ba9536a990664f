package import Core
package import TLS
package import Transport

/// The members of one etcd, and how to talk to them. Threads share it; each has an `EtcdSession` of its own.
package final class EtcdMembers: Sendable {
    /// What is known besides the configuration.
    private struct State {
        /// The place of the leader when somebody looked last; `nil`: nobody knows.
        var leader: Int?
        var token: String?
    }

    /// A user of etcd.
    package struct Credentials: Sendable {
        let name: String
        let password: String

        package init(name: String, password: String) {
            self.name = name
            self.password = password
        }
    }

    let dialers: [Dialer]
    let credentials: Credentials?
    private let state = Lock(State())

    /// `endpoints`: of the members' clients, one at least. `tls`: `nil` when they speak plain HTTP. With `credentials`
    /// a certificate in `tls` must have no common name: etcd would take it for the user.
    ///
    /// Throws `tlsRefused` when a file of `tls` can't be used.
    package init(
        _ endpoints: [Endpoint], tls: TLSOptions? = nil, credentials: Credentials? = nil
    ) throws(ServiceError) {
        precondition(!endpoints.isEmpty, "there is no member")
        var dialers: [Dialer] = []
        for endpoint in endpoints { dialers.append(try Dialer(endpoint, tls: tls, for: .http)) }
        self.dialers = dialers
        self.credentials = credentials
    }

    /// The members' addresses.
    package var endpoints: [Endpoint] { dialers.map(\.endpoint) }

    /// The place of the leader among the addresses when somebody looked last; `nil`: nobody knows.
    package var leader: Int? { state.withLock { $0.leader } }

    func found(leader: Int?) { state.withLock { $0.leader = leader } }

    var token: String? { state.withLock { $0.token } }

    func took(token: String) { state.withLock { $0.token = token } }
}
