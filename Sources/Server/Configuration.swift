package import Cluster
import Core
package import TLS
package import Transport

/// Everything that an operator decides about a service. Units are in the names.
package struct Configuration: Sendable {
    /// Where the storage is; made when missing.
    package var dataDirectory: String
    /// The file with the root secret, which the service only reads; `nil`: the one in the data directory, which it
    /// makes and rotates.
    package var secretPath: String?
    /// Days after which a generation of the data directory's secret is replaced; 0: never.
    package var secretDays: UInt64 = 90
    /// The cluster whose changes the service shares; `nil`: it is alone. A service of a cluster needs `secretPath`.
    package var cluster: ClusterSettings?
    /// The file for the audit; `nil`: none.
    package var auditPath: String?
    /// Bytes after which the audit's file is moved aside.
    package var auditBytesMax = 64 << 20
    /// Whether changes go on when the audit can't be written.
    package var isAuditOptional = false
    /// Where to listen; port 0 takes a free one.
    package var endpoints: [Endpoint] = [Endpoint(host: "localhost", port: 7570)]
    /// The permissions of the files of local sockets.
    package var listenMode = Socket.standardMode
    /// Whether addresses other than loopback are allowed although nothing is encrypted.
    package var allowsPlainText = false
    /// Addresses that speak plain text although `endpoints` speak TLS; for embedding and benchmarks.
    package var plainEndpoints: [Endpoint] = []
    /// The certificates with which `endpoints` speak TLS; `nil`: they speak plain text.
    package var tls: ServerTLSSettings?
    /// Threads. Each serves its own connections and verifies proofs of all connections.
    package var workers: Int
    package var connectionsMax = 10_000
    /// Proofs and short reads that may wait for a worker; for more the service answers busy.
    package var waitingProofsMax = 131_072
    /// Bytes of requests that may be in memory; for more the service answers busy.
    package var requestBytesMax = 256 << 20
    package var challengeSeconds: UInt64 = 120
    /// Bytes of memory for spent challenges.
    package var replayBytesMax = 64 << 20
    /// Device nonces remembered at once.
    package var noncesMax = 1 << 20
    /// Whether vector kernels verify signatures where the processor supports them. Otherwise libcrypto does.
    package var usesSignatureKernels = true
    /// Whether the service listens before they were tested and timed. OpenSSL verifies until then.
    package var vetsKernelsLater = false
    /// Bytes of memory for tables of known keys; 0 for none.
    package var knownKeyBytesMax = 256 << 20
    /// N, if libcrypto verifies one in N outcomes of a kernel again; 0: only the first batch.
    package var crossCheckInterval = 4096
    /// What a running service can change.
    package var times = ServiceTimes()
    package var storageBytesMax = 16 << 30
    package var storageReserveBytes = 16 << 20
    package var logRetentionBytes = 32 << 20
    /// The beginning of universal links; without it no collaboration can be started.
    package var linkBase: String?
    /// The address that serves the apple-app-site-association page, and the identifiers of the apps that it names.
    package var associationEndpoint: Endpoint?
    package var appIdentifiers: [String] = []
    /// Addresses of the operator's pages. Other machines must not reach them.
    package var operatorEndpoints: [Endpoint] = []
    /// Whether the operator's pages show collaborations, people and principals, too.
    package var showsRecords = false
    /// Refused proofs that are kept for the operator's pages; 0: none.
    package var sampledProofs = 0
    /// How long a grant is valid.
    package var grantSeconds: UInt64 = 300
    /// Suspended queries of all connections, and the topics of all of them together; for more the service answers busy.
    package var followsMax = Limits.followsMax
    package var followedTopicsMax = Limits.followedTopicsMax
    /// Days for which a notice is listed, and the number of a collaboration's newest posts that are always kept.
    package var noticeDays: UInt64 = 30
    package var noticesKept = 1000

    /// Requests that take longer are logged with the time of each stage; `nil`: none.
    package var slowMilliseconds: UInt64?
    /// The file for the stages of requests, in the trace event format; `nil`: none.
    package var tracePath: String?
    /// N, if the stages of one in N requests are written.
    package var traceInterval: UInt64 = 1000

    /// Sockets that listened before this process started. Where there are some, there are no addresses for the same
    /// purpose.
    package internal(set) var inherited: [Supervision.Purpose: [Listener]] = [:]
    /// The service should give a sign of life in each time of this length; `nil`: it need not.
    package var watchdogMicroseconds: UInt64?

    /// The file with options, which a running service reads again; `nil`: none.
    package var optionsPath: String?

    package init(dataDirectory: String, workers: Int) {
        self.dataDirectory = dataDirectory
        self.workers = workers
    }
}
