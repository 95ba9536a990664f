import Core

/// Who manages a collaboration: the app's backend, which may do everything, or a participant with a grant.
enum ManagingAuthority {
    case backend
    /// `version`: that of the collaboration's record, whose share options the authority depends on.
    case participant(PersonIdentity, Access, version: UInt64)

    /// The participant; `nil`: the backend.
    var bearer: PersonIdentity? {
        if case .participant(let person, _, _) = self { person } else { nil }
    }

    /// Makes an edit stale when the participant's access or the collaboration's options have changed since they were
    /// read.
    func expectations(in collaboration: CollaborationIdentifier) -> [RecordEdit] {
        switch self {
        case .backend: []
        case .participant(let person, let access, let version):
            access.expectations(of: person, in: collaboration) + [
                .checking(RecordKeys.collaboration(collaboration), expecting: .version(version))
            ]
        }
    }

    /// Throws `notPermitted` when a participant would give more than he has: only owners and administrators make
    /// administrators, and only who may write lets others write. `permission`: what the others may do then, by a
    /// permission of their own or by the share options.
    func checkGiving(role: ParticipantRole?, permission: Permission) throws(ServiceError) {
        guard case .participant(_, let access, _) = self else { return }
        guard role ?? .member == .member || access.role != .member else {
            throw ServiceError(.notPermitted, "a member can't make somebody an administrator")
        }
        guard permission != .readWrite || access.permission == .readWrite else {
            throw ServiceError(.notPermitted, "a participant who may only read can't let others write")
        }
    }

    /// Throws `notPermitted` when a participant may not remove that person. Everybody but the owner may leave. Only the
    /// owner removes administrators.
    func checkRemoving(_ person: PersonIdentity, role: ParticipantRole) throws(ServiceError) {
        guard case .participant(let bearer, let access, _) = self, bearer != person else { return }
        guard access.role != .member else {
            throw ServiceError(.notPermitted, "a member can remove nobody but himself")
        }
        try checkChanging(role)
    }

    /// Throws `notPermitted` when a participant may not change somebody of that role.
    func checkChanging(_ role: ParticipantRole) throws(ServiceError) {
        guard case .participant(_, let access, _) = self, access.role != .owner else { return }
        guard role == .member else {
            throw ServiceError(.notPermitted, "only the owner changes or removes administrators")
        }
    }
}

extension RecordReader where Self: ~Copyable {
    /// The authority to manage the collaboration in that way. Without a grant it is the backend's.
    ///
    /// Throws `grantRefused`, or `notPermitted` when the bearer's role or the share options don't allow the operation.
    func authority(
        of grant: AccessGrant?, for operation: ManageOperation?, in collaboration: CollaborationIdentifier,
        _ found: Loaded<StoredCollaboration>, _ context: RuleContext
    ) throws(ServiceError) -> ManagingAuthority {
        guard let grant else { return .backend }
        let (person, access) = try bearer(of: grant, in: collaboration, context)
        if let operation {
            guard ManageOperation.permitted(to: access.role, by: found.value.shareOptions).contains(operation) else {
                throw ServiceError(.notPermitted, "the bearer of the grant may not \(operation.rawValue)")
            }
        }
        return .participant(person, access, version: found.version)
    }
}
