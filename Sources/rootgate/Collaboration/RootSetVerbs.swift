import Core
import Foundation
import RootgateClient

/// Verbs for collaborations that are a policy and a set of root hashes and nothing else.
let rootSetVerbs: [CollabVerb] = [
    CollabVerb(
        Verb(
            "create", "ID", 1...1, options: ["policy", "window"],
            "make a collaboration that is a policy and root hashes only")
    ) { call in
        let arguments = call.arguments
        let policy = try call.nonceWindow().map { ProofPolicy.deviceNonce(windowSeconds: $0) } ?? .challenge
        let receipt = try await call.client().createCollaboration(try call.collaboration(), policy: policy)
        if receipt.changed == 0, !arguments.isOn("json") {
            printNow("it exists already, with that policy: nothing was changed (sequence \(receipt.sequence))")
        } else {
            try report(receipt, "created", arguments)
        }
        return .success
    },
    CollabVerb(Verb("drop", "ID", 1...1, "drop a collaboration of root hashes only")) { call in
        let collaboration = try call.collaboration()
        try await checkNotStarted(collaboration, try call.client())
        try report(try await call.client().dropCollaboration(collaboration), "dropped", call.arguments)
        return .success
    },
    CollabVerb(
        Verb(
            "list", "", 0...0, options: ["after", "limit", "all"], "list all collaborations, their policies and counts")
    ) { call in
        let start = try call.arguments.text("after").map { try collaboration($0) }
        let isPage = call.arguments.text("limit") != nil
        let limit =
            isPage ? try call.limit(upTo: Limits.collaborationsPerPageMax) : Limits.collaborationsPerPageMax
        try await call.arguments.eachPage(from: start, isWhole: !isPage) { start in
            let page = try await call.client().collaborations(after: start, limit: limit)
            for state in page.items {
                let identifier = state.identifier.description.escapingControls
                printNow(
                    call.arguments.isOn("json")
                        ? try json(describe(state)) : "\(identifier)\t\(name(of: state.policy))\t\(state.rootCount)")
            }
            guard page.hasMore, let last = page.items.last?.identifier else { return nil }
            return (last, last.description)
        }
        return .success
    },
]

/// Throws `UsageError` when the collaboration was started with `prepare`. Dropping its root hashes would leave its
/// participants and its link.
private func checkNotStarted(_ collaboration: CollaborationIdentifier, _ client: RootgateClient) async throws {
    do throws(ServiceError) {
        _ = try await client.send(ListParticipants(of: collaboration, limit: 1))
    } catch {
        guard error.code == .unknownCollaboration else { throw error }
        return
    }
    throw UsageError(
        "\(collaboration.description.escapingControls) was started with prepare: rootgate collab stop ends it"
    )
}

private func name(of policy: ProofPolicy) -> String {
    switch policy {
    case .challenge: "challenge"
    case .deviceNonce(let seconds): "device-nonce/\(seconds)s"
    }
}

func describe(_ state: CollaborationState) -> [String: Any] {
    var object: [String: Any] = ["collaboration": state.identifier.description, "rootCount": state.rootCount]
    switch state.policy {
    case .challenge: object["policy"] = "challenge"
    case .deviceNonce(let seconds):
        object["policy"] = "device-nonce"
        object["windowSeconds"] = seconds
    }
    return object
}
