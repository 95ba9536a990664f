import Core
import Principals

/// The keys of the layer's records. A key is a byte for its kind, then identifiers, then bytes of known length. Every
/// identifier but the last is ended by a zero byte, which identifiers don't contain: so no key is a prefix of a key of
/// another kind.
///
///     c collaboration                     title, options, owner (JSON)
///     b collaboration                     the default permission, by its share options (1)
///     d collaboration                     the identifiers of the selected options; see SelectedOptions.swift
///     m collaboration                     written whenever a participant is added
///     s owner 0 local identifier          the collaboration that was started with this local identifier
///     p collaboration 0 root hash         a participant, removed ones too (JSON)
///     a collaboration 0 root hash         a participant's access: permission (1, 0: by the share options), role (1)
///     j collaboration 0 root hash         when the participant joined (8, milliseconds)
///     l collaboration 0 root hash         the account that the participant is linked to
///     k account 0 collaboration 0 root    the same link, found by the account
///     i collaboration 0 root hash         the account that brought the participant in by accepting an invitation
///     n collaboration 0 sequence          a post; see StoredPost.swift
///     x collaboration 0 root hash         the sequence up to which a participant has cleared notices (8)
///     t collaboration 0 invitation        an invitation (JSON)
///     u invitation                        its collaboration
///     y account 0 collaboration           a share that the account takes part in by an invitation, or has handed
///                                         over; see AccountShare.swift
///     h account 0 item 0...               what the account did with an item; see Signals.swift
///     h account 0 item conversation       the latest share of an item in a conversation
///     r account 0 conversation app        the handle of a conversation for the account, as an app knows it (16)
///     e collaboration 0 account           an account to whose shelf the collaboration's link was shared
///     z hash                              the bytes of a thumbnail, by their SHA-256
///     w hash                              their number (8), written whenever a share takes or leaves the thumbnail
///     q hash account 0 item conversation  a share that has the thumbnail
///     g byte                              the bytes of all thumbnails whose hash begins with the byte (8)
///     v account                           written whenever the account's shelf changes
///     o account                           the account's consent (JSON)
///     f principal                         a principal (JSON)
///     P                                   the number of principals (8), written whenever one changes; it is never
///                                         removed
///     U principal 0 key                   when the key was last used (8, milliseconds; 0: never); without a key: when
///                                         the principal was last known by a certificate or a local user
///
/// Writing `a` or `b` revokes the grants that were issued before; `Access` has the rule.
enum RecordKeys {
    /// The first byte of a key. The compiler refuses two kinds of one byte.
    enum Kind: String, CaseIterable {
        case collaboration = "c"
        case defaultPermission = "b"
        case selection = "d"
        case arrivals = "m"
        case start = "s"
        case participant = "p"
        case access = "a"
        case joining = "j"
        case link = "l"
        case linked = "k"
        case notices = "n"
        case cleared = "x"
        case invitation = "t"
        case acceptance = "i"
        case invitationPlace = "u"
        case accepted = "y"
        case item = "h"
        case handle = "r"
        case shelfOfLink = "e"
        case thumbnail = "z"
        case thumbnailChange = "w"
        case thumbnailHolder = "q"
        case thumbnailPart = "g"
        case shelf = "v"
        case consent = "o"
        case principal = "f"
        case principalCount = "P"
        case principalUse = "U"
    }

    /// Bytes that name an invitation.
    static let invitationBytes = 16

    static func collaboration(_ collaboration: CollaborationIdentifier) -> [UInt8] {
        key(.collaboration, collaboration.utf8)
    }

    static func defaultPermission(_ collaboration: CollaborationIdentifier) -> [UInt8] {
        key(.defaultPermission, collaboration.utf8)
    }

    static func selection(_ collaboration: CollaborationIdentifier) -> [UInt8] {
        key(.selection, collaboration.utf8)
    }

    static func arrivals(_ collaboration: CollaborationIdentifier) -> [UInt8] { key(.arrivals, collaboration.utf8) }

    static func start(_ owner: Account, _ local: LocalCollaborationIdentifier) -> [UInt8] {
        starts(owner) + Array(local.rawValue.utf8)
    }

    static func starts(_ owner: Account) -> [UInt8] { key(.start, Array(owner.name.utf8), ends: true) }

    static func participant(_ collaboration: CollaborationIdentifier, _ person: PersonIdentity) -> [UInt8] {
        participants(collaboration) + person.rootHash.bytes
    }

    static func participants(_ collaboration: CollaborationIdentifier) -> [UInt8] {
        key(.participant, collaboration.utf8, ends: true)
    }

    static func access(_ collaboration: CollaborationIdentifier, _ person: PersonIdentity) -> [UInt8] {
        key(.access, collaboration.utf8, ends: true) + person.rootHash.bytes
    }

    static func accesses(_ collaboration: CollaborationIdentifier) -> [UInt8] {
        key(.access, collaboration.utf8, ends: true)
    }

    static func joining(_ collaboration: CollaborationIdentifier, _ person: PersonIdentity) -> [UInt8] {
        key(.joining, collaboration.utf8, ends: true) + person.rootHash.bytes
    }

    static func link(_ collaboration: CollaborationIdentifier, _ person: PersonIdentity) -> [UInt8] {
        key(.link, collaboration.utf8, ends: true) + person.rootHash.bytes
    }

    static func links(_ collaboration: CollaborationIdentifier) -> [UInt8] {
        key(.link, collaboration.utf8, ends: true)
    }

    static func linked(
        _ account: Account, _ collaboration: CollaborationIdentifier, _ person: PersonIdentity
    ) -> [UInt8] {
        linked(account, collaboration) + person.rootHash.bytes
    }

    static func linked(_ account: Account, _ collaboration: CollaborationIdentifier) -> [UInt8] {
        linked(account) + collaboration.utf8 + [0]
    }

    static func linked(_ account: Account) -> [UInt8] { key(.linked, Array(account.name.utf8), ends: true) }

    static func notices(_ collaboration: CollaborationIdentifier) -> [UInt8] {
        key(.notices, collaboration.utf8, ends: true)
    }

    static func cleared(_ collaboration: CollaborationIdentifier, _ person: PersonIdentity) -> [UInt8] {
        key(.cleared, collaboration.utf8, ends: true) + person.rootHash.bytes
    }

    static func invitation(_ collaboration: CollaborationIdentifier, _ invitation: [UInt8]) -> [UInt8] {
        precondition(invitation.count == invitationBytes, "an invitation is named by 16 bytes")
        return invitations(collaboration) + invitation
    }

    static func acceptance(_ collaboration: CollaborationIdentifier, _ person: PersonIdentity) -> [UInt8] {
        key(.acceptance, collaboration.utf8, ends: true) + person.rootHash.bytes
    }

    static func invitations(_ collaboration: CollaborationIdentifier) -> [UInt8] {
        key(.invitation, collaboration.utf8, ends: true)
    }

    static func invitationPlace(_ invitation: [UInt8]) -> [UInt8] {
        precondition(invitation.count == invitationBytes, "an invitation is named by 16 bytes")
        return key(.invitationPlace, invitation)
    }

    static func accepted(_ account: Account, _ collaboration: CollaborationIdentifier) -> [UInt8] {
        accepted(account) + collaboration.utf8
    }

    static func accepted(_ account: Account) -> [UInt8] { key(.accepted, Array(account.name.utf8), ends: true) }

    static func items(_ account: Account) -> [UInt8] { key(.item, Array(account.name.utf8), ends: true) }

    /// `app`: its fingerprint.
    static func handle(_ account: Account, _ conversation: [UInt8], _ app: [UInt8]) -> [UInt8] {
        key(.handle, Array(account.name.utf8), ends: true) + conversation + app
    }

    static func shelfOfLink(_ collaboration: CollaborationIdentifier, _ account: Account) -> [UInt8] {
        shelvesOfLink(collaboration) + Array(account.name.utf8)
    }

    static func shelvesOfLink(_ collaboration: CollaborationIdentifier) -> [UInt8] {
        key(.shelfOfLink, collaboration.utf8, ends: true)
    }

    static func thumbnail(_ hash: Digest) -> [UInt8] { key(.thumbnail, hash.bytes) }

    static func thumbnailChange(_ hash: Digest) -> [UInt8] { key(.thumbnailChange, hash.bytes) }

    /// `share`: the key of the share that has the thumbnail.
    static func thumbnailHolder(_ hash: Digest, _ share: [UInt8]) -> [UInt8] {
        key(.thumbnailHolder, hash.bytes) + share.dropFirst()
    }

    static func thumbnailHolders(_ hash: Digest) -> RecordRange {
        let prefix = key(.thumbnailHolder, hash.bytes)
        // An account's name, which follows, is UTF-8: it has no byte 0xff.
        return RecordRange(prefix, prefix + [0xff])
    }

    static func thumbnailPart(_ hash: Digest) -> [UInt8] { key(.thumbnailPart, Array(hash.bytes.prefix(1))) }

    static func shelf(_ account: Account) -> [UInt8] { key(.shelf, Array(account.name.utf8)) }

    static func consent(_ account: Account) -> [UInt8] { key(.consent, Array(account.name.utf8)) }

    static func principal(_ name: PrincipalName) -> [UInt8] { key(.principal, Array(name.text.utf8)) }

    static let principals = RecordRange.beginning(with: key(.principal, []))

    static let principalCount = key(.principalCount, [])

    /// `key`: `nil` for certificates and local users.
    static func principalUse(_ name: PrincipalName, _ key: KeyIdentifier?) -> [UInt8] {
        principalUses(name) + (key.map { Array($0.description.utf8) } ?? [])
    }

    static let principalUseStart = key(.principalUse, [])

    static func principalUses(_ name: PrincipalName) -> [UInt8] {
        key(.principalUse, Array(name.text.utf8), ends: true)
    }

    /// What a query can wait for that a record with the key, or records from the key on, tell something about; `nil`
    /// for records whose change wakes nobody.
    static func topic(ofKey key: [UInt8]) -> Topic? {
        guard let first = key.first, let kind = Kind(rawValue: String(UnicodeScalar(first))) else { return nil }
        let name = key.dropFirst().prefix { $0 != 0 }
        switch kind {
        case .collaboration, .defaultPermission, .selection, .arrivals, .participant, .access, .link, .notices:
            return CollaborationIdentifier(utf8: Array(name)).map { .collaboration($0) }
        case .linked, .accepted: return Account(String(decoding: name, as: UTF8.self)).map { .account($0) }
        case .shelf, .consent: return Account(String(decoding: name, as: UTF8.self)).map { .shelf($0) }
        case .start, .joining, .cleared, .invitation, .acceptance, .invitationPlace, .item, .handle, .shelfOfLink,
            .thumbnail, .thumbnailChange, .thumbnailHolder, .thumbnailPart, .principal, .principalCount, .principalUse:
            return nil
        }
    }

    /// All records of a collaboration except its start, links from accounts, accepted shares and places of invitations.
    static func everything(of collaboration: CollaborationIdentifier) -> [RecordRange] {
        [
            Kind.participant, .access, .joining, .link, .acceptance, .notices, .cleared, .invitation, .shelfOfLink,
        ].map { kind in
            .beginning(with: key(kind, collaboration.utf8, ends: true))
        }
    }

    /// `ends`: whether something follows the name, which is then ended by a zero byte.
    private static func key(_ kind: Kind, _ name: [UInt8], ends: Bool = false) -> [UInt8] {
        assert(!ends || !name.contains(0), "a name with a zero byte ends in the middle")
        var key = Array(kind.rawValue.utf8)
        precondition(key.count == 1, "a kind of keys is one byte")
        key.reserveCapacity(1 + name.count + 1 + Digest.byteCount)
        key += name
        if ends { key.append(0) }
        return key
    }
}

extension RecordRange {
    /// All keys that begin with `prefix`, which does not end in 0xff.
    static func beginning(with prefix: [UInt8]) -> RecordRange {
        precondition(prefix.last.map { $0 != 0xff } ?? false, "a prefix is empty, or ends in 0xff")
        var end = prefix
        end[end.count - 1] += 1
        return RecordRange(prefix, end)
    }
}
