import Core
package import Etcd
package import Hashing
package import TLS
package import Transport

/// Which cluster a service belongs to, and how it talks to the etcd that the cluster's log is in.
package struct ClusterSettings: Sendable {
    /// The members of etcd, one at least.
    package var endpoints: [Endpoint]
    /// The cluster's name in etcd.
    package var name: LogName
    /// How many milliseconds old the last question to the log may be that found nothing new, at most: an older storage
    /// may lack a removal, so nothing is answered from it.
    package var stalenessMilliseconds: UInt64 = 2500
    /// `nil`: etcd speaks plain HTTP.
    package var tls: TLSOptions?
    /// The user of etcd; `nil`: etcd asks for none.
    package var credentials: EtcdMembers.Credentials?
    /// The place of the member that is asked first, so that the gates of a cluster can be spread.
    package var firstMember = 0
    /// How services of the cluster get snapshots of each other; `nil`: this one neither gives nor gets one.
    package var peers: Peers?
    /// For how many milliseconds a start tries to get a snapshot of any other service.
    package var joinMilliseconds = Limits.snapshotJoinMilliseconds
    /// The names of the secret's generations, which the service tells the others; `nil`: it tells none.
    package var secret: SecretNames?
    /// Whether collaborations whose proofs are signed over device nonces may be created. Each gate remembers only the
    /// nonces that it has granted itself.
    package var allowsNonces = false

    /// How services of a cluster reach each other.
    package struct Peers: Sendable {
        /// Where the others reach this service.
        package var address: Endpoint
        /// `nil`: the services speak plain text with each other.
        package var tls: TLSOptions?
        /// What makes the tokens by which this service shows others that it has the cluster's secret; `nil`: it gets
        /// no snapshots.
        package var key: MessageAuthenticator?

        package init(address: Endpoint, tls: TLSOptions?) { (self.address, self.tls) = (address, tls) }

        /// The token for the service with a number (see `SnapshotRequest`) that is asked at an address.
        func token(for issuer: UInt64, at address: Endpoint) -> [UInt8]? {
            Peers.message(for: issuer, at: address).withUnsafeBytes { key?.tag(of: $0).bytes }
        }

        /// What a token is made of. It has the address that was asked: so whoever gives another service's number for
        /// its own gets a token that the other one does not take.
        package static func message(for issuer: UInt64, at address: Endpoint) -> [UInt8] {
            var message: [UInt8] = []
            message.appendInteger(issuer)
            return message + Array(address.description.utf8)
        }
    }

    package init(_ endpoints: [Endpoint], name: LogName) {
        (self.endpoints, self.name) = (endpoints, name)
    }
}
