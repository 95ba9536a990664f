package import Etcd
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
    /// Whether collaborations whose proofs are signed over device nonces may be created. Each gate remembers only the
    /// nonces that it has granted itself.
    package var allowsNonces = false

    package init(_ endpoints: [Endpoint], name: LogName) {
        (self.endpoints, self.name) = (endpoints, name)
    }
}
