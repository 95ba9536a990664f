@testable import Collaboration
import Core
import Foundation
import Hashing
@testable import RootgateClient

/// A request that a client sends to the service and to the model alike.
protocol ModelOperation: Sendable {
    associatedtype Answer: Equatable & Sendable
    static var name: String { get }
    func send(
        _ client: RootgateClient, _ identifier: MutationIdentifier
    ) async throws(ServiceError) -> Answer
    /// What the service must answer or throw. From `answer`, what it has answered, comes only what nobody but the
    /// service can choose: fresh identifiers, grants, and times in real milliseconds.
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer
    /// The sequence of the change that was made, as far as the answer tells it.
    static func sequence(_ answer: Answer) -> UInt64?
    /// The answer to a repetition; `nil` when it is the answer to a new request, unless that changed something.
    static func repetition(of sequence: UInt64) -> Answer?
    /// What kind of answer it is, or what kinds are in it: for the tally.
    static func kinds(_ answer: Answer) -> [String]
}

extension ModelOperation {
    static func sequence(_ answer: Answer) -> UInt64? { nil }
    static func repetition(of sequence: UInt64) -> Answer? { nil }
    static func kinds(_ answer: Answer) -> [String] { ["answered"] }

    /// Sends the request to the service.
    func attempt(_ client: RootgateClient, _ identifier: MutationIdentifier) async -> Attempt {
        let actual: Result<Answer, ServiceError>
        do throws(ServiceError) {
            actual = .success(try await send(client, identifier))
        } catch {
            actual = .failure(error)
        }
        let answer = try? actual.get()
        return Attempt(name: Self.name, sequence: answer.flatMap { Self.sequence($0) }) { model in
            let expected: Result<Answer, ServiceError>
            let repetition = model.isRepeating ? model.told.flatMap { Self.repetition(of: $0) } : nil
            do throws(ServiceError) {
                if model.isConflict {
                    expected = .failure(ServiceError(.mutationConflict, ""))
                } else if let repetition {
                    expected = .success(repetition)
                } else {
                    let commits = model.commits
                    let fresh = try self.expected(&model, answer)
                    // Its effect is gone, so the service would have to repeat it.
                    let isGone = model.isRepeating && model.commits > commits
                    expected = isGone ? .failure(ServiceError(.mutationConflict, "")) : .success(fresh)
                }
            } catch {
                expected = .failure(error)
            }
            let isSame =
                switch (actual, expected) {
                case (.success(let a), .success(let b)): a == b
                case (.failure(let a), .failure(let b)): a.code == b.code && a.detail == b.detail
                default: false
                }
            let kinds =
                switch expected {
                case .success(let answer): Self.kinds(answer)
                case .failure(let error): [error.code.name]
                }
            return (kinds, isSame ? nil : "\(self)\n\(difference("\(actual)", "\(expected)"))")
        }
    }
}

/// Two answers from where they differ, with some text before that.
private func difference(_ actual: String, _ expected: String) -> String {
    let same = zip(actual, expected).prefix { $0 == $1 }.count
    func shortened(_ text: String) -> String {
        (same > 300 ? "..." : "") + text.dropFirst(max(0, same - 300)).prefix(1500)
    }
    return "was answered \(shortened(actual))\nexpected \(shortened(expected))"
}

/// An answer, to be compared with the model's.
struct Attempt: Sendable {
    let name: String
    let sequence: UInt64?
    /// Sends the same request to the model. Returns the model's outcome, and how the answers differ.
    let check: @Sendable (inout CollaborationModel) -> (kinds: [String], difference: String?)
}

/// A request of the layer.
protocol ModelledRequest: ModelOperation, CollaborationRequest {}

extension ModelledRequest {
    func send(
        _ client: RootgateClient, _ identifier: MutationIdentifier
    ) async throws(ServiceError) -> Answer {
        try await client.send(self, identifier: identifier)
    }
}

extension ModelledRequest where Answer == ChangeReceipt {
    static func sequence(_ answer: ChangeReceipt) -> UInt64? { answer.sequence }
    static func repetition(of sequence: UInt64) -> ChangeReceipt? { ChangeReceipt(sequence: sequence, changed: 0) }
    static func kinds(_ answer: ChangeReceipt) -> [String] {
        [answer.sequence == nil ? "nothing" : answer.changed == 0 ? "remembered" : "changed"]
    }
}

extension CollaborationModel {
    /// The receipt of a request that changes nothing: the change log has it.
    fileprivate mutating func remember() -> ChangeReceipt { ChangeReceipt(sequence: commit(), changed: 0) }
}

// MARK: - Starting and ending

extension PrepareCollaboration: ModelledRequest {
    static func kinds(_ answer: Answer) -> [String] { [answer.isNew ? "new" : "known"] }

    static func sequence(_ answer: Answer) -> UInt64? { answer.sequence }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        let name = try checkedName(model)
        let start = CollaborationModel.Start(owner: owner, local: metadata.localIdentifier)
        if let known = model.starts[start] {
            return try expected(&model, sharedAgain: known, name: nameOfInitiator(name))
        }
        try checkOptions(model)
        // Its identifier is gone.
        if model.isRepeating { throw model.refusal(.mutationConflict) }
        let fresh = answer?.collaborationIdentifier
        guard let fresh, model.told != nil || !model.history.contains(where: { $0.identifier == fresh }) else {
            throw model.refusal(.internalFault)
        }
        return try started(fresh, at: model.now, name, &model)
    }

    /// The name of the initiator's components, when all texts of the request are texts.
    fileprivate func checkedName(_ model: CollaborationModel) throws(ServiceError) -> String? {
        try model.checkName(metadata.localIdentifier.rawValue)
        let name = metadata.initiatorNameComponents.map {
            $0.nickname ?? [$0.givenName, $0.familyName].compactMap { $0 }.joined(separator: " ")
        }
        let parts = metadata.initiatorNameComponents
        let names = [parts?.givenName, parts?.familyName, parts?.nickname, name]
        let texts = [metadata.title, metadata.initiatorHandle, ownerName] + names
        for text in texts { try model.checkText(text) }
        return name
    }

    /// `name`: that of the initiator's components.
    private func nameOfInitiator(_ name: String?) -> String? {
        name ?? "" != "" ? name : ownerName ?? "" != "" ? ownerName : nil
    }

    /// The options of a start.
    @discardableResult
    fileprivate func checkOptions(_ model: CollaborationModel) throws(ServiceError) -> ShareOptions {
        try chosen(
            model,
            metadata.userSelectedShareOptions ?? metadata.defaultShareOptions ?? ShareOptions(optionsGroups: []))
    }

    /// The content is shared from now on, under that identifier.
    fileprivate func started(
        _ identifier: CollaborationIdentifier, at date: Date, _ name: String?, _ model: inout CollaborationModel
    ) throws(ServiceError) -> Answer {
        let start = CollaborationModel.Start(owner: owner, local: metadata.localIdentifier)
        let options = try checkOptions(model)
        let sequence = model.commit()
        var shared = CollaborationModel.Shared(
            identifier: identifier, start: start, title: metadata.title, options: options, createdAt: date,
            since: sequence)
        shared.defaultPermission = metadata.defaultPermission
        shared.began = sequence
        shared.initiatorHandle = metadata.initiatorHandle
        shared.initiatorName = nameOfInitiator(name)
        if let ownerIdentity { try shared.own(ownerIdentity, shared.initiatorName, model, sequence) }
        model.starts[start] = identifier
        model.collaborations[identifier] = shared
        if !model.history.contains(where: { $0.identifier == identifier }) { model.history.append((identifier, start)) }
        return prepared(shared, isNew: true, sequence: sequence)
    }

    fileprivate func prepared(_ shared: CollaborationModel.Shared, isNew: Bool, sequence: UInt64?) -> Answer {
        Answer(
            collaborationIdentifier: shared.identifier, url: CollaborationModel.link(shared.identifier), isNew: isNew,
            highlight: shared.highlight, selectedOptions: OptionsModel.selected(shared.options),
            permission: shared.permission, sequence: sequence)
    }

    private func chosen(_ model: CollaborationModel, _ options: ShareOptions) throws(ServiceError) -> ShareOptions {
        try model.checkCount(options.groups.count, 16)
        try model.checkCount(OptionsModel.options(options).count, 64)
        var options = options
        if let selectedOptions {
            guard let chosen = OptionsModel.selecting(selectedOptions, of: options) else {
                throw model.refusal(.unknownOption)
            }
            options = chosen
        }
        if let code = OptionsModel.refusal(of: options) { throw model.refusal(code) }
        return options
    }

    /// The content is shared already.
    private func expected(
        _ model: inout CollaborationModel, sharedAgain known: CollaborationIdentifier, name: String?
    ) throws(ServiceError) -> Answer {
        var shared = try model.shared(known)
        if model.isRepeating, let told = model.told {
            return prepared(shared, isNew: told == shared.began, sequence: told >= shared.began ? told : nil)
        }
        let before = shared
        if selectedOptions != nil || metadata.userSelectedShareOptions != nil {
            shared.options = try chosen(
                model, metadata.userSelectedShareOptions ?? metadata.defaultShareOptions ?? shared.options)
            if OptionsModel.permission(shared.options) == nil,
                metadata.defaultPermission ?? shared.permission != shared.permission
            {
                throw model.refusal(.collaborationExists)
            }
        }
        let claims = ownerIdentity != nil && shared.ownerIdentity == nil
        guard ownerIdentity == nil || claims || ownerIdentity == shared.ownerIdentity else {
            throw model.refusal(.notPermitted)
        }
        if claims, let ownerIdentity, !shared.mayOwn(ownerIdentity) { throw model.refusal(.notPermitted) }
        guard claims || shared.options != before.options else {
            return prepared(shared, isNew: false, sequence: model.commit())
        }
        let sequence = model.commit()
        if shared.permission != before.permission { shared.since = sequence }
        if claims, let ownerIdentity { try shared.own(ownerIdentity, name ?? shared.initiatorName, model, sequence) }
        model.collaborations[known] = shared
        return prepared(shared, isNew: false, sequence: sequence)
    }
}

extension PrepareCollaborationAs: ModelledRequest {
    static func kinds(_ answer: Answer) -> [String] { ["new"] }

    static func sequence(_ answer: Answer) -> UInt64? { answer.sequence }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        let request = PrepareCollaboration(
            owner: owner, metadata: metadata, selectedOptions: selectedOptions, ownerName: ownerName)
        let name = try request.checkedName(model)
        let start = CollaborationModel.Start(owner: owner, local: metadata.localIdentifier)
        if let shared = model.collaborations[collaboration] {
            guard model.isRepeating, model.told == shared.began, shared.start == start else {
                // What was started by the first request has ended, and another start has its identifier.
                throw model.refusal(model.isRepeating ? .mutationConflict : .collaborationExists)
            }
            return request.prepared(shared, isNew: true, sequence: shared.began)
        }
        guard model.starts[start] == nil else { throw model.refusal(.notPermitted) }
        return try request.started(collaboration, at: min(creationDate ?? model.now, model.now), name, &model)
    }
}

extension CollaborationModel.Shared {
    /// Whether the owner's account may claim that identity: it is and was no other account's.
    fileprivate func mayOwn(_ person: PersonIdentity) -> Bool {
        guard let member = members[person] else { return true }
        return [member.account, member.accepter, member.formerAccount].allSatisfy { ($0 ?? start.owner) == start.owner }
    }

    /// Makes a person the owner.
    fileprivate mutating func own(
        _ person: PersonIdentity, _ name: String?, _ model: CollaborationModel, _ sequence: UInt64
    ) throws(ServiceError) {
        ownerIdentity = person
        guard var member = members[person], member.removedAt == nil else {
            let owner = NewParticipant(person, displayName: name, role: .owner, permission: .readWrite)
            return letIn(owner, at: model.now, sequence)
        }
        if let name, name != "" { member.name = name }
        (member.role, member.permission, member.since) = (.owner, .readWrite, sequence)
        members[person] = member
    }
}

extension ClaimOwnership: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkText(displayName)
        var shared = try model.shared(collaboration)
        guard shared.start.owner == owner, shared.ownerIdentity ?? identity == identity else {
            throw model.refusal(.notPermitted)
        }
        guard shared.ownerIdentity == nil else { return model.remember() }
        guard shared.mayOwn(identity) else { throw model.refusal(.notPermitted) }
        let sequence = model.commit()
        try shared.own(identity, displayName ?? shared.initiatorName, model, sequence)
        model.collaborations[collaboration] = shared
        return ChangeReceipt(sequence: sequence, changed: 1)
    }
}

extension TransferOwnership: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        if let localIdentifier { try model.checkName(localIdentifier.rawValue) }
        var shared = try model.shared(collaboration)
        guard shared.start.owner == owner else { throw model.refusal(.notPermitted) }
        let member = try model.member(identity, of: collaboration)
        guard member.role != .owner, member.joinedAt != nil, let account = member.account,
            shared.roots.contains(identity.rootHash)
        else { throw model.refusal(.notPermitted) }
        let start = CollaborationModel.Start(owner: account, local: localIdentifier ?? shared.start.local)
        guard start == shared.start || model.starts[start] == nil else { throw model.refusal(.notPermitted) }
        let sequence = model.commit()
        if let former = shared.ownerIdentity {
            shared.members[former]?.role = .member
            shared.members[former]?.since = sequence
            shared.members[former]?.accepter = owner
            model.accepted[owner, default: []].insert(collaboration)
            model.acceptedAs[owner, default: [:]][collaboration, default: []].insert(former)
        }
        shared.members[identity]?.role = .owner
        shared.members[identity]?.permission = .readWrite
        shared.members[identity]?.since = sequence
        shared.ownerIdentity = identity
        shared.initiator = shared.initiator ?? owner
        if start != shared.start {
            model.starts[shared.start] = nil
            model.starts[start] = collaboration
            shared.start = start
            shared.began = sequence
        }
        model.collaborations[collaboration] = shared
        return ChangeReceipt(sequence: sequence, changed: 1)
    }
}

extension AbandonCollaboration: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkName(localIdentifier.rawValue)
        let start = CollaborationModel.Start(owner: owner, local: localIdentifier)
        guard let known = model.starts[start] else { return model.remember() }
        let others = try model.shared(known).members.values.filter { $0.removedAt == nil && $0.role != .owner }
        guard others.isEmpty else { throw model.refusal(.notPermitted) }
        return model.end(known)
    }
}

extension StopSharing: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        _ = try model.shared(collaboration)
        _ = try model.manager(grant, .stopSharing, in: collaboration)
        return model.end(collaboration)
    }
}

extension FindHighlight: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        if let collaboration { return try model.shared(collaboration).highlight }
        try model.checkLink(url)
        let found = model.collaborations.values.first { shared in
            url.map { CollaborationModel.leads($0, to: shared.identifier) } ?? false
        }
        guard let found else { throw model.refusal(.unknownCollaboration) }
        return found.highlight
    }
}

extension UpdateShareOptions: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        guard selectedOptions != nil || shareOptions != nil || givenSummary != nil else {
            throw model.refusal(.malformedRequest)
        }
        try model.checkText(givenSummary)
        if let shareOptions {
            try model.checkCount(shareOptions.groups.count, 16)
            try model.checkCount(OptionsModel.options(shareOptions).count, 64)
        }
        let before = try model.shared(collaboration)
        let bearer = try model.manager(grant, .changeOptions, in: collaboration)
        var options = shareOptions ?? before.options
        if let selectedOptions {
            guard let chosen = OptionsModel.selecting(selectedOptions, of: options) else {
                throw model.refusal(.unknownOption)
            }
            options = chosen
        }
        if let code = OptionsModel.refusal(of: options) { throw model.refusal(code) }
        if let givenSummary { options.givenSummary = givenSummary }
        if options.givenSummary == "" { options.givenSummary = nil }
        var after = before
        after.options = options
        if after.permission != before.permission {
            try model.checkGiving(bearer, role: nil, permission: after.permission)
        }
        guard options != before.options else { return model.remember() }
        let sequence = model.commit()
        if after.permission != before.permission { after.since = sequence }
        model.collaborations[collaboration] = after
        return ChangeReceipt(sequence: sequence, changed: 1)
    }
}

// MARK: - Participants

extension AddParticipants: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkCount(participants.count, 400)
        _ = try model.shared(collaboration)
        let bearer = try model.manager(grant, .addParticipants, in: collaboration)
        let fresh = try model.newcomers(participants, to: collaboration, bearer)
        if participants.isEmpty { return model.remember() }
        let sequence = model.commit()
        for participant in fresh {
            model.collaborations[collaboration]?.letIn(participant, at: model.now, sequence, by: bearer?.person)
        }
        return ChangeReceipt(sequence: sequence, changed: fresh.count)
    }
}

extension CollaborationModel {
    /// Those who take no part yet.
    fileprivate func newcomers(
        _ participants: [NewParticipant], to collaboration: CollaborationIdentifier, _ bearer: Bearer?
    ) throws(ServiceError) -> [NewParticipant] {
        let shared = try shared(collaboration)
        var fresh: [NewParticipant] = []
        for (index, participant) in participants.enumerated() {
            if let first = participants[..<index].first(where: { $0.identity == participant.identity }) {
                guard first == participant else { throw refusal(.malformedRequest) }
                continue
            }
            guard participant.role != .owner else { throw refusal(.notPermitted) }
            try checkText(participant.displayName)
            try checkGiving(
                bearer, role: participant.role, permission: participant.permission ?? shared.permission)
            if let known = shared.members[participant.identity], known.removedAt == nil { continue }
            fresh.append(participant)
        }
        return fresh
    }

    /// Root hashes among the people's that are in the set without a participant.
    fileprivate func bareRoots(
        _ people: [PersonIdentity], in collaboration: CollaborationIdentifier, _ bearer: Bearer?
    ) throws(ServiceError) -> Set<Digest> {
        let shared = try shared(collaboration)
        let absent = people.filter { shared.members[$0].map { $0.removedAt != nil } ?? true }
        let bare = shared.strangers.intersection(absent.map(\.rootHash))
        if bearer?.role == .member, absent.contains(where: { bare.contains($0.rootHash) && $0 != bearer?.person }) {
            throw refusal(.notPermitted)
        }
        return bare
    }

    /// Those who take part and may be removed.
    fileprivate func leavers(
        _ people: [PersonIdentity], from collaboration: CollaborationIdentifier, _ bearer: Bearer?
    ) throws(ServiceError) -> Set<PersonIdentity> {
        let shared = try shared(collaboration)
        let present = Set(people).filter { shared.members[$0].map { $0.removedAt == nil } ?? false }
        for person in present {
            guard let role = shared.members[person]?.role, role != .owner else { throw refusal(.notPermitted) }
            guard let bearer, bearer.person != person, bearer.role != .owner else { continue }
            if bearer.role == .member || role == .administrator { throw refusal(.notPermitted) }
        }
        return present
    }

    /// Removes people who take part.
    fileprivate mutating func takeOut(
        _ people: Set<PersonIdentity>, from collaboration: CollaborationIdentifier, among named: [PersonIdentity],
        by remover: PersonIdentity?
    ) throws(ServiceError) {
        let shared = try shared(collaboration)
        for person in people {
            guard var member = shared.members[person] else { continue }
            // An account loses the share when it takes part as nobody else.
            for account in Set([member.account, member.accepter].compactMap { $0 }) {
                let others = shared.members.filter { $0.value.account == account && !named.contains($0.key) }
                acceptedAs[account]?[collaboration]?.subtract(named)
                let isLeft = others.isEmpty && acceptedAs[account]?[collaboration]?.isEmpty ?? true
                if isLeft { accepted[account]?.remove(collaboration) }
            }
            member.removedAt = now
            member.removedBy = remover
            member.formerAccount = member.account ?? member.accepter ?? member.formerAccount
            (member.joinedAt, member.account, member.accepter, member.cleared) = (nil, nil, nil, 0)
            collaborations[collaboration]?.members[person] = member
            collaborations[collaboration]?.strangers.remove(person.rootHash)
        }
    }

    /// Those among the people who took part once and take no part now.
    fileprivate func gone(
        _ people: [PersonIdentity], from collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> [RemovedParticipant] {
        let members = try shared(collaboration).members
        var gone: [RemovedParticipant] = []
        for person in people where !gone.contains(where: { $0.identity == person }) {
            guard let member = members[person], member.removedAt != nil else { continue }
            gone.append(RemovedParticipant(identity: person, account: member.formerAccount))
        }
        return gone
    }
}

extension RemoveParticipants: ModelledRequest {
    static func sequence(_ answer: MembershipReceipt) -> UInt64? { answer.sequence }
    static func kinds(_ answer: MembershipReceipt) -> [String] {
        [answer.changed == 0 ? "remembered" : "changed"] + (answer.changed > answer.removed.count ? ["bare root"] : [])
    }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try UpdateParticipants(of: collaboration, removing: participants, by: grant).expected(&model, answer)
    }
}

extension UpdateParticipants: ModelledRequest {
    static func sequence(_ answer: MembershipReceipt) -> UInt64? { answer.sequence }
    static func kinds(_ answer: MembershipReceipt) -> [String] {
        [answer.sequence == nil ? "nothing" : answer.changed == 0 ? "remembered" : "changed"]
    }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkCount(added.count + removed.count, 400)
        guard Set(added.map(\.identity)).isDisjoint(with: removed) else { throw model.refusal(.malformedRequest) }
        _ = try model.shared(collaboration)
        if model.isRepeating, let told = model.told {
            return Answer(sequence: told, changed: 0, removed: try model.gone(removed, from: collaboration))
        }
        let bearer = try model.manager(grant, added.isEmpty ? nil : .addParticipants, in: collaboration)
        let leaving = try model.leavers(removed, from: collaboration, bearer)
        let bare = try model.bareRoots(removed, in: collaboration, bearer)
        let fresh = try model.newcomers(added, to: collaboration, bearer)
        guard !leaving.isEmpty || !added.isEmpty || !bare.isEmpty else {
            return Answer(
                sequence: model.commit(), changed: 0, removed: try model.gone(removed, from: collaboration))
        }
        let sequence = model.commit()
        try model.takeOut(leaving, from: collaboration, among: removed, by: bearer?.person)
        model.collaborations[collaboration]?.strangers.subtract(bare)
        for participant in fresh {
            model.collaborations[collaboration]?.letIn(participant, at: model.now, sequence, by: bearer?.person)
        }
        return Answer(
            sequence: sequence, changed: leaving.count + bare.count + fresh.count,
            removed: try model.gone(removed, from: collaboration))
    }
}

extension UpdateParticipant: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkText(participant.displayName.value)
        _ = try model.shared(collaboration)
        let bearer = try model.manager(grant, .changeParticipants, in: collaboration)
        let before = try model.member(participant.identity, of: collaboration)
        var member = before
        member.name = CollaborationModel.patched(before.name, participant.displayName)
        member.role = participant.role ?? before.role
        member.permission = CollaborationModel.patched(before.permission, participant.permission)
        guard (member.role == .owner) == (before.role == .owner) else { throw model.refusal(.notPermitted) }
        if before.role == .owner, member.permission != .readWrite { throw model.refusal(.notPermitted) }
        if let bearer, bearer.role != .owner, before.role != .member { throw model.refusal(.notPermitted) }
        let isOtherAccess = member.role != before.role || member.permission != before.permission
        if member.permission != before.permission {
            let byOptions = try model.shared(collaboration).permission
            try model.checkGiving(bearer, role: nil, permission: member.permission ?? byOptions)
        }
        guard isOtherAccess || member.name != before.name else { return model.remember() }
        let sequence = model.commit()
        if isOtherAccess { member.since = sequence }
        model.collaborations[collaboration]?.members[participant.identity] = member
        return ChangeReceipt(sequence: sequence, changed: 1)
    }
}

extension CollaborationModel {
    static func patched<Value>(_ value: Value?, _ patch: Patch<Value>) -> Value? {
        switch patch {
        case .keep: value
        case .clear: nil
        case .set(let new): new
        }
    }
}

extension FindParticipants: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkCount(identities.count, 256)
        let known = try model.shared(collaboration).participants
        var seen: Set<PersonIdentity> = []
        let people = identities.filter { seen.insert($0).inserted }
        return Answer(
            participants: people.compactMap { person in known.first { $0.identity == person } },
            unknown: people.filter { person in !known.contains { $0.identity == person } })
    }
}

extension ListParticipants: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkPage(limit, 256)
        let behind = try model.shared(collaboration).participants.filter { participant in
            guard includesRemoved || participant.state != .removed else { return false }
            return after.map { $0.rootHash < participant.identity.rootHash } ?? true
        }
        return Answer(participants: Array(behind.prefix(limit)), hasMore: behind.count > limit)
    }
}

extension LinkAccount: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        _ = try model.shared(collaboration)
        let member = try model.member(identity, of: collaboration)
        guard member.joinedAt != nil else { throw model.refusal(.notPermitted) }
        if member.role == .owner, let account {
            guard try account == model.shared(collaboration).start.owner else { throw model.refusal(.notPermitted) }
        }
        if let account, let accepter = member.accepter, accepter != account { throw model.refusal(.notPermitted) }
        guard member.account != account else { return model.remember() }
        model.collaborations[collaboration]?.members[identity]?.account = account
        return ChangeReceipt(sequence: model.commit(), changed: 1)
    }
}

// MARK: - Notices

extension PostNotices: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkCount(events.count, 64)
        let bearer = try model.bearer(of: grant, in: collaboration)
        let (author, permission) = (bearer.person, bearer.permission)
        guard !events.isEmpty else { return model.remember() }
        let shared = try model.shared(collaboration)
        for event in events {
            switch event.kind {
            case .change(trigger: .comment) where OptionsModel.allows(.comment, shared.options) == false,
                .mention where OptionsModel.allows(.mention, shared.options) == false:
                throw model.refusal(.notPermitted)
            default: break
            }
            let needsWriting =
                switch event.kind {
                case .change(trigger: .edit), .persistence: true
                case .change(trigger: .comment), .membership, .mention: false
                }
            if needsWriting, permission != .readWrite { throw model.refusal(.notPermitted) }
            if let link = event.link {
                try model.checkLink(link)
                guard CollaborationModel.leads(link, to: collaboration) else { throw model.refusal(.notPermitted) }
            }
            switch event.kind {
            case .mention(let person): _ = try model.member(person, of: collaboration)
            case .membership(trigger: .addedCollaborator, let person?) where person != author:
                let member = try model.member(person, of: collaboration)
                let mayAdd = model.operations(of: bearer.role, in: shared).contains(.addParticipants)
                let hasAdded = member.addedBy == nil ? mayAdd : member.addedBy == author
                if member.role == .owner || !hasAdded { throw model.refusal(.notPermitted) }
            case .membership(trigger: .removedCollaborator, let person?) where person != author:
                guard let member = shared.members[person] else { throw model.refusal(.unknownParticipant) }
                let hasRemoved = member.removedBy == nil ? bearer.role != .member : member.removedBy == author
                if member.removedAt == nil || !hasRemoved { throw model.refusal(.notPermitted) }
            case .membership, .change, .persistence: break
            }
        }
        // The names are those of now, whatever they are when somebody reads it.
        let told = events.map { event in
            (
                event, model.told(event, by: author, in: shared, toNamed: true),
                model.told(event, by: author, in: shared, toNamed: false)
            )
        }
        let sequence = model.commit()
        model.collaborations[collaboration]?.posts.append(
            CollaborationModel.Post(sequence: sequence, author: author, date: model.now, events: told))
        return ChangeReceipt(sequence: sequence, changed: events.count)
    }
}

extension ReadNotices: ModelledRequest {
    static func kinds(_ answer: Answer) -> [String] {
        [answer.notices.isEmpty ? "empty" : "answered"] + (answer.hasMore ? ["more"] : [])
    }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkPage(limit, 256)
        try model.checkRange(waitMilliseconds, 60_000)
        try model.checkLanguage(language)
        try model.checkSequence(max(after, atLeast ?? 0))
        let (notices, end) = try model.notices(feed, after: after, limit: limit, language: language)
        return NoticePage(notices: notices, next: end ?? model.sequence, hasMore: end != nil)
    }
}

extension ClearNotices: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        let person = try model.bearer(of: grant, in: collaboration).person
        model.collaborations[collaboration]?.members[person]?.cleared = model.sequence
        return ChangeReceipt(sequence: model.commit(), changed: 1)
    }
}

/// The error of a walk over pages that would never end.
private let standstill = ServiceError(.malformedAnswer, "the next page begins where this one does")

/// A whole feed, page by page.
struct WalkFeed: ModelOperation {
    static let name = "walkFeed"
    static func kinds(_ answer: [Notice]) -> [String] { [answer.isEmpty ? "empty" : "answered"] }

    let feed: Feed
    let limit: Int

    func send(
        _ client: RootgateClient, _ identifier: MutationIdentifier
    ) async throws(ServiceError) -> [Notice] {
        var notices: [Notice] = []
        var after: UInt64 = 0
        while true {
            let page = try await client.send(ReadNotices(feed, after: after, limit: limit))
            notices += page.notices
            if !page.hasMore { return notices }
            guard page.next > after else { throw standstill }
            after = page.next
        }
    }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> [Notice] {
        try model.notices(feed, after: 0, limit: .max).notices
    }
}

// MARK: - Shelves

extension CollaborationModel {
    /// The app of a request about a shelf; `nil` for every app.
    fileprivate func app(_ app: String?, _ everyApp: Bool?) throws(ServiceError) -> String? {
        guard (app == nil) == (everyApp == true) else { throw refusal(.malformedRequest) }
        if let app { try checkName(app) }
        return app
    }
}

extension RecordShare: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkCount(recipients.count, 128)
        try model.checkLink(url)
        for text in [title, subtitle, sharer.name, conversation.name] { try model.checkText(text) }
        try model.checkText(sharer.avatar)
        try model.checkName(conversation.identifier)
        try model.checkName(app)
        let link = url.absoluteString
        if model.isGone(link) { throw model.refusal(.unknownCollaboration) }
        switch thumbnail {
        case .image(let bytes, let type)?:
            try model.checkCount(bytes.count, 65_536)
            let isPicture = type == .png && bytes.starts(with: [137, 80, 78, 71, 13, 10, 26, 10])
            if !isPicture { throw model.refusal(.malformedRequest) }
        case .link(let url)?: if url.scheme != "https" { throw model.refusal(.malformedRequest) }
        case nil: break
        }
        let date = date ?? model.now
        var later: [(recipient: ShareRecipient, before: CollaborationModel.Share?)] = []
        for (index, recipient) in recipients.enumerated() {
            if let first = recipients[..<index].first(where: { $0.account == recipient.account }) {
                guard first == recipient else { throw model.refusal(.malformedRequest) }
                continue
            }
            let before = model.shelves[recipient.account]?.shares[link]?[conversation.identifier]
            // The latest share of a conversation counts.
            if let before, before.date > date { continue }
            later.append((recipient, before))
        }
        guard !later.isEmpty else { return model.remember() }
        let sequence = model.commit()
        for (recipient, before) in later {
            let share = CollaborationModel.Share(
                url: url, title: title, subtitle: subtitle, thumbnail: thumbnail, app: app, sharer: sharer,
                conversation: conversation, date: date, isPinned: before?.isPinned == true && before?.app == app,
                knowsSomebody: recipient.knowsSomebody)
            model.shelves[recipient.account, default: .init()].shares[link, default: [:]][conversation.identifier] =
                share
            model.shelves[recipient.account]?.version = sequence
        }
        for identifier in model.collaborations.keys
        where CollaborationModel.link(identifier).absoluteString == link {
            model.collaborations[identifier]?.shelves.formUnion(later.map(\.recipient.account))
        }
        return ChangeReceipt(sequence: sequence, changed: later.count)
    }
}

extension ReadShelf: ModelledRequest {
    static func kinds(_ answer: Answer) -> [String] {
        ["answered"] + (answer.highlights.first?.isSuggested == true ? ["suggestion"] : [])
            + (answer.highlights.contains { $0.isPinned } ? ["pinned"] : [])
            + (answer.highlights.contains { $0.thumbnail != nil } ? ["thumbnail"] : [])
            + (answer.highlights.contains { $0.attributions.count == 8 } ? ["all attributions"] : [])
    }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkPage(limit, 64)
        try model.checkRange(offset, 1_048_576)
        try model.checkRange(waitMilliseconds, 60_000)
        let app = try model.app(app, everyApp)
        let (links, hasSuggestion) = model.ranking(of: account, for: app)
        var highlights: [Highlight] = []
        for (place, link) in links.enumerated().dropFirst(offset ?? 0).prefix(limit) {
            let told = answer.flatMap { $0.highlights.count > highlights.count ? $0.highlights[highlights.count] : nil }
            let highlight = model.highlight(
                link, of: account, for: app, isSuggested: hasSuggestion && place == 0, told: told?.attributions)
            if let highlight { highlights.append(highlight) }
        }
        return Shelf(highlights: highlights, count: links.count, version: model.shelves[account]?.version ?? 0)
    }
}

extension ReadThumbnail: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkLink(url)
        let app = try model.app(app, everyApp)
        for share in model.visible(url.absoluteString, of: account, for: app) {
            if case .image(let bytes, let type)? = share.thumbnail, SHA256.hash(bytes) == hash {
                return StoredImage(bytes: bytes, type: type)
            }
        }
        throw model.refusal(.unknownHighlight)
    }
}

extension PinHighlight: ModelledRequest {
    static func sequence(_ answer: Answer) -> UInt64? { answer.receipt.sequence }
    static func kinds(_ answer: Answer) -> [String] { [answer.offersAutomaticSharing ? "offers" : "answered"] }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        let app = try model.app(app, everyApp)
        if conversation != nil, app != nil { throw model.refusal(.malformedRequest) }
        let link = url.absoluteString
        let shelf = model.shelves[account] ?? .init()
        let all: [CollaborationModel.Share] =
            app == nil
            ? (shelf.shares[link] ?? [:]).values.filter { $0.counts || !isPinned }
            : model.visible(link, of: account, for: app)
        let shares = all.filter { conversation == nil || $0.conversation.identifier == conversation }
            .sorted { $0.date > $1.date }
        let isUnknown = shares.isEmpty || shelf.signals[link]?.isHidden == true || isPinned && model.isGone(link)
        if isUnknown { throw model.refusal(.unknownHighlight) }
        let offered = isPinned ? shares.map(\.app).first { shelf.wouldGain(from: $0) } : nil
        let level = offered.map { ConsentLevel.app($0) }
        let changed = shares.filter { $0.isPinned != isPinned }
        var receipt: ChangeReceipt
        if changed.isEmpty {
            receipt = model.isRepeating ? ChangeReceipt(sequence: model.told, changed: 0) : model.remember()
        } else {
            receipt = ChangeReceipt(sequence: model.commit(), changed: changed.count)
            for share in changed {
                model.shelves[account]?.shares[link]?[share.conversation.identifier]?.isPinned = isPinned
            }
            model.shelves[account]?.version = receipt.sequence ?? 0
        }
        return Answer(receipt: receipt, offersAutomaticSharing: level != nil, offeredLevel: level)
    }
}

extension CollaborationModel {
    /// Notes something that a person did with an item.
    fileprivate mutating func note(
        _ url: URL, of account: Account, _ change: (inout Signals) -> Void
    ) -> ChangeReceipt {
        let sequence = commit()
        change(&shelves[account, default: .init()].signals[url.absoluteString, default: .init()])
        shelves[account]?.version = sequence
        return ChangeReceipt(sequence: sequence, changed: 1)
    }
}

extension RemoveHighlight: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        let app = try model.app(app, everyApp)
        let link = url.absoluteString
        let isHidden = model.shelves[account]?.signals[link]?.isHidden == true
        let isKnown =
            app == nil
            ? model.shelves[account]?.shares[link]?.isEmpty == false
            : !model.visible(link, of: account, for: app, withHidden: true, withGone: isHidden).isEmpty
        guard isKnown else { throw model.refusal(.unknownHighlight) }
        if isHidden { return model.remember() }
        return model.note(url, of: account) { $0.isHidden = true }
    }
}

extension SignalHighlight: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        let app = try model.app(app, everyApp)
        if model.visible(url.absoluteString, of: account, for: app).isEmpty { throw model.refusal(.unknownHighlight) }
        let now = model.milliseconds
        return model.note(url, of: account) { signals in
            signals.age(until: now)
            switch signal {
            case .viewed: signals.interest += 131_072
            case .interacted: signals.interest += 262_144
            case .shown: signals.shown = min(262_144, signals.shown + (context == .detail ? 131_072 : 65_536))
            }
            if signal != .shown { signals.lastUse = now }
        }
    }
}

extension SetConsent: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        if !everyApp { throw model.refusal(.malformedRequest) }
        let before = model.shelves[account] ?? .init()
        var shelf = before
        switch level {
        case .everything: shelf.everything = isAllowed.value
        case .app(let app):
            try model.checkName(app)
            shelf.apps[app] = isAllowed.value
        case .conversation(let conversation):
            try model.checkName(conversation)
            shelf.conversations[conversation] = isAllowed.value
        }
        guard
            (shelf.everything, shelf.apps, shelf.conversations)
                != (before.everything, before.apps, before.conversations)
        else { return model.remember() }
        let sequence = model.commit()
        // Without one, only consent that is given begins a shelf.
        if before.version > 0 || isAllowed.value == true { shelf.version = sequence }
        model.shelves[account] = shelf
        return ChangeReceipt(sequence: sequence, changed: 1)
    }
}

extension ReadConsent: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        if !everyApp { throw model.refusal(.malformedRequest) }
        var consent = Consent()
        guard let shelf = model.shelves[account] else { return consent }
        (consent.everything, consent.apps, consent.conversations) = (shelf.everything, shelf.apps, shelf.conversations)
        return consent
    }
}

extension ReadAttribution: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkText(removeTitle)
        try model.checkLink(url)
        try model.checkLanguage(language)
        let isGerman = language.map { $0.lowercased().split(separator: "-").first == "de" } ?? false
        if let removeTitle {
            let forms = isGerman ? ["entfernen", "entferne", "entfernt"] : ["remove"]
            let words = removeTitle.lowercased().components(separatedBy: CharacterSet.letters.inverted)
            guard forms.contains(where: { words.contains($0) }) else {
                throw model.refusal(.malformedRequest)
            }
        }
        let app = try model.app(app, everyApp)
        let link = url.absoluteString
        let told = answer?.attributions
        guard let item = model.highlight(link, of: account, for: app, isSuggested: false, told: told) else {
            throw model.refusal(.unknownHighlight)
        }
        // All people who shared it count, even those whose attribution is not in the answer.
        var names: [String] = []
        for share in model.visible(link, of: account, for: app) where !names.contains(share.sharer.name) {
            names.append(share.sharer.name)
        }
        let (from, and, others, reply) =
            isGerman ? ("Von", "und", "weiteren", "Antwort an") : ("From", "and", "others", "Reply to")
        let rest =
            names.count == 1
            ? "" : names.count == 2 ? " \(and) \(names[1])" : " \(and) \(names.count - 1) \(others)"
        var menu = item.attributions.map { attribution in
            let name = attribution.conversation?.name ?? attribution.sharer?.name
            let plain = isGerman ? "Antworten" : "Reply"
            return AttributionDetails.MenuAction(
                kind: .reply, title: name.map { "\(reply) \($0)" } ?? plain, handle: attribution.handle,
                conversation: attribution.conversation?.identifier)
        }
        menu.append(
            .init(
                kind: .remove, title: removeTitle ?? (isGerman ? "Entfernen" : "Remove"), handle: nil,
                conversation: nil))
        return AttributionDetails(
            url: url, summary: app == nil ? "\(from) \(names.first ?? "")\(rest)" : nil, isPinned: item.isPinned,
            attributions: item.attributions, menu: menu)
    }
}

// MARK: - Details

extension ReadDetails: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkLanguage(language)
        let isGerman = language.map { $0.lowercased().split(separator: "-").first == "de" } ?? false
        let shared = try model.shared(collaboration)
        let role = try viewer.map { viewer throws(ServiceError) in
            try model.member(viewer, of: collaboration).role
        }
        let operations = model.operations(of: role ?? .owner, in: shared)
        let present = shared.participants.filter { $0.state != .removed }
        let feed: Feed = viewer.map { .participant($0, of: collaboration) } ?? .collaboration(collaboration)
        return CollaborationDetails(
            highlight: shared.highlight, shareOptions: shared.options, participants: Array(present.prefix(100)),
            participantCount: present.count,
            recentActivity: try model.notices(
                feed, after: 0, limit: .max, language: language, ignoresClearing: true
            ).notices.suffix(20).reversed(),
            customItems: shared.customItems,
            manageButtonTitle: shared.manageButtonTitle
                ?? (isGerman ? "Geteilte Datei verwalten" : "Manage Shared File"),
            manageOperations: operations)
    }
}

extension CustomizeDetails: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkText(title.value)
        try model.checkText(manageButtonTitle.value)
        if manageButtonTitle == .set("") { throw model.refusal(.malformedRequest) }
        try model.checkCount(customItems.value?.count ?? 0, 32)
        var seen: Set<String> = []
        for item in customItems.value ?? [] {
            guard seen.insert(item.identifier).inserted else { throw model.refusal(.malformedRequest) }
            try model.checkName(item.identifier)
            try model.checkText(item.title)
            try model.checkText(item.subtitle)
            try model.checkLink(item.url)
        }
        var shared = try model.shared(collaboration)
        let before = shared
        shared.title = CollaborationModel.patched(shared.title, title)
        shared.customItems = CollaborationModel.patched(shared.customItems, customItems) ?? []
        shared.manageButtonTitle = CollaborationModel.patched(shared.manageButtonTitle, manageButtonTitle)
        guard
            shared.title != before.title || shared.customItems != before.customItems
                || shared.manageButtonTitle != before.manageButtonTitle
        else { return model.remember() }
        model.collaborations[collaboration] = shared
        return ChangeReceipt(sequence: model.commit(), changed: 1)
    }
}

// MARK: - Invitations and shares

extension CreateInvitation: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        guard role != .owner else { throw model.refusal(.notPermitted) }
        if let inviter {
            if inviter == Inviter() { throw model.refusal(.malformedRequest) }
            try model.checkText(inviter.name)
            try model.checkText(inviter.handle)
        }
        let shared = try model.shared(collaboration)
        var invite = CollaborationModel.Invite(
            role: role ?? .member, permission: permission, createdAt: model.now, expiresAt: expiresAt)
        invite.inviter = inviter(in: shared)
        if let place = model.places[token] {
            guard place == collaboration, let known = shared.invites[token] else { throw model.refusal(.notPermitted) }
            let isSame =
                invite.role == known.role && permission == known.permission && expiresAt == known.expiresAt
                && invite.inviter == known.inviter
            guard isSame || model.isRepeating else { throw model.refusal(.notPermitted) }
            if !model.isRepeating { _ = model.commit() }
            return model.invitation(token, known, collaboration)
        }
        if OptionsModel.allows(.joinByInvitation, shared.options) == false { throw model.refusal(.notPermitted) }
        if let expiresAt, expiresAt <= model.expiryTime { throw model.refusal(.malformedRequest) }
        _ = model.commit()
        model.places[token] = collaboration
        model.collaborations[collaboration]?.invites[token] = invite
        return model.invitation(token, invite, collaboration)
    }

    /// Who invites, as far as the collaboration knows it.
    private func inviter(in shared: CollaborationModel.Shared) -> Inviter? {
        let owner = shared.start.owner
        if let inviter, inviter.account == nil || inviter.name != nil || inviter.handle != nil { return inviter }
        let account = inviter?.account ?? owner
        var known = Inviter(account: inviter?.account)
        if account == shared.initiator ?? owner {
            (known.name, known.handle) = (shared.initiatorName, shared.initiatorHandle)
        } else if account == owner {
            known.name = shared.ownerIdentity.flatMap { shared.members[$0]?.name }
        } else {
            let identities = shared.members.filter { $0.value.account == account }
            known.name = identities.min { $0.key.rootHash < $1.key.rootHash }?.value.name
        }
        return known == Inviter() ? nil : known
    }
}

extension ReadInvitation: ModelledRequest {
    static func kinds(_ answer: Answer) -> [String] { [answer.refusal?.rawValue ?? answer.state?.rawValue ?? ""] }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        guard let place = model.places[token], let shared = model.collaborations[place],
            let invite = shared.invites[token]
        else { return .refused(token, .unknown) }
        switch model.state(of: invite) {
        case .revoked: return .refused(token, .revoked)
        case .expired: return .refused(token, .expired)
        case .completed:
            guard shared.takesPart(by: invite) else { return .refused(token, .conflict) }
            return InvitationPreview(
                token, state: .completed, title: shared.title, inviter: invite.inviter, role: nil, permission: nil,
                expiresAt: nil)
        case .pending, .accepted:
            if OptionsModel.allows(.joinByInvitation, shared.options) == false { return .refused(token, .closed) }
            return InvitationPreview(
                token, state: model.state(of: invite), title: shared.title, inviter: invite.inviter,
                role: invite.role, permission: invite.permission ?? shared.permission,
                expiresAt: invite.expiresAt)
        }
    }
}

extension AcceptInvitation: ModelledRequest {
    static func kinds(_ answer: Answer) -> [String] { [answer.refusal?.rawValue ?? answer.state?.rawValue ?? ""] }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkText(displayName)
        func refused(_ refusal: Acceptance.Refusal) -> Acceptance { .refused(token, refusal) }
        guard let place = model.places[token], let shared = model.collaborations[place],
            var invite = shared.invites[token]
        else { return refused(.unknown) }
        switch model.state(of: invite) {
        case .revoked: return refused(.revoked)
        case .expired: return refused(.expired)
        case .accepted, .completed: if invite.acceptedBy != account { return refused(.used) }
        case .pending: break
        }
        if let completed = invite.identity {
            guard shared.takesPart(by: invite), identity ?? completed == completed else { return refused(.conflict) }
            if !model.isRepeating { _ = model.commit() }
            return .takesPart(token, shared.highlight)
        }
        if OptionsModel.allows(.joinByInvitation, shared.options) == false { return refused(.closed) }
        guard let identity else {
            guard invite.acceptedBy == nil else {
                if !model.isRepeating { _ = model.commit() }
                return .accepted(token, place)
            }
            (invite.acceptedBy, invite.acceptedAt) = (account, model.now)
            _ = model.commit()
            model.collaborations[place]?.invites[token] = invite
            return .accepted(token, place)
        }
        if let known = shared.members[identity] {
            let isOthers = [known.account, known.accepter, known.formerAccount].contains { $0 ?? account != account }
            let isOthersOwn = known.role == .owner && account != shared.start.owner
            if known.removedAt != nil || isOthers || isOthersOwn { return refused(.conflict) }
        }
        let sequence = model.commit()
        (invite.acceptedBy, invite.acceptedAt) = (account, invite.acceptedAt ?? model.now)
        (invite.identity, invite.completedAt) = (identity, model.now)
        model.collaborations[place]?.invites[token] = invite
        model.accepted[account, default: []].insert(place)
        model.acceptedAs[account, default: [:]][place, default: []].insert(identity)
        if shared.members[identity] == nil {
            model.collaborations[place]?.letIn(
                NewParticipant(
                    identity, displayName: displayName, role: invite.role, permission: invite.permission),
                at: model.now, sequence)
        }
        model.collaborations[place]?.members[identity]?.accepter = account
        return .takesPart(token, shared.highlight)
    }
}

extension WithdrawAcceptance: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        guard let place = model.places[token], var invite = model.collaborations[place]?.invites[token] else {
            throw model.refusal(.unknownInvitation)
        }
        guard let accepter = invite.acceptedBy else { return model.remember() }
        guard accepter == account, invite.identity == nil else { throw model.refusal(.notPermitted) }
        (invite.acceptedBy, invite.acceptedAt) = (nil, nil)
        model.collaborations[place]?.invites[token] = invite
        return ChangeReceipt(sequence: model.commit(), changed: 1)
    }
}

extension ListInvitations: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkPage(limit, 256)
        let shared = try model.shared(collaboration)
        var start: [UInt8] = []
        if let after {
            // Invalid identifiers are too long or too short in this test.
            guard after.utf8.count == 32 else { throw model.refusal(.malformedRequest) }
            let known = shared.invites.keys.first { CollaborationModel.identifier(of: $0) == after }
            start = known.map { CollaborationModel.name(of: $0) } ?? []
        }
        let behind = shared.invites.keys.map { ($0, CollaborationModel.name(of: $0)) }
            .filter { start.lexicographicallyPrecedes($0.1) }
            .sorted { $0.1.lexicographicallyPrecedes($1.1) }
            .compactMap { token, _ in shared.invites[token].map { model.invitation(token, $0, collaboration) } }
            .filter { includesSettled || $0.state == .pending }
        return Answer(invitations: Array(behind.prefix(limit)), hasMore: behind.count > limit)
    }
}

extension RevokeInvitation: ModelledRequest {
    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        guard identifier.utf8.count == 32 else { throw model.refusal(.malformedRequest) }
        let shared = try model.shared(collaboration)
        let known = shared.invites.first { CollaborationModel.identifier(of: $0.key) == identifier }
        guard let (token, invite) = known else { throw model.refusal(.unknownInvitation) }
        guard invite.identity == nil else { throw model.refusal(.notPermitted) }
        guard !invite.isRevoked else { return model.remember() }
        model.collaborations[collaboration]?.invites[token]?.isRevoked = true
        return ChangeReceipt(sequence: model.commit(), changed: 1)
    }
}

extension ListShares: ModelledRequest {
    static func kinds(_ answer: Answer) -> [String] {
        [answer.shares.isEmpty ? "empty" : "answered"] + (answer.next == nil ? [] : ["more"])
    }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> Answer {
        try model.checkPage(limit, 256)
        if let after { try model.checkName(after) }
        var shares: [(name: String, collaboration: CollaborationIdentifier)] = []
        switch scope {
        case .private:
            shares = model.starts.filter { $0.key.owner == account }.map { ($0.key.local.rawValue, $0.value) }
        case .shared: shares = (model.accepted[account] ?? []).map { ($0.description, $0) }
        }
        shares = shares.filter { ($0.name.utf8).isBehind(after?.utf8) }.sorted { $1.name.utf8.isBehind($0.name.utf8) }
        let page = shares.prefix(limit)
        return Answer(
            shares: page.compactMap { share in
                guard let shared = model.collaborations[share.collaboration] else { return nil }
                if scope == .private { return shared.ownersHighlight }
                guard shared.start.owner != account else { return nil }
                // The account takes part as the person who came in, or as one that it is linked to.
                let linked = shared.members.filter { $0.value.account == account }.map(\.key)
                let people = linked + (model.acceptedAs[account]?[share.collaboration] ?? [])
                return people.contains { shared.roots.contains($0.rootHash) } ? shared.highlight : nil
            },
            next: shares.count > limit ? page.last?.name : nil)
    }
}

extension String.UTF8View {
    fileprivate func isBehind(_ other: String.UTF8View?) -> Bool {
        other.map { $0.lexicographicallyPrecedes(self) } ?? true
    }
}

// MARK: - Proofs, grants and sets

/// A device requests access: with `open`, which gives a grant, or with a plain `verify`.
struct RequestAccess: ModelOperation {
    static let name = "requestAccess"
    static func kinds(_ answer: OpenDecision) -> [String] {
        [answer.verdict.name + (answer.grant == nil ? "" : " with a grant")]
    }

    let person: SimulatedPerson
    let device: Int
    /// What the person's keys are made for.
    let place: CollaborationIdentifier
    let identity: PersonIdentity
    let deviceKey: [UInt8]
    let collaboration: CollaborationIdentifier
    let challenge: [UInt8]
    let isSpoiled: Bool
    let wantsGrant: Bool
    var atLeast: UInt64 = 0

    func send(
        _ client: RootgateClient, _ identifier: MutationIdentifier
    ) async throws(ServiceError) -> OpenDecision {
        var proof = try await person.device(device).signedIdentityProof(in: place, signing: challenge)
        if isSpoiled, let last = proof.signature.indices.last { proof.signature[last] ^= 1 }
        if wantsGrant {
            return try await client.open(proof, in: collaboration, wantsOptions: true, atLeast: atLeast)
        }
        return OpenDecision(verdict: try await client.verify(proof, in: collaboration), grant: nil)
    }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> OpenDecision {
        if wantsGrant { try model.checkSequence(atLeast) }
        func refused(_ verdict: Verdict) -> OpenDecision { OpenDecision(verdict: verdict, grant: nil) }
        guard let shared = model.collaborations[collaboration] else { return refused(.unknownCollaboration) }
        guard let known = model.challenges[challenge] else { return refused(.challengeForged) }
        if known.life != model.life { return refused(.challengeElsewhere) }
        if known.age != model.age { return refused(.challengeExpired) }
        if known.isSpent { return refused(.challengeReplayed) }
        guard shared.roots.contains(identity.rootHash) else { return refused(.notParticipant) }
        if isSpoiled { return refused(.badSignature) }
        model.challenges[challenge]?.isSpent = true
        guard wantsGrant, let member = shared.members[identity], member.removedAt == nil else {
            return OpenDecision(verdict: .granted, grant: nil)
        }
        // Only the service can make a grant, and no two people or devices have the same.
        let others = model.grants.filter { $0.person != identity || $0.deviceKey != deviceKey }
        guard let grant = answer?.grant, !others.contains(where: { $0.grant == grant }) else {
            throw model.refusal(.internalFault)
        }
        model.grants.append(
            CollaborationModel.HeldGrant(
                grant: grant, collaboration: collaboration, person: identity, deviceKey: deviceKey,
                permission: member.permission ?? shared.permission, role: member.role,
                sequence: model.sequence, age: model.age))
        if member.joinedAt == nil {
            _ = model.commit()
            model.collaborations[collaboration]?.members[identity]?.joinedAt = model.now
        }
        return OpenDecision(
            verdict: .granted, grant: grant, selectedOptions: OptionsModel.selected(shared.options))
    }
}

/// A client has grants checked, genuine ones and forged ones.
struct CheckGrants: ModelOperation {
    static let name = "checkGrants"
    static func kinds(_ answer: [GrantDecision]) -> [String] { answer.map(\.status.name) }

    struct Showing: Sendable {
        let held: CollaborationModel.HeldGrant
        let isForged: Bool
        let collaboration: CollaborationIdentifier
        let deviceKey: [UInt8]?

        /// The grant as it is shown; `nil` is impossible, as the length is right.
        var grant: AccessGrant {
            var bytes = held.grant.bytes
            if isForged { bytes[bytes.count / 3] ^= 0x40 }
            return AccessGrant(bytes: bytes) ?? held.grant
        }
    }

    let showings: [Showing]
    var atLeast: UInt64 = 0

    /// How long a grant is valid, and how long the leaps of the service's clock are: longer than a test.
    static let validSeconds = 3000
    static let leapSeconds = 2000

    func send(
        _ client: RootgateClient, _ identifier: MutationIdentifier
    ) async throws(ServiceError) -> [GrantDecision] {
        try await client.check(
            showings.map { GrantCheck($0.grant, in: $0.collaboration, deviceKey: $0.deviceKey) }, wantsOptions: true,
            atLeast: atLeast)
    }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> [GrantDecision] {
        try model.checkSequence(atLeast)
        return showings.enumerated().map { index, showing in
            let held = showing.held
            let status = model.status(
                of: held, in: showing.collaboration, deviceKey: showing.deviceKey, isForged: showing.isForged)
            guard status == .valid else {
                return GrantDecision(status: status, permission: nil, role: nil, timeLeft: nil, selectedOptions: nil)
            }
            let most = CheckGrants.validSeconds - CheckGrants.leapSeconds * (model.age - held.age)
            let left = answer.flatMap { $0.indices.contains(index) ? $0[index].timeLeft : nil } ?? .zero
            let isPlausible = left <= .seconds(most) && left > .seconds(most - 900)
            return GrantDecision(
                status: status, permission: held.permission, role: held.role,
                timeLeft: isPlausible ? left : .seconds(most),
                selectedOptions: model.collaborations[showing.collaboration].map { OptionsModel.selected($0.options) })
        }
    }
}

/// Adds root hashes to the set without the layer.
struct AddStrangers: ModelOperation {
    static let name = "addStrangers"

    let roots: [Digest]
    let collaboration: CollaborationIdentifier

    func send(
        _ client: RootgateClient, _ identifier: MutationIdentifier
    ) async throws(ServiceError) -> MutationReceipt {
        try await client.addRoots(roots, to: collaboration)
    }

    static func sequence(_ answer: MutationReceipt) -> UInt64? { answer.sequence }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> MutationReceipt {
        let present = try model.shared(collaboration).roots
        let fresh = Set(roots).subtracting(present)
        model.collaborations[collaboration]?.strangers.formUnion(fresh)
        return MutationReceipt(sequence: model.commit(), changed: UInt64(fresh.count), isRepeat: false)
    }
}

/// The whole set of a collaboration, page by page.
struct WalkRoots: ModelOperation {
    static let name = "walkRoots"

    let collaboration: CollaborationIdentifier
    let limit: Int

    func send(
        _ client: RootgateClient, _ identifier: MutationIdentifier
    ) async throws(ServiceError) -> [Digest] {
        var roots: [Digest] = []
        while true {
            let page = try await client.roots(of: collaboration, after: roots.last, limit: limit)
            if page.hasMore, page.items.isEmpty || page.items.last == roots.last { throw standstill }
            roots += page.items
            if !page.hasMore { return roots }
        }
    }

    func expected(_ model: inout CollaborationModel, _ answer: Answer?) throws(ServiceError) -> [Digest] {
        try model.shared(collaboration).roots.sorted()
    }
}

/// The collaborations that the service knows.
struct WalkCollaborations: ModelOperation {
    static let name = "walkCollaborations"

    func send(
        _ client: RootgateClient, _ identifier: MutationIdentifier
    ) async throws(ServiceError) -> Set<CollaborationState> {
        var all: Set<CollaborationState> = []
        var last: CollaborationIdentifier?
        while true {
            let page = try await client.collaborations(after: last, limit: 5)
            all.formUnion(page.items)
            if !page.hasMore { return all }
            guard let next = page.items.last?.identifier, next != last else { throw standstill }
            last = next
        }
    }

    func expected(
        _ model: inout CollaborationModel, _ answer: Answer?
    ) throws(ServiceError) -> Set<CollaborationState> {
        Set(
            model.collaborations.values.map {
                CollaborationState(identifier: $0.identifier, policy: .challenge, rootCount: UInt64($0.roots.count))
            })
    }
}
