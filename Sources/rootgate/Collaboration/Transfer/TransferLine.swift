import Core
import Foundation
import Hashing
import RootgateClient

/// One line of a file that `rootgate collab export` writes, as JSON. The first line has `format` and `version`, every
/// other one exactly one of the other fields.
struct TransferLine: Codable {
    static let format = "rootgate-collaboration"
    static let version = 1
    /// Bytes of a line, at most. The longest lines have a thumbnail, or share options.
    static let byteCountMax = 1 << 20

    var format: String?
    var version: Int?
    /// A collaboration of the layer.
    var collaboration: TransferredCollaboration?
    /// A collaboration that is a policy and root hashes only.
    var rootSet: TransferredSet?
    var participant: TransferredParticipant?
    /// A root hash in the set without a participant.
    var root: Digest?
    /// An invitation by which nobody has come in, for people who read the file: its token is in no file.
    var invitation: Invitation?
    /// For people who read the file.
    var notice: Notice?
    var share: TransferredShare?
    var end: TransferEnd?

    /// The line as it stands in a file. Characters that steer a terminal are escaped.
    func text() throws(ServiceError) -> String {
        String(decoding: try JSON.encode(self), as: UTF8.self).escapingControls + "\n"
    }
}

/// What a collaboration is, apart from its people.
struct TransferredCollaboration: Hashable, Codable {
    var collaboration: CollaborationIdentifier
    /// The link at the service that the file comes from.
    var url: URL
    /// The account that owns it, and what that account calls the content.
    var owner: Account
    var localIdentifier: LocalCollaborationIdentifier
    var title: String?
    var creationDate: Date
    var initiatorHandle: String?
    var initiatorName: String?
    var shareOptions: ShareOptions
    /// What participants without a permission of their own may do when the selected options don't say, as far as the
    /// service tells it; `nil`: read.
    var defaultPermission: Permission?
    /// `nil`: devices sign challenges.
    var nonceWindowSeconds: UInt32?
    var customItems: [CustomItem]
    /// `nil`: the standard title.
    var manageButtonTitle: String?
}

/// A collaboration of root hashes only.
struct TransferredSet: Hashable, Codable {
    var collaboration: CollaborationIdentifier
    /// `nil`: devices sign challenges.
    var nonceWindowSeconds: UInt32?
}

/// A person who takes part.
struct TransferredParticipant: Hashable, Codable {
    var identity: PersonIdentity
    var displayName: String?
    var role: ParticipantRole
    /// The person's own permission; `nil`: the share options decide.
    var permission: Permission?
    var state: ParticipantState
    var invitedAt: Date
    var joinedAt: Date?
    /// The account that the person is linked to.
    var account: Account?
    /// False when the root hash was taken out of the set without the layer: proofs of the person are refused.
    var isInSet: Bool

    init(_ participant: Participant, isInSet: Bool) {
        identity = participant.identity
        displayName = participant.displayName
        role = participant.role
        permission = participant.followsShareOptions ? nil : participant.permission
        state = participant.state
        invitedAt = participant.invitedAt
        joinedAt = participant.joinedAt
        account = participant.account
        self.isInSet = isInSet
    }
}

/// The collaboration's link on somebody's shelf: one conversation in which it was shared.
struct TransferredShare: Hashable, Codable {
    var account: Account
    var url: URL
    var title: String?
    var subtitle: String?
    var thumbnail: Thumbnail?
    var app: String
    var sharer: Sharer
    var conversation: Conversation
    var date: Date
    var isPinned: Bool
}

/// The last line. A file without it was cut.
struct TransferEnd: Hashable, Codable {
    var participants = 0
    var roots = 0
    var invitations = 0
    var notices = 0
    var shares = 0
    /// Of all bytes before this line.
    var sha256 = Digest.zero
}

/// Something that is written or read line by line, and counted and hashed on the way.
struct TransferTally {
    private(set) var end = TransferEnd()
    private var hash = SHA256.Stream()

    /// Counts what the line has.
    mutating func count(_ line: TransferLine) {
        if line.participant != nil { end.participants += 1 }
        if line.root != nil { end.roots += 1 }
        if line.invitation != nil { end.invitations += 1 }
        if line.notice != nil { end.notices += 1 }
        if line.share != nil { end.shares += 1 }
    }

    mutating func hash(_ bytes: some Sequence<UInt8>) {
        Array(bytes).withUnsafeBytes { hash.update($0) }
    }

    /// The counts, and the hash of all bytes until now.
    var summary: TransferEnd {
        var (summary, hash) = (end, hash)
        summary.sha256 = hash.finish()
        return summary
    }
}
