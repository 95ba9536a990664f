import Core
package import Transport

/// Everything that an operator decides about a service. Units are in the names.
package struct Configuration: Sendable {
    /// Where the storage is; made when missing.
    package var dataDirectory: String
    /// Where to listen; port 0 takes a free one.
    package var endpoints: [Endpoint] = [Endpoint(host: "localhost", port: 7570)]
    /// Whether addresses other than loopback are allowed although nothing is encrypted.
    package var allowsPlainText = false
    /// Threads, each of which serves its connections and verifies its share of what all bring.
    package var workers: Int
    package var connectionsMax = 10_000
    /// Proofs and short reads that may wait for a worker; then the service answers busy.
    package var waitingProofsMax = 65_536
    /// Bytes of requests that may be in memory; then the service answers busy.
    package var requestBytesMax = 256 << 20
    package var challengeSeconds: UInt64 = 120
    /// Bytes of memory for spent challenges.
    package var replayBytesMax = 64 << 20
    /// Device nonces remembered at once.
    package var noncesMax = 1 << 20
    /// Whether vector kernels verify signatures, where the processor has what they need; else libcrypto does.
    package var usesSignatureKernels = true
    /// Bytes of memory for tables of known keys; 0 for none.
    package var knownKeyBytesMax = 256 << 20
    /// One outcome of a kernel in so many is verified again by libcrypto; 0 for none but the first batch.
    package var crossCheckInterval = 4096
    package var idleSeconds: UInt64 = 300
    /// How long a peer may take for one frame, or leave answers unread.
    package var stallSeconds: UInt64 = 30
    /// How long a shutdown waits for requests that were accepted.
    package var drainSeconds: UInt64 = 30
    package var storageBytesMax = 16 << 30
    package var storageReserveBytes = 16 << 20
    package var logRetentionBytes = 32 << 20
    /// What universal links begin with; without it nothing can be shared.
    package var linkBase: String?
    /// Where the page is served that tells Apple's systems which apps open the links, and those apps' identifiers.
    package var associationEndpoint: Endpoint?
    package var appIdentifiers: [String] = []
    /// How long a grant is valid.
    package var grantSeconds: UInt64 = 300
    /// Requests that may wait for news on all connections, and topics that they may wait for; then the service answers
    /// busy.
    package var followsMax = Limits.followsMax
    package var followedTopicsMax = Limits.followedTopicsMax
    /// How long notices are kept, and how many posts of a collaboration at least.
    package var noticeDays: UInt64 = 30
    package var noticesKept = 1000

    /// Requests that take longer are logged with the time of each stage; `nil`: none.
    package var slowMilliseconds: UInt64?
    /// Where the stages of requests are written, for a viewer of trace events; `nil`: nowhere.
    package var tracePath: String?
    /// One request in so many is written there.
    package var traceInterval: UInt64 = 1000

    package init(dataDirectory: String, workers: Int) {
        self.dataDirectory = dataDirectory
        self.workers = workers
    }
}
