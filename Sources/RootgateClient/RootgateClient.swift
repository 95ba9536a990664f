public import Core
public import Principals
public import TLS
public import Transport
package import Wire

/// A connection to a Rootgate service, for any number of tasks at once.
///
/// Requests are pipelined over one TCP connection and answered in any order. When the connection is lost the client
/// connects again, with growing pauses, and sends the unanswered requests again until their deadlines. It does not
/// repeat a verify or an open then, because the first attempt may have spent the challenge. Requests that a service
/// has not begun, because it shuts down or because they were never sent, are sent again whatever they are: so a service
/// can be restarted without an error at its clients. Single proofs that share a request are sent again in smaller
/// requests when the service refuses that request without looking at its proofs.
///
/// A service may have several addresses, over several networks or through several balancers; so may the services of a
/// cluster, which share their changes. The client uses one of them until a connection fails, or until that service
/// hears nothing of the others, and then tries the others in turn. A proof whose challenge another service has issued
/// is sent there, if an address leads to that service.
///
/// Every method throws ``ServiceError`` only.
public final class RootgateClient: Sendable {
    /// How long a client waits for answers and for connections.
    public struct Configuration: Sendable {
        /// How long a request may take, connecting included.
        public var requestTimeout: Duration
        /// How long one attempt to connect may take.
        public var connectTimeout: Duration
        /// The pause before the second attempt to connect; it doubles up to `reconnectPauseMax`.
        public var reconnectPause: Duration
        /// The longest pause between two attempts to connect.
        public var reconnectPauseMax: Duration
        /// How connections are encrypted; `nil`: they are not.
        public var tls: TLSOptions?
        /// The API key by which the service knows this client; `nil`: it has none. Whoever sees an unencrypted
        /// connection learns the key.
        public var key: APIKey?

        /// Ten seconds for a request, three for an attempt to connect, pauses from 25 milliseconds to two seconds, no
        /// encryption, no key.
        public init(
            requestTimeout: Duration = .seconds(10), connectTimeout: Duration = .seconds(3),
            reconnectPause: Duration = .milliseconds(25), reconnectPauseMax: Duration = .seconds(2),
            tls: TLSOptions? = nil, key: APIKey? = nil
        ) {
            self.requestTimeout = requestTimeout
            self.connectTimeout = connectTimeout
            self.reconnectPause = reconnectPause
            self.reconnectPauseMax = reconnectPauseMax
            self.tls = tls
            self.key = key
        }
    }

    private let connector: Connector
    /// The ways to each address, for proofs that belong to another service; `nil`: there is one address.
    private let issuers: Issuers?
    private let configuration: Configuration

    /// Makes a client, which connects at its first request.
    ///
    /// Throws `internalFault` when the system has no descriptors left, and `tlsRefused` when a file of the TLS options
    /// can't be used.
    public convenience init(
        _ endpoint: Endpoint, configuration: Configuration = Configuration()
    ) throws(ServiceError) {
        try self.init([endpoint], configuration: configuration)
    }

    /// Makes a client of a service with several addresses, of which there must be one at least. All of them have to
    /// lead to the same service, or to services of one cluster.
    ///
    /// Throws as the initializer with one address does.
    public init(_ endpoints: [Endpoint], configuration: Configuration = Configuration()) throws(ServiceError) {
        precondition(!endpoints.isEmpty, "a service has an address")
        self.configuration = configuration
        var dialers: [Dialer] = []
        for endpoint in endpoints { dialers.append(try Dialer(endpoint, tls: configuration.tls)) }
        connector = try Connector(dialers, key: configuration.key, connectTimeout: configuration.connectTimeout)
        issuers = dialers.count > 1 ? Issuers(dialers, configuration) : nil
    }

    deinit {
        close()
    }

    /// Closes the connection; requests in flight fail with `connectionLost`.
    public func close() {
        connector.close()
        issuers?.close()
    }

    // MARK: The service

    /// Asks what the service is and which limits it has.
    public func hello() async throws(ServiceError) -> ServiceDescription {
        let answer = try await ask(.hello(minimum: protocolVersion, maximum: protocolVersion)) {
            body throws(ServiceError) in
            try HelloAnswer(body)
        }
        return ServiceDescription(version: answer.version, software: answer.software, limits: answer.limits)
    }

    /// Sends a request that does nothing and waits for its answer.
    public func ping() async throws(ServiceError) {
        try await ask(.ping([])) { _ in }
    }

    /// The service's figures, by their stable names.
    public func statistics() async throws(ServiceError) -> [(name: String, value: UInt64)] {
        try await ask(.statistics) { body throws(ServiceError) in try Answer.statistics(body) }
    }

    // MARK: Proofs

    /// Fresh challenges for devices to sign, up to 4,096 at once.
    public func challenges(_ count: Int) async throws(ServiceError) -> IssuedChallenges {
        try checkLimit(count, Limits.challengesPerRequestMax, "challenges")
        return try await ask(.issueChallenges(count: max(0, count))) { body throws(ServiceError) in
            let answer = try Answer.challenges(body)
            return IssuedChallenges(challenges: answer.challenges, validMilliseconds: answer.validMilliseconds)
        }
    }

    /// One fresh challenge for a device to sign.
    ///
    /// Throws `malformedAnswer` when the service gives none.
    public func challenge() async throws(ServiceError) -> [UInt8] {
        guard let challenge = try await challenges(1).challenges.first else {
            throw ServiceError(.malformedAnswer, "the service gave no challenge")
        }
        return challenge
    }

    /// Whether the device may open the collaboration.
    public func verify(
        _ proof: SignedIdentityProof, in collaboration: CollaborationIdentifier, atLeast: UInt64 = 0
    ) async throws(ServiceError) -> Verdict {
        try await verdict(on: proof, in: collaboration, VerifyCall.Kind(isSigned: true, atLeast: atLeast))
    }

    /// The verdict on one proof. Proofs of several tasks share requests.
    private nonisolated(nonsending) func verdict(
        on proof: SignedIdentityProof, in collaboration: CollaborationIdentifier, _ kind: VerifyCall.Kind
    ) async throws(ServiceError) -> Verdict {
        let encoded = try ProofBatch.encoded(proof, isSigned: kind.isSigned)
        let verdict = try await onLink(isRepeatable: !kind.isSigned) { link, deadline in
            await link.verify(VerifyCall(encoded, in: collaboration, kind, deadline: deadline))
        }
        guard verdict == .challengeElsewhere, issuers != nil else { return verdict }
        let request = AccessRequest(collaboration: collaboration, proof: proof)
        let elsewhere = await atIssuers([request], [0]) { requests, connector throws(ServiceError) in
            try await self.decisions(
                on: requests, isSigned: true, wantsRoots: false, atLeast: kind.atLeast, at: connector)
        }
        return elsewhere[0]?.verdict ?? verdict
    }

    /// Sends proofs whose challenges others have issued, those at `places`, to these. Returns what they say, by place.
    /// The verdict of a proof that nobody could be asked about is missing.
    ///
    /// `ask` sends requests to one service.
    func atIssuers<Decision>(
        _ requests: [AccessRequest], _ places: [Int],
        _ ask: ([AccessRequest], Connector) async throws(ServiceError) -> [Decision]
    ) async -> [Int: Decision] {
        guard let issuers, !places.isEmpty else { return [:] }
        let deadline = ContinuousClock.now + configuration.requestTimeout
        var decisions: [Int: Decision] = [:]
        let groups = Dictionary(grouping: places) { Issuers.number(in: requests[$0].proof.data) }
        for (number, places) in groups {
            guard let number, let connector = await issuers.connector(of: number, until: deadline),
                let answers = try? await ask(places.map { requests[$0] }, connector), answers.count == places.count
            else { continue }
            for (place, answer) in zip(places, answers) { decisions[place] = answer }
        }
        return decisions
    }

    /// Verifies up to 4,096 proofs. Returns a decision for each request, in order.
    ///
    /// `wantsRoots`: whether to return root hashes as well. `atLeast`: the sequence of a change that must have been
    /// applied, for example the caller's last one. If it has not been applied, throws `behindSequence`, and no
    /// challenge is spent.
    public func verify(
        _ requests: [AccessRequest], wantsRoots: Bool = false, atLeast: UInt64 = 0
    ) async throws(ServiceError) -> [AccessDecision] {
        try await verify(requests, isSigned: true, wantsRoots: wantsRoots, atLeast: atLeast)
    }

    /// Verifies proofs like `verify`, but checks neither challenge nor signature. For callers who already know that the
    /// device has the private key. A proof that holds gets `included`.
    public func verifyInclusion(
        _ requests: [AccessRequest], wantsRoots: Bool = false, atLeast: UInt64 = 0
    ) async throws(ServiceError) -> [AccessDecision] {
        try await verify(requests, isSigned: false, wantsRoots: wantsRoots, atLeast: atLeast)
    }

    private func verify(
        _ requests: [AccessRequest], isSigned: Bool, wantsRoots: Bool, atLeast: UInt64
    ) async throws(ServiceError) -> [AccessDecision] {
        if requests.count == 1, !wantsRoots {
            let kind = VerifyCall.Kind(isSigned: isSigned, atLeast: atLeast)
            let verdict = try await verdict(on: requests[0].proof, in: requests[0].collaboration, kind)
            return [AccessDecision(verdict: verdict, rootHash: nil)]
        }
        var decisions = try await decisions(
            on: requests, isSigned: isSigned, wantsRoots: wantsRoots, atLeast: atLeast)
        let places = decisions.indices.filter { decisions[$0].verdict == .challengeElsewhere }
        let elsewhere = await atIssuers(requests, places) { requests, connector throws(ServiceError) in
            try await self.decisions(
                on: requests, isSigned: isSigned, wantsRoots: wantsRoots, atLeast: atLeast, at: connector)
        }
        for (place, decision) in elsewhere { decisions[place] = decision }
        return decisions
    }

    /// What one service says. `connector`: the way to it; `nil`: any.
    private func decisions(
        on requests: [AccessRequest], isSigned: Bool, wantsRoots: Bool, atLeast: UInt64, at connector: Connector? = nil
    ) async throws(ServiceError) -> [AccessDecision] {
        var body: [UInt8] = []
        try RootgateClient.appendBatch(
            requests, isSigned: isSigned, wantsRoots: wantsRoots, atLeast: atLeast, to: &body)
        let answer = try await send(
            isSigned ? .verify : .verifyInclusion, body: body, isRepeatable: !isSigned, at: connector)
        return try answer.withRawBytes { body throws(ServiceError) in
            try RootgateClient.decisions(in: body, count: requests.count, haveRoots: wantsRoots)
        }
    }

    /// The decisions in the answer to a request with so many proofs. `haveRoots`: whether it asked for root hashes.
    ///
    /// Throws `malformedAnswer` when the answer is that to another request.
    static func decisions(
        in answer: UnsafeRawBufferPointer, count: Int, haveRoots: Bool
    ) throws(ServiceError) -> [AccessDecision] {
        let (verdicts, roots) = try VerdictList.decode(answer)
        guard verdicts.count == count, !haveRoots || roots.count == count else { throw malformedAnswer }
        return verdicts.indices.map { index in
            let root = haveRoots && roots[index] != .zero ? roots[index] : nil
            return AccessDecision(verdict: verdicts[index], rootHash: root)
        }
    }

    /// Appends the body of a verify or open request.
    static func appendBatch(
        _ requests: [AccessRequest], isSigned: Bool, wantsRoots: Bool, atLeast: UInt64, to body: inout [UInt8]
    ) throws(ServiceError) {
        var named = NamedCollaborations()
        let entries = requests.map { (named.position(of: $0.collaboration), $0.proof) }
        try ProofBatch.append(
            entries, of: named.collaborations, isSigned: isSigned, wantsRoots: wantsRoots, atLeast: atLeast, to: &body)
    }

    /// The collaborations that a batch names, each once, in the order in which they were first named.
    struct NamedCollaborations {
        private(set) var collaborations: [CollaborationIdentifier] = []
        private var positions: [CollaborationIdentifier: Int] = [:]

        mutating func position(of collaboration: CollaborationIdentifier) -> Int {
            if let last = collaborations.last, last == collaboration { return collaborations.count - 1 }
            if let position = positions[collaboration] { return position }
            positions[collaboration] = collaborations.count
            collaborations.append(collaboration)
            return collaborations.count - 1
        }
    }

    // MARK: Collaborations

    /// Applies a mutation. After an error, send the same value again: it is applied at most once.
    @discardableResult
    public func apply(_ mutation: Mutation) async throws(ServiceError) -> MutationReceipt {
        if case .addRoots(_, let roots) = mutation.change {
            try checkLimit(roots.count, Limits.rootsPerRequestMax, "root hashes")
        }
        if case .edit = mutation.change {
            throw ServiceError(.malformedRequest, "edits are made by the service itself and can't be sent")
        }
        if case .removeRoots(_, let roots) = mutation.change {
            try checkLimit(roots.count, Limits.rootsPerRequestMax, "root hashes")
        }
        return try await ask(.mutate(mutation)) { body throws(ServiceError) in try Answer.receipt(body) }
    }

    /// Makes a collaboration. Nothing changes when it exists with the same policy.
    @discardableResult
    public func createCollaboration(
        _ collaboration: CollaborationIdentifier, policy: ProofPolicy = .challenge
    ) async throws(ServiceError) -> MutationReceipt {
        try await apply(Mutation(.createCollaboration(collaboration, policy)))
    }

    /// Removes a collaboration and its set.
    @discardableResult
    public func dropCollaboration(
        _ collaboration: CollaborationIdentifier
    ) async throws(ServiceError) -> MutationReceipt {
        try await apply(Mutation(.dropCollaboration(collaboration)))
    }

    /// Up to `limit` collaborations after `start`, in an order that the service chooses.
    public func collaborations(
        after start: CollaborationIdentifier? = nil, limit: Int = 1024
    ) async throws(ServiceError) -> ListPage<CollaborationState> {
        try await ask(.listCollaborations(after: start, limit: limit)) { body throws(ServiceError) in
            let page = try Answer.collaborations(body)
            let items = page.collaborations.map {
                CollaborationState(identifier: $0.identifier, policy: $0.policy, rootCount: $0.rootCount)
            }
            return ListPage(items: items, hasMore: page.hasMore)
        }
    }

    // MARK: Root hashes

    /// Puts root hashes into a collaboration's set, up to 32,768 at once.
    @discardableResult
    public func addRoots(
        _ roots: [Digest], to collaboration: CollaborationIdentifier
    ) async throws(ServiceError) -> MutationReceipt {
        try await apply(Mutation(.addRoots(collaboration, roots)))
    }

    /// Takes root hashes out of a collaboration's set, up to 32,768 at once.
    @discardableResult
    public func removeRoots(
        _ roots: [Digest], from collaboration: CollaborationIdentifier
    ) async throws(ServiceError) -> MutationReceipt {
        try await apply(Mutation(.removeRoots(collaboration, roots)))
    }

    /// Returns when every service of the cluster has applied a change, or answers no proof without it. A service that
    /// is alone has applied what it has answered.
    ///
    /// `sequence`: that of the change's receipt. Throws `behindSequence` or `busy` when that is not known yet: ask
    /// again.
    public func confirmEverywhere(_ sequence: UInt64) async throws(ServiceError) {
        let confirmed = try await ask(.confirmEverywhere(sequence: sequence)) { body throws(ServiceError) in
            try Answer.confirmation(body)
        }
        guard confirmed == sequence else {
            throw ServiceError(.malformedAnswer, "the service has confirmed another change")
        }
    }

    /// A piece of a snapshot of everything that a service of a cluster has stored, for another one of that cluster.
    package func readSnapshot(_ request: SnapshotRequest) async throws(ServiceError) -> SnapshotPiece {
        try await ask(.readSnapshot(request)) { body throws(ServiceError) in try SnapshotPiece(body) }
    }

    /// Whether each of the root hashes is in the collaboration's set.
    public func testRoots(
        _ roots: [Digest], in collaboration: CollaborationIdentifier
    ) async throws(ServiceError) -> [Bool] {
        try checkLimit(roots.count, Limits.rootsPerRequestMax, "root hashes")
        return try await ask(.testRoots(collaboration, roots)) { body throws(ServiceError) in try Answer.tests(body) }
    }

    /// Up to `limit` root hashes of the set that are greater than `start`, in ascending order.
    public func roots(
        of collaboration: CollaborationIdentifier, after start: Digest? = nil, limit: Int = 4096
    ) async throws(ServiceError) -> ListPage<Digest> {
        try await ask(.listRoots(collaboration, after: start, limit: limit)) { body throws(ServiceError) in
            let page = try Answer.roots(body)
            return ListPage(items: page.roots, hasMore: page.hasMore)
        }
    }

    /// The collaboration's policy and the size of its set.
    public func state(of collaboration: CollaborationIdentifier) async throws(ServiceError) -> CollaborationState {
        try await ask(.countRoots(collaboration)) { body throws(ServiceError) in
            let state = try Answer.count(body)
            return CollaborationState(identifier: collaboration, policy: state.policy, rootCount: state.rootCount)
        }
    }

    /// Up to `limit` mutations of the change log after `sequence`.
    public func changes(
        after sequence: UInt64, limit: Int = 1024
    ) async throws(ServiceError) -> ListPage<LoggedMutation> {
        try await ask(.readChanges(after: sequence, limit: limit)) { body throws(ServiceError) in
            let page = try Answer.changes(body)
            return ListPage(items: page.changes, hasMore: page.hasMore)
        }
    }

    // MARK: Sending

    private func ask<T>(
        _ request: Request, _ decode: (UnsafeRawBufferPointer) throws(ServiceError) -> T
    ) async throws(ServiceError) -> T {
        var body: [UInt8] = []
        request.append(to: &body)
        let isChange = if case .mutate = request { true } else { false }
        let answer = try await send(request.operation, body: body, isRepeatable: true, isChange: isChange)
        return try answer.withRawBytes { body throws(ServiceError) in try decode(body) }
    }

    /// Sends a request and returns the body of its answer. When the connection is lost, sends a request again that
    /// `isRepeatable` or was not begun; when the service is stale, sends any request to another one.
    ///
    /// `isChange`: whether the request may change something. `waiting`: time that the service may wait before it
    /// answers, which is added to the request's time-out. `connector`: the way to the service that is asked; `nil`:
    /// any.
    func send(
        _ operation: Operation, body: [UInt8], isRepeatable: Bool, isChange: Bool = false, waiting: Duration = .zero,
        at connector: Connector? = nil
    ) async throws(ServiceError) -> [UInt8] {
        try await onLink(
            isRepeatable: isRepeatable, isChange: isChange, waiting: waiting, at: connector
        ) { link, deadline in
            await link.request(operation, body: body, deadline: deadline)
        }
    }

    /// Calls `ask` with the present connection. When it is lost, and the request `isRepeatable` or was not begun, calls
    /// it with the next one. So it does when the service is stale and there is another one.
    ///
    /// A change whose connection was lost may have been made. When its repetition is not decided, for example because
    /// the service is busy, the error is that the connection was lost.
    private nonisolated(nonsending) func onLink<Answer: Sendable>(
        isRepeatable: Bool, isChange: Bool = false, waiting: Duration = .zero, at place: Connector? = nil,
        _ ask: nonisolated(nonsending) (Link, ContinuousClock.Instant) async -> Result<Answer, ServiceError>
    ) async throws(ServiceError) -> Answer {
        let connector = place ?? connector
        let deadline = ContinuousClock.now + configuration.requestTimeout + waiting
        var pause = configuration.reconnectPause
        var lost: ServiceError?
        while true {
            let failure: ServiceError
            let connected: Result<Link, ServiceError>
            if let present = connector.present {
                connected = .success(present)
            } else {
                connected = await connector.link(until: deadline)
            }
            switch connected {
            case .success(let link):
                switch await ask(link, deadline) {
                case .success(let answer): return answer
                case .failure(let error):
                    // Another service of the cluster may have heard of the others. Nothing was granted, so it may be
                    // asked, whatever the request is.
                    let isLeft = error.code == .stale && connector.leave(link)
                    let mayRepeat =
                        Link.wasNotBegun(error) || isLeft || isRepeatable && error.code == .connectionLost
                    guard mayRepeat, !connector.isClosed else { throw error.told(after: lost) }
                    if isChange, error.code == .connectionLost, !Link.wasNotBegun(error) { lost = error }
                    failure = error
                }
            case .failure(let error): failure = error
            }
            // Who refuses the other's certificate or key refuses it the next time, too.
            guard failure.code != .tlsRefused, failure.code != .keyRefused, failure.code != .cancelled else {
                throw failure.told(after: lost)
            }
            // Each client pauses for a different time: otherwise all clients would connect at the same moment.
            let jittered = max(failure.retryAfter ?? .zero, pause * Double.random(in: 0.5...1))
            guard !connector.isClosed, ContinuousClock.now + jittered < deadline else {
                throw failure.told(after: lost)
            }
            do {
                try await Task.sleep(for: jittered)
            } catch {
                throw ServiceError(.cancelled, "the request was cancelled")
            }
            pause = min(pause * 2, configuration.reconnectPauseMax)
        }
    }
}
