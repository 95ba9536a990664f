import Core
import Foundation
import RootgateClient
import Server

let participantVerbs: [CollabVerb] = [
    CollabVerb(
        Verb(
            "add", "ID HEX ...", 2...Verb.operandsMax, options: ["name", "role", "permission", "grant"],
            "add participants by their root hashes")
    ) { call in
        AddParticipants(
            try call.newParticipants(try call.identities(from: 1)), to: try call.collaboration(),
            by: try call.givenGrant())
    },
    CollabVerb(
        Verb(
            "remove", "ID HEX ...", 2...Verb.operandsMax, options: ["grant"],
            "remove participants; their grants are revoked")
    ) { call in
        RemoveParticipants(
            try call.identities(from: 1), from: try call.collaboration(), by: try call.givenGrant())
    },
    CollabVerb(
        Verb(
            "change", "ID", 1...1, options: ["add", "remove", "name", "role", "permission", "grant"],
            "add (--add) and remove (--remove) people in one change")
    ) { call in
        let request = UpdateParticipants(
            of: try call.collaboration(), adding: try call.newParticipants(try call.identities(option: "add")),
            removing: try call.identities(option: "remove"), by: try call.givenGrant())
        guard !request.added.isEmpty || !request.removed.isEmpty else { throw UsageError("say --add or --remove") }
        return request
    },
    CollabVerb(
        Verb(
            "update", "ID HEX", 2...2, options: ["name", "role", "permission", "clear", "grant"],
            "change a participant's name, role, permission")
    ) { call in
        try call.checkClear("name", "permission")
        return UpdateParticipant(
            ParticipantChange(
                try call.identity(try call.operand(1, "the participant")),
                displayName: try call.patch("name", call.arguments.text("name")),
                role: try call.role(),
                permission: try call.patch("permission", try call.choice(Permission.self, option: "permission"))),
            in: try call.collaboration(), by: try call.givenGrant())
    },
    CollabVerb(Verb("find", "ID HEX ...", 2...Verb.operandsMax, "look participants up, removed ones too")) { call in
        FindParticipants(try call.identities(from: 1), in: try call.collaboration())
    },
    .list(
        Verb(
            "participants", "ID", 1...1, options: ["past", "after", "limit", "all"],
            "list participants; --past: removed ones too")
    ) { call in
        ListParticipants(
            of: try call.collaboration(), after: try call.arguments.text("after").map(call.identity),
            limit: try call.limit(upTo: Limits.participantsPerPageMax), includesRemoved: call.arguments.isOn("past"))
    } next: { request, answer in
        guard answer.hasMore, let last = answer.participants.last?.identity else { return nil }
        var following = request
        following.after = last
        return (following, last.rootHash.description)
    },
    CollabVerb(Verb("link", "ID HEX", 2...2, options: ["account"], "link a participant to --account, or to none")) {
        call in
        LinkAccount(
            try call.arguments.text("account").map(call.account(named:)),
            to: try call.identity(try call.operand(1, "the participant")), in: try call.collaboration())
    },
    CollabVerb(
        Verb(
            "open", "ID [FILE|-]", 1...2, options: ["at-least", "with-options"],
            "verify proofs from JSON Lines, print grants"), run: open),
    CollabVerb(
        Verb("check", "ID GRANT ...", 2...Verb.operandsMax, options: ["at-least", "with-options"], "check grants"),
        run: check),
]

extension CollabCall {
    /// Newcomers with the name, role and permission that the options give. The options are read only if there are
    /// newcomers.
    fileprivate func newParticipants(_ identities: [PersonIdentity]) throws -> [NewParticipant] {
        guard !identities.isEmpty else { return [] }
        let role = try self.role()
        let permission = try choice(Permission.self, option: "permission")
        return identities.map {
            NewParticipant($0, displayName: arguments.text("name"), role: role, permission: permission)
        }
    }
}

/// Sends proofs; prints verdict and grant of each.
@Sendable private func open(_ call: CollabCall) async throws -> ExitCode {
    let collaboration = try call.collaboration()
    let atLeast = UInt64(try call.arguments.number("at-least", in: 0...Int.max))
    let wantsOptions = call.arguments.isOn("with-options")
    let client = try call.client()
    let input = try ProofLines(path: call.operands.dropFirst().first ?? "-")
    var refused = false
    var number = 0
    while case let lines = try input.next(256), !lines.isEmpty {
        let proofs = lines.compactMap { line -> SignedIdentityProof? in
            if case .proof(let proof, _) = line, proof.verdictWithoutService == nil { proof } else { nil }
        }
        var decisions = try await client.open(
            proofs.map { AccessRequest(collaboration: collaboration, proof: $0) },
            wantsOptions: wantsOptions, atLeast: atLeast
        ).makeIterator()
        for line in lines {
            number += 1
            var object: [String: Any] = ["line": number]
            switch line {
            case .malformed(let reason):
                (object["verdict"], object["reason"]) = (Verdict.malformed.name, reason)
                refused = true
            case .proof(let proof, _):
                let decision = proof.verdictWithoutService == nil ? decisions.next() : nil
                guard let verdict = decision?.verdict ?? proof.verdictWithoutService else { continue }
                object["verdict"] = verdict.name
                object["reason"] = line.reason(for: verdict)
                object["grant"] = decision?.grant?.text
                object["selectedOptions"] = decision?.selectedOptions
                refused = refused || verdict.isRefusal
            }
            printNow(try json(object))
        }
    }
    return refused ? .refused : .success
}

@Sendable private func check(_ call: CollabCall) async throws -> ExitCode {
    let collaboration = try call.collaboration()
    let checks = try call.operands.dropFirst().map { GrantCheck(try call.grant($0), in: collaboration) }
    let wantsOptions = call.arguments.isOn("with-options")
    let atLeast = UInt64(try call.arguments.number("at-least", in: 0...Int.max))
    let decisions = try await call.client().check(checks, wantsOptions: wantsOptions, atLeast: atLeast)
    for decision in decisions {
        var object: [String: Any] = ["status": decision.status.name]
        object["permission"] = decision.permission?.rawValue
        object["role"] = decision.role?.rawValue
        object["secondsLeft"] = decision.timeLeft.map { $0.components.seconds }
        object["selectedOptions"] = decision.selectedOptions
        let words = [decision.status.name, decision.permission?.rawValue, decision.role?.rawValue].compactMap { $0 }
        printNow(
            call.arguments.isOn("json")
                ? try json(object) : (words + (decision.selectedOptions ?? [])).joined(separator: " "))
    }
    return decisions.contains { $0.status.isRefusal } ? .refused : .success
}
