// The client's interface uses the layer's types: importing the client brings them along.
@_exported public import Collaboration
public import Core
import Foundation
@_exported public import Principals
import Wire

extension RootgateClient {
    /// Sends a request of the collaboration layer. After an error, send it again with the same identifier: it is
    /// applied at most once.
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
    /// `waiting`: how long the service may wait for a change.
    private func exchange(
        _ name: String, _ json: [UInt8], identifier: MutationIdentifier, waiting: Duration
    ) async throws(ServiceError) -> [UInt8] {
        try checkLimit(json.count, Limits.collaborationRequestBytesMax, "bytes of JSON")
        var body: [UInt8] = []
        CollaborationCall(identifier: identifier, name: name, json: json).append(to: &body)
        return try await send(.collaborate, body: body, isRepeatable: true, isChange: true, waiting: waiting)
    }

    /// Verifies up to 4,096 proofs. Returns a decision for each, in order, with a grant if the proof was granted.
    ///
    /// `wantsOptions`: whether to return the collaborations' selected share options as well. `atLeast`: the sequence of
    /// a change that must have been applied, for example the caller's last one.
    public func open(
        _ requests: [AccessRequest], wantsOptions: Bool = false, atLeast: UInt64 = 0
    ) async throws(ServiceError) -> [OpenDecision] {
        var decisions = try await open(requests, wantsOptions: wantsOptions, atLeast: atLeast, at: nil)
        let places = decisions.indices.filter { decisions[$0].verdict == .challengeElsewhere }
        let elsewhere = await atIssuers(requests, places) { requests, connector throws(ServiceError) in
            try await self.open(requests, wantsOptions: wantsOptions, atLeast: atLeast, at: connector)
        }
        for (place, decision) in elsewhere { decisions[place] = decision }
        return decisions
    }

    /// What one service says. `connector`: the way to it; `nil`: any.
    private func open(
        _ requests: [AccessRequest], wantsOptions: Bool, atLeast: UInt64, at connector: Connector?
    ) async throws(ServiceError) -> [OpenDecision] {
        var named = NamedCollaborations()
        let entries = requests.map { (named.position(of: $0.collaboration), $0.proof) }
        var body: [UInt8] = []
        try ProofBatch.append(
            entries, of: named.collaborations, isSigned: true, wantsRoots: false, wantsOptions: wantsOptions,
            atLeast: atLeast, to: &body)
        let answer = try await send(.open, body: body, isRepeatable: false, at: connector)
        let optionLists = wantsOptions ? named.collaborations.count : 0
        let (verdicts, grants, options) = try answer.withRawBytes { body throws(ServiceError) in
            try OpenAnswer.decode(body, count: requests.count, optionLists: optionLists)
        }
        return requests.indices.map { index in
            let grant = verdicts[index].isRefusal ? nil : grants[index].flatMap { AccessGrant(bytes: $0) }
            return OpenDecision(
                verdict: verdicts[index], grant: grant,
                selectedOptions: wantsOptions && grant != nil ? options[entries[index].0] : nil)
        }
    }

    /// Whether the device may open the collaboration, and a grant if it may.
    public func open(
        _ proof: SignedIdentityProof, in collaboration: CollaborationIdentifier, wantsOptions: Bool = false,
        atLeast: UInt64 = 0
    ) async throws(ServiceError) -> OpenDecision {
        let request = AccessRequest(collaboration: collaboration, proof: proof)
        let decisions = try await open([request], wantsOptions: wantsOptions, atLeast: atLeast)
        guard let decision = decisions.first else { throw malformedAnswer }
        return decision
    }

    /// Checks up to 4,096 grants. Returns a decision for each, in order.
    ///
    /// `wantsOptions`: whether to return the collaborations' selected share options as well. `atLeast`: the sequence of
    /// a change that must have been applied.
    public func check(
        _ checks: [GrantCheck], wantsOptions: Bool = false, atLeast: UInt64 = 0
    ) async throws(ServiceError) -> [GrantDecision] {
        var named = NamedCollaborations()
        var entries: [GrantBatch.Entry] = []
        for check in checks {
            if let key = check.deviceKey, key.count != Limits.fingerprintBytes {
                throw ServiceError(.malformedRequest, "a device key is named by 16 bytes")
            }
            entries.append(
                GrantBatch.Entry(
                    collaboration: named.position(of: check.collaboration), deviceKey: check.deviceKey,
                    grant: check.grant.bytes))
        }
        var body: [UInt8] = []
        try GrantBatch.append(
            entries, of: named.collaborations, wantsOptions: wantsOptions, atLeast: atLeast, to: &body)
        let answer = try await send(.checkGrants, body: body, isRepeatable: true)
        let optionLists = wantsOptions ? named.collaborations.count : 0
        let (answers, options) = try answer.withRawBytes { body throws(ServiceError) in
            try GrantAnswer.decode(body, optionLists: optionLists)
        }
        guard answers.count == checks.count else { throw malformedAnswer }
        var decisions: [GrantDecision] = []
        decisions.reserveCapacity(answers.count)
        for (answer, entry) in zip(answers, entries) {
            let status = GrantStatus(received: answer.status)
            decisions.append(
                GrantDecision(
                    status: status, permission: status.isRefusal ? nil : Permission(code: answer.permission),
                    role: status.isRefusal ? nil : ParticipantRole(code: answer.role),
                    timeLeft: status.isRefusal ? nil : .milliseconds(Int(answer.millisecondsLeft)),
                    selectedOptions: wantsOptions && !status.isRefusal ? options[entry.collaboration] : nil))
        }
        return decisions
    }

    /// Accepts invitations concurrently. Returns an answer or an error for each, in order.
    public func accept(_ invitations: [AcceptInvitation]) async -> [Result<Acceptance, ServiceError>] {
        await withTaskGroup(of: (Int, Result<Acceptance, ServiceError>).self) { group in
            for (index, invitation) in invitations.enumerated() {
                group.addTask {
                    do throws(ServiceError) {
                        return (index, .success(try await self.send(invitation)))
                    } catch {
                        return (index, .failure(error))
                    }
                }
            }
            var results = [Result<Acceptance, ServiceError>](
                repeating: .failure(malformedAnswer), count: invitations.count)
            for await (index, result) in group { results[index] = result }
            return results
        }
    }

    /// The pages of a feed after a sequence. There are no gaps or duplicates, even when the connection is lost. A slow
    /// reader gets larger pages and does not delay other readers. `language`: that of the sentences, a tag of BCP 47.
    public func notices(_ feed: Feed, after: UInt64 = 0, language: String? = nil) -> NoticeStream {
        NoticeStream(client: self, feed: feed, after: after, language: language)
    }
}
