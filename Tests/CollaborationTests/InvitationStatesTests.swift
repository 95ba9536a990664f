import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// Every situation of an invitation with everything that can be done then.
@Suite("States of an invitation")
struct InvitationStatesTests {
    /// How an invitation stands. Bo has accepted it where somebody has, and person 2 has come in.
    enum Situation: CaseIterable {
        case never, pending, accepted, completed, completedLongAgo, removed, addedAgain, outOfTheSet
        case revoked, revokedAfterAcceptance, expired, expiredAfterAcceptance, ended
        case closed, closedAfterAcceptance, closedAfterCompletion
    }

    enum Action: CaseIterable {
        case boAccepts, boAcceptsAs2, boAcceptsAs3, cyAccepts, cyAcceptsAs4, revoke, boWithdraws, cyWithdraws, read
    }

    /// What comes of each action, in their order.
    private static let outcomes: [Situation: [String]] = [
        .never: of("unknown", "unknown-invitation", "unknown-invitation", "unknown-invitation", "unknown"),
        .pending: ["accepted", "in", "in", "accepted", "in", "changed", "nothing", "nothing", "pending"],
        .accepted: ["accepted", "in", "in", "used", "used", "changed", "changed", "not-permitted", "accepted"],
        .completed: settled("in", "in", "conflict", read: "completed"),
        .completedLongAgo: settled("in", "in", "conflict", read: "completed"),
        .removed: settled("conflict", "conflict", "conflict", read: "conflict"),
        .addedAgain: settled("conflict", "conflict", "conflict", read: "conflict"),
        .outOfTheSet: settled("conflict", "conflict", "conflict", read: "conflict"),
        .closed: of("closed", "changed", "nothing", "nothing", "closed"),
        .closedAfterAcceptance: [
            "closed", "closed", "closed", "used", "used", "changed", "changed", "not-permitted", "closed",
        ],
        .closedAfterCompletion: settled("in", "in", "conflict", read: "completed"),
        .revoked: of("revoked", "nothing", "nothing", "nothing", "revoked"),
        .revokedAfterAcceptance: of("revoked", "nothing", "changed", "not-permitted", "revoked"),
        .expired: of("expired", "changed", "nothing", "nothing", "expired"),
        .expiredAfterAcceptance: of("expired", "changed", "changed", "not-permitted", "expired"),
        .ended: of("unknown", "unknown-collaboration", "unknown-invitation", "unknown-invitation", "unknown"),
    ]

    private static func of(_ accepting: String, _ others: String...) -> [String] {
        [String](repeating: accepting, count: 5) + others
    }

    private static func settled(_ accepting: String..., read: String) -> [String] {
        accepting + ["used", "used", "not-permitted", "not-permitted", "not-permitted", read]
    }

    /// Options by which people come in by invitations, until they are deselected.
    private static let joining = ShareOptions(optionsGroups: [
        OptionsGroup(
            identifier: "who",
            options: [
                CollaborationOption(
                    title: "Anyone with the link", identifier: "anyone", isSelected: true, effects: [.joinByInvitation])
            ])
    ])

    private let world = World()
    private let token = InvitationToken(bytes: [UInt8](repeating: 1, count: 16))

    private func bring(about situation: Situation) throws -> (CollaborationIdentifier, invitation: String) {
        let collaboration = try world.start(options: InvitationStatesTests.joining)
        guard situation != .never else { return (collaboration, [UInt8](repeating: 7, count: 16).hexadecimal) }
        let made = try world.send(CreateInvitation(to: collaboration, token: token, expiresAt: world.now + 60))
        let bo = try account("bo")
        switch situation {
        case .never, .pending, .ended, .revoked, .expired, .closed: break
        case .accepted, .revokedAfterAcceptance, .expiredAfterAcceptance, .closedAfterAcceptance:
            try world.send(AcceptInvitation(token, for: bo))
        case .completed, .completedLongAgo, .removed, .addedAgain, .outOfTheSet, .closedAfterCompletion:
            try world.send(AcceptInvitation(token, for: bo, identity: person(2)))
        }
        switch situation {
        case .never, .pending, .accepted, .completed: break
        case .completedLongAgo, .expired, .expiredAfterAcceptance: world.now += 60
        case .removed: try world.send(RemoveParticipants([person(2)], from: collaboration))
        case .addedAgain:
            try world.send(RemoveParticipants([person(2)], from: collaboration))
            try world.send(AddParticipants([NewParticipant(person(2))], to: collaboration))
        case .outOfTheSet:
            var edit = Edit(collaboration)
            edit.removedRoots = [person(2).rootHash]
            _ = try world.storage.apply(edit)
        case .revoked, .revokedAfterAcceptance: try world.send(RevokeInvitation(made.identifier, of: collaboration))
        case .ended: try world.send(StopSharing(collaboration))
        case .closed, .closedAfterAcceptance, .closedAfterCompletion:
            try world.send(UpdateShareOptions(collaboration, selectedOptions: []))
        }
        return (collaboration, made.identifier)
    }

    /// Does something, and tells what came of it.
    private func outcome(
        _ action: Action, _ collaboration: CollaborationIdentifier, _ invitation: String
    ) throws -> String {
        func accept(_ name: String, _ number: UInt8?) throws -> String {
            let accepter = try account(name)
            let answer = try world.send(
                AcceptInvitation(token, for: accepter, identity: number.map { person($0) }))
            let shared = try world.send(ListShares(of: accepter, scope: .shared)).shares
            if answer.state == .in {
                let identity = try #require(
                    try world.send(ListInvitations(of: collaboration, includesSettled: true)).invitations[0].identity)
                #expect(world.storage.sets[collaboration]?.contains(identity.rootHash) == true)
                #expect(try world.participants(of: collaboration)[identity] != nil)
                #expect(shared == [try #require(answer.share)])
            } else {
                #expect(answer.share == nil)
            }
            return answer.state?.rawValue ?? answer.refusal?.rawValue ?? ""
        }
        func change<R: RuledRequest>(_ request: R) throws -> String where R.Answer == ChangeReceipt {
            do throws(ServiceError) {
                return try world.send(request).changed == 0 ? "nothing" : "changed"
            } catch {
                return error.code.name
            }
        }
        switch action {
        case .boAccepts: return try accept("bo", nil)
        case .boAcceptsAs2: return try accept("bo", 2)
        case .boAcceptsAs3: return try accept("bo", 3)
        case .cyAccepts: return try accept("cy", nil)
        case .cyAcceptsAs4: return try accept("cy", 4)
        case .revoke: return try change(RevokeInvitation(invitation, of: collaboration))
        case .boWithdraws: return try change(WithdrawAcceptance(token, for: try account("bo")))
        case .cyWithdraws: return try change(WithdrawAcceptance(token, for: try account("cy")))
        case .read:
            let preview = try world.send(ReadInvitation(token))
            let isOffered = preview.state == .pending || preview.state == .accepted
            #expect((preview.permission != nil) == isOffered && (preview.role != nil) == isOffered)
            #expect(preview.refusal == nil || preview.title == nil && preview.inviterName == nil)
            return preview.state?.rawValue ?? preview.refusal?.rawValue ?? ""
        }
    }

    /// How the invitation stands afterwards, as its collaboration lists it.
    private func next(_ situation: Situation, _ action: Action, _ outcome: String) -> InvitationState? {
        switch (outcome, action) {
        case ("accepted", _): return .accepted
        case ("in", _): return .completed
        case ("changed", .revoke): return .revoked
        default: break
        }
        switch situation {
        case .never, .ended: return nil
        case .pending, .closed: return .pending
        case .accepted, .closedAfterAcceptance: return outcome == "changed" ? .pending : .accepted
        case .completed, .completedLongAgo, .removed, .addedAgain, .outOfTheSet, .closedAfterCompletion:
            return .completed
        case .revoked, .revokedAfterAcceptance: return .revoked
        case .expired, .expiredAfterAcceptance: return .expired
        }
    }

    @Test("Each action in each situation has its outcome and leads to its state", arguments: Situation.allCases)
    func table(_ situation: Situation) throws {
        let expected = try #require(InvitationStatesTests.outcomes[situation])
        #expect(expected.count == Action.allCases.count)
        for (action, expected) in zip(Action.allCases, expected) {
            let test = InvitationStatesTests()
            let (collaboration, invitation) = try test.bring(about: situation)
            let (records, sets) = (test.world.storage.records, test.world.storage.sets)
            let outcome = try test.outcome(action, collaboration, invitation)
            #expect(outcome == expected, "\(situation), \(action)")
            let isUnchanged = test.world.storage.records == records && test.world.storage.sets == sets
            let isSame = !["accepted", "in", "changed"].contains(outcome) || action == .read
            if isSame { #expect(isUnchanged, "\(situation), \(action)") }
            guard situation != .ended else { continue }
            let listed = try test.world.send(ListInvitations(of: collaboration, includesSettled: true)).invitations
            #expect(listed.first?.state == next(situation, action, outcome), "\(situation), \(action)")
            // Doing the same once more tells how things stand by then.
            let again = try test.outcome(action, collaboration, invitation)
            #expect(again == (outcome == "changed" ? "nothing" : outcome), "\(situation), \(action), again")
        }
    }
}
