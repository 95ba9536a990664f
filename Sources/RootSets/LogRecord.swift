import Core

/// The bytes of one change-log record:
/// checksum of the record before (8), mutation identifier (16), kind (1), identifier length (1), policy (1), zero (1),
/// window in seconds or number of roots (4), changed (8), collaboration identifier, roots.
///
/// So the records are a chain: the checksum of each covers all before it.
struct LogRecord {
    static let headerBytes = 40
    /// Bytes that a record takes in addition to its value: 18 in `log`, and 50 in `mutations`, whose pages are two
    /// thirds full because its keys are random.
    static let overheadBytes: UInt64 = 93

    private static let identifierOffset = 8
    private static let kindOffset = 24
    private static let nameCountOffset = 25
    private static let policyOffset = 26
    private static let numberOffset = 28
    private static let changedOffset = 32

    private enum Kind {
        static let create: UInt8 = 1
        static let drop: UInt8 = 2
        static let add: UInt8 = 3
        static let remove: UInt8 = 4
        static let edit: UInt8 = 5
    }

    /// Replaces the contents of `bytes` with the log record of `mutation`. `previous`: the checksum of the record
    /// before.
    static func encode(_ mutation: Mutation, changed: UInt64, after previous: UInt64, into bytes: inout [UInt8]) {
        bytes.removeAll(keepingCapacity: true)
        var kind = Kind.drop
        var policy: UInt8 = 0
        var number: UInt32 = 0
        var roots: [Digest] = []
        switch mutation.change {
        case .createCollaboration(_, let chosen):
            kind = Kind.create
            (policy, number) = chosen.code
        case .dropCollaboration: break
        case .addRoots(_, let added):
            (kind, roots, number) = (Kind.add, added, UInt32(added.count))
        case .removeRoots(_, let removed):
            (kind, roots, number) = (Kind.remove, removed, UInt32(removed.count))
        case .edit: kind = Kind.edit
        }
        let name = mutation.change.collaboration?.utf8 ?? []
        precondition(name.count <= Limits.collaborationBytesMax, "an identifier is too long")
        bytes.appendInteger(previous)
        bytes.appendInteger(mutation.identifier.value)
        bytes.append(kind)
        bytes.append(UInt8(name.count))
        bytes.append(policy)
        bytes.append(0)
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: changed.littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: name)
        roots.withUnsafeBytes { bytes.append(contentsOf: $0) }
        if case .edit(let edit) = mutation.change { edit.append(to: &bytes) }
    }

    /// The request that made the edit in the record; `nil` when no request did, or when it is no edit.
    static func request(in value: UnsafeRawBufferPointer) throws(StorageFailure) -> RequestDigest? {
        guard value.count >= headerBytes else { throw .damaged("a change-log record is damaged") }
        guard value[kindOffset] == Kind.edit else { return nil }
        let offset = headerBytes + Int(value[nameCountOffset]) + Edit.requestOffset
        guard value.count >= offset + 16 else { throw .damaged("a change-log record is damaged") }
        return RequestDigest(
            logged: UInt128(littleEndian: value.loadUnaligned(fromByteOffset: offset, as: UInt128.self)))
    }

    /// Bytes of a record's value.
    static func logBytes(_ record: SealedValue) -> UInt64 {
        UInt64(SealedValue.sealBytes + record.contents.count)
    }

    /// The checksum of the record before.
    static func previous(in value: UnsafeRawBufferPointer) throws(StorageFailure) -> UInt64 {
        guard value.count >= headerBytes else { throw .damaged("a change-log record is damaged") }
        return UInt64(littleEndian: value.loadUnaligned(as: UInt64.self))
    }

    /// The bytes of the mutation's identifier.
    static func identifier(in value: UnsafeRawBufferPointer) throws(StorageFailure) -> [UInt8] {
        guard value.count >= headerBytes else { throw .damaged("a change-log record is damaged") }
        return Array(value[identifierOffset..<kindOffset])
    }

    static func changed(in value: UnsafeRawBufferPointer) throws(StorageFailure) -> UInt64 {
        guard value.count >= headerBytes else { throw .damaged("a change-log record is damaged") }
        return UInt64(littleEndian: value.loadUnaligned(fromByteOffset: changedOffset, as: UInt64.self))
    }

    static func decode(_ value: UnsafeRawBufferPointer, sequence: UInt64) throws(StorageFailure) -> LoggedMutation {
        let damage = StorageFailure.damaged("change-log record \(sequence) is damaged")
        let changed = try changed(in: value)
        let identifier = UInt128(littleEndian: value.loadUnaligned(fromByteOffset: identifierOffset, as: UInt128.self))
        let kind = value[kindOffset]
        let nameEnd = headerBytes + Int(value[nameCountOffset])
        let number = UInt32(littleEndian: value.loadUnaligned(fromByteOffset: numberOffset, as: UInt32.self))
        guard nameEnd <= value.count else { throw damage }
        if kind == Kind.edit {
            let name = UnsafeRawBufferPointer(rebasing: value[headerBytes..<nameEnd])
            let collaboration = CollaborationIdentifier(utf8: name)
            guard name.isEmpty || collaboration != nil,
                let edit = Edit(UnsafeRawBufferPointer(rebasing: value[nameEnd...]), collaboration: collaboration)
            else { throw damage }
            return LoggedMutation(
                sequence: sequence, changed: changed,
                mutation: Mutation(identifier: MutationIdentifier(identifier), .edit(edit)))
        }
        guard
            let collaboration = CollaborationIdentifier(
                utf8: UnsafeRawBufferPointer(rebasing: value[headerBytes..<nameEnd]))
        else { throw damage }
        var roots: [Digest] = []
        if kind == Kind.add || kind == Kind.remove {
            guard let base = value.baseAddress, value.count - nameEnd == Int(number) * Digest.byteCount else {
                throw damage
            }
            roots = (0..<Int(number)).map { Digest(at: base + nameEnd + $0 * Digest.byteCount) }
        }
        let change: Change
        switch kind {
        case Kind.create:
            guard let policy = ProofPolicy(kind: value[policyOffset], windowSeconds: number) else { throw damage }
            change = .createCollaboration(collaboration, policy)
        case Kind.drop: change = .dropCollaboration(collaboration)
        case Kind.add: change = .addRoots(collaboration, roots)
        case Kind.remove: change = .removeRoots(collaboration, roots)
        default: throw damage
        }
        return LoggedMutation(
            sequence: sequence, changed: changed,
            mutation: Mutation(identifier: MutationIdentifier(identifier), change))
    }
}
