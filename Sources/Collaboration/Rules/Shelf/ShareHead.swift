import Core
import Foundation

/// The latest share of an item in a conversation: the packed part, which ranking reads.
struct ShareHead {
    static let byteCount = 24
    var milliseconds: UInt64
    var isPinned: Bool
    let isGroup: Bool
    let knowsSomebody: Bool
    /// Whether the record names a stored thumbnail.
    let hasThumbnail: Bool
    /// Whether the link leads to a collaboration of this service, which the record names.
    let leadsToCollaboration: Bool
    let app: UInt64

    init(
        milliseconds: UInt64, isPinned: Bool, isGroup: Bool, knowsSomebody: Bool, hasThumbnail: Bool,
        leadsToCollaboration: Bool, app: UInt64
    ) {
        self.milliseconds = milliseconds
        self.isPinned = isPinned
        self.isGroup = isGroup
        self.knowsSomebody = knowsSomebody
        self.hasThumbnail = hasThumbnail
        self.leadsToCollaboration = leadsToCollaboration
        self.app = app
    }

    init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard let milliseconds: UInt64 = reader.integer(), let flags = reader.byte(), reader.bytes(7) != nil,
            let app: UInt64 = reader.integer()
        else { return nil }
        self.init(
            milliseconds: milliseconds, isPinned: flags & 1 != 0, isGroup: flags & 2 != 0,
            knowsSomebody: flags & 4 != 0, hasThumbnail: flags & 8 != 0, leadsToCollaboration: flags & 16 != 0,
            app: app)
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendInteger(milliseconds)
        bytes.append(
            (isPinned ? 1 : 0) | (isGroup ? 2 : 0) | (knowsSomebody ? 4 : 0) | (hasThumbnail ? 8 : 0)
                | (leadsToCollaboration ? 16 : 0))
        bytes += [UInt8](repeating: 0, count: 7)
        bytes.appendInteger(app)
        precondition(bytes.count == ShareHead.byteCount, "a share's head is not as long as its layout")
        return bytes
    }

    /// A share in a group conversation counts only when the person knows somebody there.
    var counts: Bool { !isGroup || knowsSomebody }

    /// The collaboration that the link leads to, from the whole record that begins with this head; `nil` when the
    /// record is damaged.
    func collaboration(in value: UnsafeRawBufferPointer) -> CollaborationIdentifier? {
        var reader = ByteReader(value)
        let offset = ShareHead.byteCount + ConversationHandle.byteCount + (hasThumbnail ? Digest.byteCount : 0)
        guard leadsToCollaboration, reader.bytes(offset) != nil, let count = reader.byte(),
            let name = reader.bytes(Int(count))
        else { return nil }
        return CollaborationIdentifier(utf8: Array(name))
    }
}
