import Core
import Foundation
import RootgateClient

let invitationVerbs: [CollabVerb] = [
    CollabVerb(
        Verb(
            "invite", "ID", 1...1, options: ["role", "permission", "account", "name", "handle", "hours"],
            "make an invitation; prints its token"), run: invite),
    CollabVerb(
        Verb("invitation", "TOKEN", 1...1, "what an invitation offers, before it is accepted"), run: readInvitation),
    CollabVerb(
        Verb(
            "accept", "TOKEN ... --account ACCOUNT", 1...Verb.operandsMax, options: ["account", "identity", "name"],
            "accept invitations; --identity comes in"), run: accept),
    CollabVerb(
        Verb(
            "withdraw", "TOKEN --account ACCOUNT", 1...1, options: ["account"],
            "take back an acceptance without an identity")
    ) { call in
        WithdrawAcceptance(try token(try call.operand(0, "the token")), for: try call.account())
    },
    .list(
        Verb(
            "invitations", "ID", 1...1, options: ["past", "after", "limit", "all"],
            "list pending invitations; --past: settled ones too")
    ) { call in
        ListInvitations(
            of: try call.collaboration(), includesSettled: call.arguments.isOn("past"),
            after: call.arguments.text("after"), limit: try call.limit(upTo: Limits.invitationsPerPageMax))
    } next: { request, answer in
        guard answer.hasMore, let last = answer.invitations.last?.identifier else { return nil }
        var following = request
        following.after = last
        return (following, last)
    },
    CollabVerb(Verb("revoke", "ID INVITATION", 2...2, "take an invitation back")) { call in
        RevokeInvitation(try call.operand(1, "the invitation"), of: try call.collaboration())
    },
    .list(
        Verb(
            "shares", "--account ACCOUNT", 0...0, options: ["account", "scope", "after", "limit", "all"],
            "the shares of a --scope")
    ) { call in
        ListShares(
            of: try call.account(), scope: try call.choice(Scope.self, try call.arguments.required("scope")),
            after: call.arguments.text("after"), limit: try call.limit(upTo: Limits.sharesPerPageMax))
    } next: { request, answer in
        guard let next = answer.next else { return nil }
        var following = request
        following.after = next
        return (following, next)
    },
]

@Sendable private func invite(_ call: CollabCall) async throws -> ExitCode {
    var request = CreateInvitation(
        to: try call.collaboration(), role: try call.role(),
        permission: try call.choice(Permission.self, option: "permission"))
    let account = try call.arguments.text("account").map(call.account(named:))
    let inviter = Inviter(account: account, name: call.arguments.text("name"), handle: call.arguments.text("handle"))
    if inviter != Inviter() { request.inviter = inviter }
    if call.arguments.text("hours") != nil {
        request.expiresAt = Date(timeIntervalSinceNow: try call.arguments.decimal("hours", in: 0.001...1e6) * 3600)
    }
    let invitation = try await call.client().send(request)
    if call.arguments.isOn("json") {
        printNow(try json(["token": request.token.text, "identifier": invitation.identifier]))
    } else {
        printNow("token \(request.token.text) invitation \(invitation.identifier.escapingControls)")
    }
    return .success
}

private func token(_ text: String) throws -> InvitationToken {
    guard let token = InvitationToken(text) else { throw UsageError("\(text) is not an invitation's token") }
    return token
}

@Sendable private func readInvitation(_ call: CollabCall) async throws -> ExitCode {
    let preview = try await call.client().send(ReadInvitation(try token(try call.operand(0, "the token"))))
    try call.show(preview)
    return preview.refusal == nil ? .success : .refused
}

@Sendable private func accept(_ call: CollabCall) async throws -> ExitCode {
    let (account, identity) = (try call.account(), try call.givenIdentity())
    let requests = try call.operands.map { text in
        AcceptInvitation(try token(text), for: account, identity: identity, displayName: call.arguments.text("name"))
    }
    var failure: ServiceError?
    var isRefused = false
    for result in try await call.client().accept(requests) {
        switch result {
        case .success(let acceptance):
            try call.show(acceptance)
            if acceptance.refusal != nil { isRefused = true }
        case .failure(let error): failure = error
        }
    }
    // The answers of the others were shown.
    if let failure { throw failure }
    return isRefused ? .refused : .success
}
