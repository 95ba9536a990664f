import Core
import Foundation
import RootgateClient

let participantVerbs: [CollabVerb] = [
    CollabVerb("add", "ID HEX ...", "add participants by their root hashes") { call in
        let (role, permission) = (
            try call.choice(ParticipantRole.self, option: "role"),
            try call.choice(Permission.self, option: "permission")
        )
        let people = try call.identities(from: 1).map {
            NewParticipant($0, displayName: call.arguments.text("name"), role: role, permission: permission)
        }
        return AddParticipants(people, to: try call.collaboration(), by: try call.givenGrant())
    },
    CollabVerb("remove", "ID HEX ...", "remove participants; their grants are revoked") { call in
        RemoveParticipants(
            try call.identities(from: 1), from: try call.collaboration(), by: try call.givenGrant())
    },
    CollabVerb("change", "ID", "add (--add) and remove (--remove) people in one change") { call in
        let request = UpdateParticipants(
            of: try call.collaboration(), adding: try call.identities(option: "add").map { NewParticipant($0) },
            removing: try call.identities(option: "remove"), by: try call.givenGrant())
        guard !request.added.isEmpty || !request.removed.isEmpty else { throw UsageError("say --add or --remove") }
        return request
    },
    CollabVerb("update", "ID HEX", "change a participant's name, role, permission") { call in
        try call.checkClear("name", "permission")
        return UpdateParticipant(
            ParticipantChange(
                try call.identity(try call.operand(1, "the participant")),
                displayName: try call.patch("name", call.arguments.text("name")),
                role: try call.choice(ParticipantRole.self, option: "role"),
                permission: try call.patch("permission", try call.choice(Permission.self, option: "permission"))),
            in: try call.collaboration(), by: try call.givenGrant())
    },
    CollabVerb("find", "ID HEX ...", "look participants up, removed ones too") { call in
        FindParticipants(try call.identities(from: 1), in: try call.collaboration())
    },
    .list("participants", "ID", "list participants; --past: removed ones too") { call in
        ListParticipants(
            of: try call.collaboration(), after: try call.arguments.text("after").map(call.identity),
            limit: try call.limit(upTo: Limits.participantsPerPageMax), includesRemoved: call.arguments.isOn("past"))
    } next: { request, answer in
        guard answer.hasMore, let last = answer.participants.last?.identity else { return nil }
        var following = request
        following.after = last
        return (following, last.rootHash.description)
    },
    CollabVerb("link", "ID HEX", "link a participant to --account, or to none") { call in
        LinkAccount(
            try call.arguments.text("account").map(call.account(named:)),
            to: try call.identity(try call.operand(1, "the participant")), in: try call.collaboration())
    },
    CollabVerb("open", "ID [FILE|-]", "verify proofs from JSON Lines, print grants", run: open),
    CollabVerb("check", "ID GRANT ...", "check grants", run: check),
]

/// Sends proofs; prints verdict and grant of each.
@Sendable private func open(_ call: CollabCall) async throws -> ExitCode {
    let collaboration = try call.collaboration()
    let atLeast = UInt64(try call.arguments.number("at-least", in: 0...Int.max))
    let input = try ProofLines(path: call.operands.dropFirst().first ?? "-")
    var refused = false
    var number = 0
    while case let lines = try input.next(256), !lines.isEmpty {
        let proofs = lines.compactMap { line -> SignedIdentityProof? in
            if case .proof(let proof, _) = line, proof.verdictWithoutService == nil { proof } else { nil }
        }
        var decisions = try await call.client.open(
            proofs.map { AccessRequest(collaboration: collaboration, proof: $0) },
            wantsOptions: call.arguments.isOn("with-options"), atLeast: atLeast
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
    guard !checks.isEmpty else { throw UsageError("give grants as operands") }
    let decisions = try await call.client.check(
        checks, wantsOptions: call.arguments.isOn("with-options"),
        atLeast: UInt64(try call.arguments.number("at-least", in: 0...Int.max)))
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
