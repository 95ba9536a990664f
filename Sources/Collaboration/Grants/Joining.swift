package import Core

/// The record `j`: that a participant has joined, which is when the person's first proof was granted.
package enum Joining {
    /// The key of the record.
    package static func key(_ collaboration: CollaborationIdentifier, _ person: PersonIdentity) -> [UInt8] {
        RecordKeys.joining(collaboration, person)
    }

    /// The edit that writes the record. It is stale when the access has changed, or when the record is there already.
    ///
    /// `milliseconds`: since 1970.
    package static func edit(
        of person: PersonIdentity, in collaboration: CollaborationIdentifier, _ access: Access, milliseconds: UInt64
    ) -> Edit {
        var edit = Edit(collaboration)
        edit.records = access.expectations(of: person, in: collaboration)
        edit.records.append(
            RecordEdit(
                RecordKeys.joining(collaboration, person), value: bigEndianBytes(milliseconds), expecting: .absent))
        return edit
    }
}
