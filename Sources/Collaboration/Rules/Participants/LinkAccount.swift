public import Core
import Foundation

/// Links a participant who has joined to an account, so that the account's feed has the collaboration's notices. A
/// participant has one account at a time; an account may have several identities in a collaboration. Who came in by an
/// invitation is linked to the account that has accepted it, or to none.
public struct LinkAccount: RuledRequest {
    public static let name = "linkAccount"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    public var identity: PersonIdentity
    /// `nil` ends the link.
    public var account: Account?

    public init(_ account: Account?, to identity: PersonIdentity, in collaboration: CollaborationIdentifier) {
        self.collaboration = collaboration
        self.identity = identity
        self.account = account
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let found = try records.collaboration(collaboration)
        let participant = try records.participant(identity, in: collaboration).value
        guard participant.role != .owner || account == nil || account == found.value.owner else {
            throw ServiceError(
                .notPermitted, "the owner is linked to the account that owns the collaboration, or to none")
        }
        guard let joined = try records.record(RecordKeys.joining(collaboration, identity)) else {
            throw ServiceError(
                .notPermitted,
                """
                no proof of \(identity.rootHash) was granted yet: one of its devices has to open the collaboration first
                """
            )
        }
        let before = try records.record(RecordKeys.link(collaboration, identity))
        let former = before?.account
        let acceptance = try records.record(RecordKeys.acceptance(collaboration, identity))
        if let account, let acceptance, acceptance.value != Array(account.name.utf8) {
            throw ServiceError(
                .notPermitted, "\(identity.rootHash) came in by an invitation that another account has accepted")
        }
        let linking: RecordEdit.Expectation = before.map { .version($0.version) } ?? .absent
        let checks: [RecordEdit] = [
            .checking(RecordKeys.collaboration(collaboration), expecting: .version(found.version)),
            .checking(RecordKeys.joining(collaboration, identity), expecting: .version(joined.version)),
            .checking(
                RecordKeys.acceptance(collaboration, identity),
                expecting: acceptance.map { .version($0.version) } ?? .absent),
        ]
        // A link that can't be read is ended as any other.
        guard former != account || before != nil && former == nil else {
            let known = checks + [.checking(RecordKeys.link(collaboration, identity), expecting: linking)]
            return account == nil ? .noted(collaboration, known) : .remembered(collaboration, known)
        }
        if let account { try checkRoom(for: account, records) }
        var edit = Edit(collaboration)
        edit.records = checks
        edit.records.append(
            RecordEdit(
                RecordKeys.link(collaboration, identity), value: account.map { Array($0.name.utf8) },
                expecting: linking))
        if let former {
            edit.records.append(RecordEdit(RecordKeys.linked(former, collaboration, identity), value: nil))
        }
        if let account {
            edit.records.append(RecordEdit(RecordKeys.linked(account, collaboration, identity), value: []))
        }
        let topics = [former, account].compactMap { $0 }.map { Topic.account($0) }
        return .change(edit, topics: topics + [.collaboration(collaboration)], count: 1)
    }

    /// Throws `limitExceeded` when the account has its maximum of links, or of identities in this collaboration.
    private func checkRoom(
        for account: Account, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        var count = 1
        try records.visitRecords(in: .beginning(with: RecordKeys.linked(account))) { _, _ in
            count += 1
            return count <= Limits.linksPerAccountMax
        }
        try checkLimit(count, Limits.linksPerAccountMax, "links of an account")
        let here = try records.records(
            in: .beginning(with: RecordKeys.linked(account, collaboration)), limit: Limits.identitiesPerAccountMax,
            isDescending: false)
        try checkLimit(
            here.items.count + 1, Limits.identitiesPerAccountMax, "identities of an account in a collaboration")
    }
}
