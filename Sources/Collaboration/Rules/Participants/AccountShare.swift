import Core

/// The record `y`: a share that an account takes part in by invitations, or has handed over, and as whom. Its value is
/// their root hashes (32 each). It has none when the account takes part only as people that it is linked to.
struct AccountShare {
    private let key: [UInt8]
    /// The record; `nil` when there is none.
    private let record: StoredRecord?
    /// As whom the account takes part, in the order in which they came.
    private(set) var people: [PersonIdentity]

    fileprivate init(_ key: [UInt8], _ record: StoredRecord?) {
        (self.key, self.record) = (key, record)
        let value = record?.value ?? []
        people = stride(from: 0, to: value.count, by: Digest.byteCount).compactMap { start in
            Digest(value[start...].prefix(Digest.byteCount)).map { PersonIdentity(rootHash: $0) }
        }
    }

    /// Adds a person as whom the account takes part.
    ///
    /// Throws `limitExceeded` when the account has its maximum of identities in the collaboration.
    mutating func add(_ person: PersonIdentity) throws(ServiceError) {
        guard !people.contains(person) else { return }
        people.append(person)
        try checkLimit(
            people.count, Limits.identitiesPerAccountMax, "identities of an account in a collaboration")
    }

    mutating func remove(_ leaving: Set<PersonIdentity>) {
        people.removeAll { leaving.contains($0) }
    }

    /// Writes the record. The edit is stale when it was changed since it was read. Replacing a record needs no space.
    var writing: RecordEdit {
        RecordEdit(key, value: people.flatMap(\.rootHash.bytes), expecting: expectation)
    }

    /// Keeps the record, if there is one: the account takes part only as people that it is linked to.
    var emptied: RecordEdit {
        record == nil ? .checking(key, expecting: .absent) : writing
    }

    /// Removes the record. The edit is stale when it was changed since it was read.
    var removal: RecordEdit { RecordEdit(key, value: nil, expecting: expectation) }

    private var expectation: RecordEdit.Expectation { record.map { .version($0.version) } ?? .absent }
}

extension RecordReader where Self: ~Copyable {
    /// The account's share of the collaboration, which may have no record yet. People count who have an acceptance of
    /// the account: the end of an earlier collaboration of that identifier may have left the record of others.
    func share(of account: Account, in collaboration: CollaborationIdentifier) throws(ServiceError) -> AccountShare {
        let key = RecordKeys.accepted(account, collaboration)
        var share = AccountShare(key, try record(key))
        let name = Array(account.name.utf8)
        var strangers: Set<PersonIdentity> = []
        for person in share.people {
            let acceptance = try record(RecordKeys.acceptance(collaboration, person))
            if acceptance?.value != name { strangers.insert(person) }
        }
        share.remove(strangers)
        return share
    }
}
