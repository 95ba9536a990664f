import Collaboration
import Core
import Hashing
import RootSets

/// Reads the access of one collaboration's participants from the snapshot that it was made with. The collaboration is
/// looked up once. A look-up of a participant allocates nothing.
struct AccessLookup {
    let collaboration: CollaborationIdentifier
    /// The collaboration as grants name it.
    let fingerprint: Fingerprint
    /// `nil` when the collaboration was not started by this layer, or was stopped.
    let defaultPermission: DefaultPermission?
    /// The collaboration's set; `nil` when there is none.
    private let members: MemberLookup?
    /// The key of a participant's record; the root hash at `rootHashOffset` is replaced for each look-up.
    private var key: [UInt8]
    private let rootHashOffset: Int

    /// `lookups`: how many participants will be looked up, roughly; at least 1.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    init(
        _ collaboration: CollaborationIdentifier, lookups: Int = 1, _ snapshot: borrowing Snapshot
    ) throws(ServiceError) {
        self.collaboration = collaboration
        fingerprint = Fingerprint(SHA256.hash(collaboration.utf8))
        defaultPermission = try DefaultPermission(try snapshot.record(DefaultPermission.key(collaboration)))
        members = try collaboration.utf8.withRawBytes { name throws(ServiceError) in
            try MemberLookup(name, lookups: lookups, in: snapshot)
        }
        key = OwnAccess.key(collaboration, PersonIdentity(rootHash: .zero))
        rootHashOffset = key.count - Digest.byteCount
        precondition(
            rootHashOffset > collaboration.utf8.count && key[rootHashOffset...].allSatisfy { $0 == 0 },
            "the key of a participant's record does not end with the root hash")
    }

    /// The participant's own record; `nil` when there is none.
    ///
    /// Throws `storageDamaged`, also when the record is something else, or `storageFailed`.
    mutating func own(_ person: PersonIdentity, in snapshot: borrowing Snapshot) throws(ServiceError) -> OwnAccess? {
        key.withUnsafeMutableBytes { key in
            if let start = key.baseAddress { person.rootHash.store(to: start + rootHashOffset) }
        }
        let found = try key.withRawBytes { key throws(ServiceError) -> OwnAccess?? in
            try snapshot.withRecord(key) { version, value in OwnAccess(version: version, value: value) }
        }
        guard let found else { return nil }
        guard let own = found else { throw OwnAccess.damaged }
        return own
    }

    /// Whether the person's root hash is in the collaboration's set. A client that changes the set without the layer
    /// can remove a root hash whose participant still has a record.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    func isMember(_ person: PersonIdentity, in snapshot: borrowing Snapshot) throws(ServiceError) -> Bool {
        try members?.contains(person.rootHash, in: snapshot) ?? false
    }

    /// The identifiers of the collaboration's selected share options, as the record has them.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    func selectedOptions(in snapshot: borrowing Snapshot) throws(ServiceError) -> [UInt8] {
        try snapshot.record(SelectedOptions.key(collaboration))?.value ?? SelectedOptions.none
    }
}
