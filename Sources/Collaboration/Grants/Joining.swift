package import Core

/// Notes that a participant's proof was granted for the first time.
package enum Joining {
    /// The record that says so.
    package static func key(_ collaboration: CollaborationIdentifier, _ person: PersonIdentity) -> [UInt8] {
        RecordKeys.joining(collaboration, person)
    }

    /// The edit that notes the joining; stale when the access has changed or somebody else has noted it.
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
