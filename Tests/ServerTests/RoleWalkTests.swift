import Collaboration
import Core
import Foundation
import Principals
import TestSupport
import Testing
import Wire

/// Every operation and every request of the collaboration layer, sent with every role and with none.
@Suite("Roles, request by request")
struct RoleWalkTests {
    /// What may be sent with each role, written out: nothing here comes from the service's own table.
    private static let operations: [String: Set<Wire.Operation>] = [
        "": [.hello, .ping, .readSnapshot],
        "verify": [.issueChallenges, .verify, .verifyInclusion, .open, .checkGrants],
        "enrol": [.addRoots, .removeRoots, .createCollaboration, .dropCollaboration, .confirmEverywhere],
        "collaborate": [],
        "observe": [.testRoots, .listRoots, .countRoots, .listCollaborations, .statistics, .readChanges],
        "administer": [],
    ]
    private static let requests: [String: Set<String>] = [
        "": [],
        "verify": [],
        "enrol": [
            "prepare", "prepareAs", "abandon", "stopSharing", "claimOwnership", "transferOwnership", "addParticipants",
            "removeParticipants", "updateParticipants", "updateParticipant", "listParticipants", "findParticipants",
            "linkAccount", "createInvitation", "readInvitation", "acceptInvitation", "withdrawAcceptance",
            "listInvitations", "revokeInvitation",
        ],
        "collaborate": [
            "highlight", "updateShareOptions", "postNotices", "readNotices", "clearNotices", "recordShare", "readShelf",
            "readThumbnail", "pinHighlight", "removeHighlight", "signalHighlight", "setConsent", "readConsent",
            "readAttribution", "readDetails", "customizeDetails", "listShares",
        ],
        "observe": [],
        "administer": [
            "createPrincipal", "updatePrincipal", "removePrincipal", "addKey", "removeKey", "listPrincipals",
        ],
    ]
    /// Requests that a role with the prefix `a/` covers when they are about `a/x`.
    private static let aboutCollaborations: Set<String> = [
        "stopSharing", "claimOwnership", "addParticipants", "removeParticipants",
        "updateParticipants", "updateParticipant", "listParticipants", "findParticipants", "createInvitation",
        "listInvitations", "revokeInvitation", "highlight", "updateShareOptions", "postNotices",
        "readNotices", "clearNotices", "readDetails", "customizeDetails",
    ]
    /// Identifiers that `a/` does not cover: the last ones look as if it did.
    private static let outside = [
        "b/x", "a", "A/x", "/a/x", "b/../a/x", "\u{430}/x", "a\u{ff0f}x", "a\u{301}/x", "\u{e1}/x",
    ]
    private static let roles = PrincipalRole.allCases.map(\.rawValue)
    private static let names = Collaboration.Requests.all.map { $0.name }

    private func limited(_ role: String, _ prefix: String, app: String? = nil) throws -> LimitedRole {
        LimitedRole(
            try #require(PrincipalRole(rawValue: role)), prefixes: [try #require(CollaborationPrefix(prefix))], app: app
        )
    }

    /// A request's body about a collaboration.
    private func body(_ operation: Wire.Operation, about name: String) throws -> [UInt8] {
        let collaboration = try #require(CollaborationIdentifier(name))
        func written(_ request: Request) -> [UInt8] {
            var body: [UInt8] = []
            request.append(to: &body)
            return body
        }
        func mutation(_ change: Change) -> [UInt8] { written(.mutate(Mutation(change))) }
        func batch(_ body: (inout [UInt8]) throws -> Void) rethrows -> [UInt8] {
            var bytes: [UInt8] = []
            try body(&bytes)
            return bytes
        }
        let none: [ProofBatch.Entry] = []
        switch operation {
        case .hello: return [1, 1, 0, 0]
        case .ping, .edit, .statistics: return []
        case .issueChallenges: return written(.issueChallenges(count: 1))
        // Batches that name a collaboration and have no proof for it.
        case .verify, .open, .verifyInclusion:
            return try batch {
                try ProofBatch.append(
                    none, of: [collaboration], isSigned: operation != .verifyInclusion, wantsRoots: false, atLeast: 0,
                    to: &$0)
            }
        case .checkGrants: return try batch { try GrantBatch.append([], of: [collaboration], atLeast: 0, to: &$0) }
        case .addRoots: return mutation(.addRoots(collaboration, []))
        case .removeRoots: return mutation(.removeRoots(collaboration, []))
        case .createCollaboration: return mutation(.createCollaboration(collaboration, .challenge))
        case .dropCollaboration: return mutation(.dropCollaboration(collaboration))
        case .testRoots: return written(.testRoots(collaboration, []))
        case .listRoots: return written(.listRoots(collaboration, after: nil, limit: 1))
        case .countRoots: return written(.countRoots(collaboration))
        case .listCollaborations: return written(.listCollaborations(after: nil, limit: 1))
        case .readChanges: return written(.readChanges(after: 0, limit: 1))
        case .confirmEverywhere: return written(.confirmEverywhere(sequence: 0))
        case .readSnapshot:
            let token = [UInt8](repeating: 7, count: SnapshotRequest.tokenBytes)
            return written(.readSnapshot(SnapshotRequest(token: token, identifier: 0, offset: 0)))
        case .collaborate: return call("readConsent", Array("{}".utf8))
        }
    }

    private func call(_ name: String, _ json: [UInt8]) -> [UInt8] {
        var body: [UInt8] = []
        CollaborationCall(identifier: .random(), name: name, json: json).append(to: &body)
        return body
    }

    /// The example of PROTOCOL.md for a request, about another collaboration if one is given.
    private func example(_ name: String, about collaboration: String? = nil) throws -> [UInt8] {
        let text = try #require(try ProtocolDocument().jsonBlocks.first { $0.name == "\(name)-request" }).text
        guard let collaboration else { return Array(text.utf8) }
        var fields = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        if name == "highlight" {
            fields = ["collaboration": collaboration]
        } else if name == "readNotices" {
            fields["feed"] = ["collaboration": collaboration]
        } else if fields["collaboration"] != nil {
            fields["collaboration"] = collaboration
        }
        return Array(try JSONSerialization.data(withJSONObject: fields))
    }

    @Test("Each role may send what is written here and nothing else, and nobody may send hello and ping only")
    func everything() async throws {
        let guarded = try await GuardedService()
        #expect(Set(Self.requests.values.joined()) == Set(Self.names))
        for role in [""] + Self.roles {
            let key = role.isEmpty ? nil : try await guarded.principal("only-\(role)", [try limited(role, "*")])
            let peer = try guarded.peer(key)
            for operation in Wire.Operation.allCases where operation != .collaborate && operation != .edit {
                let isAllowed =
                    Self.operations[""]?.contains(operation) == true
                    || Self.operations[role]?.contains(operation) == true
                let error = try peer.error(operation, try body(operation, about: "x"))
                #expect((error?.code != .roleMissing) == isAllowed, "\(operation) with “\(role)”")
            }
            for name in Self.names {
                let error = try peer.error(.collaborate, call(name, try example(name)))
                let isAllowed = Self.requests[role]?.contains(name) == true
                #expect((error?.code != .roleMissing) == isAllowed, "\(name) with “\(role)”")
                let needed = Self.requests.first { $0.value.contains(name) }?.key ?? ""
                if !isAllowed { #expect(error?.reason == "the role \(needed) is missing") }
            }
        }
    }

    @Test("All roles but one may send what the others may, and not what that one may")
    func complements() async throws {
        let guarded = try await GuardedService()
        for role in Self.roles {
            let others = try Self.roles.filter { $0 != role }.map { try limited($0, "*") }
            let peer = try guarded.peer(try await guarded.principal("not-\(role)", others))
            for operation in Wire.Operation.allCases where operation != .collaborate && operation != .edit {
                let isRefused = Self.operations[role]?.contains(operation) == true
                let code = try peer.code(operation, try body(operation, about: "x"))
                #expect((code == .roleMissing) == isRefused, "\(operation) without “\(role)”")
            }
            for name in Self.names {
                let isRefused = Self.requests[role]?.contains(name) == true
                let code = try peer.code(.collaborate, call(name, try example(name)))
                #expect((code == .roleMissing) == isRefused, "\(name) without “\(role)”")
            }
        }
    }

    @Test("A prefix covers what begins with its bytes, in every request, and in doubt nothing")
    func prefixes() async throws {
        let guarded = try await GuardedService()
        let roles = try Self.roles.filter { $0 != "administer" }.map { try limited($0, "a/") }
        let peer = try guarded.peer(try await guarded.principal("limited", roles))
        let always: Set<Wire.Operation> = [
            .hello, .ping, .issueChallenges, .confirmEverywhere, .readSnapshot, .listCollaborations, .readChanges,
        ]
        for operation in Wire.Operation.allCases where operation != .collaborate && operation != .edit {
            let covers = operation != .statistics
            for name in ["a/x", "a/", "a/../b"] {
                let code = try peer.code(operation, try body(operation, about: name))
                #expect((code != .roleMissing) == covers, "\(operation) on \(name)")
            }
            for name in Self.outside {
                let code = try peer.code(operation, try body(operation, about: name))
                #expect((code != .roleMissing) == always.contains(operation), "\(operation) on \(name)")
            }
        }
        for request in Self.names {
            let covers = Self.aboutCollaborations.contains(request)
            let inside = try peer.code(.collaborate, call(request, try example(request, about: "a/x")))
            #expect((inside != .roleMissing) == covers, "\(request) on a/x")
            for name in Self.outside {
                let code = try peer.code(.collaborate, call(request, try example(request, about: name)))
                #expect(code == .roleMissing, "\(request) on \(name)")
            }
        }
        // Who ends a link needs no more than the collaboration; who makes one writes what belongs to an account.
        let identity = String(repeating: "ab", count: 32)
        let unlink = Array(#"{"collaboration":"a/x","identity":"\#(identity)"}"#.utf8)
        #expect(try peer.code(.collaborate, call("linkAccount", unlink)) == .unknownCollaboration)
        let account = Array(#"{"feed":{"account":"a/x"},"after":0,"limit":1}"#.utf8)
        #expect(try peer.code(.collaborate, call("readNotices", account)) == .roleMissing)
        let link = Array(#"{"url":"https://example.com/collab/a%2Fx"}"#.utf8)
        #expect(try peer.code(.collaborate, call("highlight", link)) == .roleMissing)
    }

    @Test("A batch is refused whole when one of the collaborations that it names is not covered")
    func batches() async throws {
        let guarded = try await GuardedService()
        let peer = try guarded.peer(try await guarded.principal("limited", [try limited("verify", "a/")]))
        let named = try ["a/1", "b/1", "a/2"].map { try #require(CollaborationIdentifier($0)) }
        for names in [named, Array(named.reversed()), [named[1]]] {
            for operation in [Wire.Operation.verify, .verifyInclusion, .open] {
                var body: [UInt8] = []
                try ProofBatch.append(
                    [ProofBatch.Entry](), of: names, isSigned: operation != .verifyInclusion, wantsRoots: false,
                    atLeast: 0, to: &body)
                #expect(try peer.code(operation, body) == .roleMissing)
            }
            var body: [UInt8] = []
            try GrantBatch.append([], of: names, atLeast: 0, to: &body)
            #expect(try peer.code(.checkGrants, body) == .roleMissing)
        }
    }

    @Test("A role for an app covers its part of shelves, and nothing of conversations, consent or accounts")
    func apps() async throws {
        let guarded = try await GuardedService()
        let role = try limited("collaborate", "*", app: "com.example.decks")
        let peer = try guarded.peer(try await guarded.principal("app", [role]))
        let shelf: Set<String> = [
            "readShelf", "readThumbnail", "pinHighlight", "removeHighlight", "signalHighlight", "readAttribution",
        ]
        for name in shelf {
            var fields = try #require(try JSONSerialization.jsonObject(with: Data(try example(name))) as? [String: Any])
            func code() throws -> ServiceError.Code? {
                try peer.code(.collaborate, call(name, Array(try JSONSerialization.data(withJSONObject: fields))))
            }
            fields["everyApp"] = nil
            fields["app"] = "com.example.decks"
            #expect(try code() != .roleMissing, "\(name)")
            fields["everyApp"] = true
            #expect(try code() == .roleMissing, "\(name) for every app")
            fields["app"] = nil
            #expect(try code() == .roleMissing, "\(name) for every app")
            fields["everyApp"] = nil
            #expect(try code() == .roleMissing, "\(name) without an app")
            fields["app"] = "com.example.decks2"
            #expect(try code() == .roleMissing, "\(name) for another app")
        }
        for name in ["recordShare", "setConsent", "readConsent", "listShares"] {
            #expect(try peer.code(.collaborate, call(name, try example(name))) == .roleMissing, "\(name)")
        }
        #expect(try peer.code(.collaborate, call("readDetails", try example("readDetails"))) != .roleMissing)
    }
}
