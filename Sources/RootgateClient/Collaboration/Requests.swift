// The layer's words are the client's too: whoever imports the client has them.
@_exported public import Collaboration
public import Core
import Foundation
import Wire

/// What the gate said of one proof, and what the person may go on with.
public struct OpenDecision: Hashable, Sendable {
    public let verdict: Verdict
    /// Only with `granted`, and only for those who take part by `AddParticipants` or its like.
    public let grant: AccessGrant?

    public init(verdict: Verdict, grant: AccessGrant? = nil) {
        self.verdict = verdict
        self.grant = grant
    }
}

/// A grant, and where it is shown by whom.
public struct GrantCheck: Hashable, Sendable {
    public var grant: AccessGrant
    public var collaboration: CollaborationIdentifier
    /// The first 16 bytes of the SHA-256 of the public key of the device that shows it, as the device sends the key;
    /// `nil` when the caller does not know the device.
    public var deviceKey: [UInt8]?

    public init(_ grant: AccessGrant, in collaboration: CollaborationIdentifier, deviceKey: [UInt8]? = nil) {
        self.grant = grant
        self.collaboration = collaboration
        self.deviceKey = deviceKey
    }
}

/// What the service said of one grant.
public struct GrantDecision: Hashable, Sendable {
    public let status: GrantStatus
    /// What the bearer may do; `nil` when the grant is refused, as everything that follows.
    public let permission: Permission?
    public let role: ParticipantRole?
    public let timeLeft: Duration?
}

extension RootgateClient {
    /// Sends a request of the collaboration layer. Send it again with the same identifier after an error to be sure
    /// that it was applied once.
    public func send<Request: CollaborationRequest>(
        _ request: Request, identifier: MutationIdentifier = .random()
    ) async throws(ServiceError) -> Request.Answer {
        try await send(request, identifier: identifier, waiting: .zero)
    }

    func send<Request: CollaborationRequest>(
        _ request: Request, identifier: MutationIdentifier = .random(), waiting: Duration
    ) async throws(ServiceError) -> Request.Answer {
        let answer = try await exchange(
            Request.name, try JSON.encode(request), identifier: identifier, waiting: waiting)
        do throws(ServiceError) {
            return try JSON.decode(Request.Answer.self, from: answer)
        } catch {
            throw malformedAnswer
        }
    }

    /// Sends a request of the collaboration layer that is JSON already, and returns the JSON of its answer.
    ///
    /// `waiting`: how long the service may wait for news.
    private func exchange(
        _ name: String, _ json: [UInt8], identifier: MutationIdentifier, waiting: Duration
    ) async throws(ServiceError) -> [UInt8] {
        try checkLimit(json.count, Limits.collaborationRequestBytesMax, "bytes of JSON")
        var body: [UInt8] = []
        CollaborationCall(identifier: identifier, name: name, json: json).append(to: &body)
        return try await send(.collaborate, body: body, isRepeatable: true, waiting: waiting)
    }

    /// A decision for each proof, in order, with a grant for those that were granted; up to 4,096 at once.
    ///
    /// `atLeast`: the sequence of a change that must have been applied, as the caller's own last one.
    public func open(
        _ requests: [AccessRequest], atLeast: UInt64 = 0
    ) async throws(ServiceError) -> [OpenDecision] {
        var body: [UInt8] = []
        try RootgateClient.appendBatch(requests, isSigned: true, wantsRoots: false, atLeast: atLeast, to: &body)
        let answer = try await send(.open, body: body, isRepeatable: false)
        let (verdicts, grants) = try answer.withRawBytes { body throws(ServiceError) in
            try OpenAnswer.decode(body, count: requests.count)
        }
        return zip(verdicts, grants).map { verdict, grant in
            OpenDecision(verdict: verdict, grant: grant.flatMap { AccessGrant(bytes: $0) })
        }
    }

    /// Whether the device may open the collaboration, and a grant if it may.
    public func open(
        _ proof: SignedIdentityProof, in collaboration: CollaborationIdentifier, atLeast: UInt64 = 0
    ) async throws(ServiceError) -> OpenDecision {
        let decisions = try await open([AccessRequest(collaboration: collaboration, proof: proof)], atLeast: atLeast)
        guard let decision = decisions.first else { throw malformedAnswer }
        return decision
    }

    /// A decision for each grant, in order; up to 4,096 at once.
    public func check(
        _ checks: [GrantCheck], atLeast: UInt64 = 0
    ) async throws(ServiceError) -> [GrantDecision] {
        var named = NamedCollaborations()
        var entries: [GrantBatch.Entry] = []
        for check in checks {
            if let key = check.deviceKey, key.count != GrantBatch.deviceKeyBytes {
                throw ServiceError(.malformedRequest, "a device key is named by 16 bytes")
            }
            entries.append(
                GrantBatch.Entry(
                    collaboration: named.position(of: check.collaboration), deviceKey: check.deviceKey,
                    grant: check.grant.bytes))
        }
        var body: [UInt8] = []
        try GrantBatch.append(entries, of: named.collaborations, atLeast: atLeast, to: &body)
        let answer = try await send(.checkGrants, body: body, isRepeatable: true)
        let answers = try answer.withRawBytes { body throws(ServiceError) in try GrantAnswer.decode(body) }
        guard answers.count == checks.count else { throw malformedAnswer }
        var decisions: [GrantDecision] = []
        decisions.reserveCapacity(answers.count)
        for answer in answers {
            guard let status = GrantStatus(rawValue: answer.status) else { throw malformedAnswer }
            decisions.append(
                GrantDecision(
                    status: status, permission: Permission(code: answer.permission),
                    role: ParticipantRole(code: answer.role),
                    timeLeft: status.isRefusal ? nil : .milliseconds(Int(answer.millisecondsLeft))))
        }
        return decisions
    }

    /// Accepts invitations, all at once: an answer for each, in order.
    public func accept(_ invitations: [AcceptInvitation]) async throws(ServiceError) -> [Acceptance] {
        let results = await withTaskGroup(of: (Int, Result<Acceptance, ServiceError>).self) { group in
            for (index, invitation) in invitations.enumerated() {
                group.addTask {
                    do throws(ServiceError) {
                        return (index, .success(try await self.send(invitation)))
                    } catch {
                        return (index, .failure(error))
                    }
                }
            }
            var results: [Int: Result<Acceptance, ServiceError>] = [:]
            for await (index, result) in group { results[index] = result }
            return results
        }
        var acceptances: [Acceptance] = []
        for index in invitations.indices {
            guard let result = results[index] else { throw malformedAnswer }
            acceptances.append(try result.get())
        }
        return acceptances
    }

    /// The pages of a feed as they come, from after a sequence on. Nothing is lost or doubled, also across lost
    /// connections; a reader who takes long gets more at once, and holds up nobody.
    public func notices(_ feed: Feed, after: UInt64 = 0) -> NoticeStream {
        NoticeStream(client: self, feed: feed, after: after)
    }
}

/// A feed, followed page by page for as long as somebody asks for the next one.
public struct NoticeStream: AsyncSequence, Sendable {
    public typealias Element = NoticePage
    public typealias Failure = ServiceError

    let client: RootgateClient
    let feed: Feed
    let after: UInt64

    public func makeAsyncIterator() -> Iterator { Iterator(client: client, feed: feed, after: after) }

    public struct Iterator: AsyncIteratorProtocol {
        /// How long the service may suspend one query.
        private static let wait = Duration.seconds(20)

        /// Waits when too many others wait, or this connection is too far behind: nothing is lost by coming again.
        ///
        /// Throws any other error, or `cancelled`.
        private static func pause(before error: ServiceError) async throws(ServiceError) {
            guard error.code == .busy else { throw error }
            do {
                try await Task.sleep(for: .milliseconds(Int.random(in: 50...250)))
            } catch {
                throw ServiceError(.cancelled, "the request was cancelled")
            }
        }

        let client: RootgateClient
        let feed: Feed
        /// Where to go on from, should the stream end.
        public private(set) var after: UInt64

        init(client: RootgateClient, feed: Feed, after: UInt64) {
            self.client = client
            self.feed = feed
            self.after = after
        }

        /// The next page with something in it.
        public mutating func next() async throws -> NoticePage? {
            try await next(isolation: nil)
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ServiceError) -> NoticePage? {
            while true {
                let query = ReadNotices(feed, after: after, waitMilliseconds: 20_000)
                do throws(ServiceError) {
                    let page = try await client.send(query, waiting: Iterator.wait)
                    after = page.next
                    if !page.notices.isEmpty { return page }
                } catch {
                    try await Iterator.pause(before: error)
                }
            }
        }
    }
}
