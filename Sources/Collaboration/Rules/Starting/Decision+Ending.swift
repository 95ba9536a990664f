import Core

extension Decision<ChangeReceipt> {
    /// Ends a collaboration. Records of accounts and invitations that name it are removed as far as one edit allows.
    /// Readers ignore those that are left.
    static func ending(
        _ identifier: CollaborationIdentifier, _ found: Loaded<StoredCollaboration>,
        _ records: borrowing some RecordReader & ~Copyable, expectingArrivals: RecordEdit.Expectation = .anything
    ) throws(ServiceError) -> Decision {
        let hasSet = try records.hasSet(of: identifier)
        var edit = Edit(hasSet ? identifier : nil)
        edit.dropsCollaboration = hasSet
        edit.removedRanges = RecordKeys.everything(of: identifier)
        edit.records = [
            RecordEdit(RecordKeys.collaboration(identifier), value: nil, expecting: .version(found.version)),
            RecordEdit(RecordKeys.defaultPermission(identifier), value: nil),
            RecordEdit(RecordKeys.selection(identifier), value: nil),
            RecordEdit(RecordKeys.arrivals(identifier), value: nil, expecting: expectingArrivals),
            RecordEdit(RecordKeys.start(found.value.owner, found.value.localIdentifier), value: nil),
        ]
        edit.records += (found.value.formerOwners + [found.value.owner]).map {
            RecordEdit(RecordKeys.accepted($0, identifier), value: nil)
        }
        var topics: [Topic] = [.collaboration(identifier)]
        let links = try records.records(
            in: .beginning(with: RecordKeys.links(identifier)), limit: Limits.linksPerEndingMax, isDescending: false)
        for link in links.items {
            guard let account = Account(String(decoding: link.value, as: UTF8.self)),
                let root = Digest(link.key.suffix(Digest.byteCount))
            else { continue }
            edit.records.append(
                RecordEdit(RecordKeys.linked(account, identifier, PersonIdentity(rootHash: root)), value: nil))
            topics.append(.account(account))
        }
        try edit.tellShelves(of: identifier, records, &topics)
        let prefix = RecordKeys.invitations(identifier)
        let invitations = try records.records(
            in: .beginning(with: prefix), limit: Limits.invitationsPerEndingMax, isDescending: false)
        for record in invitations.items {
            let name = Array(record.key.dropFirst(prefix.count))
            guard name.count == RecordKeys.invitationBytes else { continue }
            edit.records.append(RecordEdit(RecordKeys.invitationPlace(name), value: nil))
            if let account = try record.decoded(StoredInvitation.self).acceptedBy {
                edit.records.append(RecordEdit(RecordKeys.accepted(account, identifier), value: nil))
            }
        }
        return .change(edit, topics: topics, count: 1)
    }
}

extension Edit {
    /// Marks the shelves as changed that have the link of a collaboration that ends. That replaces records, which needs
    /// no space: so sharing ends on a full disk.
    fileprivate mutating func tellShelves(
        of collaboration: CollaborationIdentifier, _ reader: borrowing some RecordReader & ~Copyable,
        _ topics: inout [Topic]
    ) throws(ServiceError) {
        let prefix = RecordKeys.shelvesOfLink(collaboration)
        let shelves = try reader.records(
            in: .beginning(with: prefix), limit: Limits.shelvesPerEndingMax, isDescending: false)
        for shelf in shelves.items {
            guard let account = Account(String(decoding: shelf.key.dropFirst(prefix.count), as: UTF8.self)) else {
                continue
            }
            topics.append(.shelf(account))
            guard try reader.record(RecordKeys.shelf(account)) != nil else { continue }
            records.append(RecordEdit(RecordKeys.shelf(account), value: [], expecting: .present))
        }
    }
}
