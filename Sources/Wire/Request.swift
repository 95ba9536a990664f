package import Core

/// A request's body, decoded.
package enum Request: Sendable {
    /// The lowest and highest protocol version that the peer speaks, and the text of its API key, if it has one.
    case hello(minimum: UInt8, maximum: UInt8, key: [UInt8]? = nil)
    /// Bytes that the answer contains unchanged.
    case ping([UInt8])
    case issueChallenges(count: Int)
    case verify(ProofBatch)
    case mutate(Mutation)
    case testRoots(CollaborationIdentifier, [Digest])
    case listRoots(CollaborationIdentifier, after: Digest?, limit: Int)
    case countRoots(CollaborationIdentifier)
    case listCollaborations(after: CollaborationIdentifier?, limit: Int)
    case statistics
    case readChanges(after: UInt64, limit: Int)
    case confirmEverywhere(sequence: UInt64)
    case readSnapshot(SnapshotRequest)
    case collaborate(CollaborationCall)
    /// A verify request whose granted proofs get grants.
    case open(ProofBatch)
    case checkGrants(GrantBatch)

    /// Bytes of a hello's body without a key.
    package static let helloBytes = 4

    /// Reads the body of a request for `operation`. `verify` and `open` keep offsets into `body`; all else is copied.
    ///
    /// Throws `unknownOperation`, `malformedRequest` or `limitExceeded`; the connection can go on.
    package static func decode(operation: UInt16, body: UnsafeRawBufferPointer) throws(ServiceError) -> Request {
        guard let operation = Operation(rawValue: operation) else {
            throw ServiceError(.unknownOperation, detail: UInt32(operation), "operation \(operation) is unknown")
        }
        switch operation {
        case .verify: return .verify(try ProofBatch(body, isSigned: true))
        case .verifyInclusion: return .verify(try ProofBatch(body, isSigned: false))
        case .open: return .open(try ProofBatch(body, isSigned: true, isOpen: true))
        default: break
        }
        var reader = ByteReader(body)
        let request = try read(operation, &reader, bodyBytes: body.count)
        guard reader.isAtEnd else { throw malformedRequest("bytes follow the end of the request") }
        return request
    }

    private static func read(
        _ operation: Operation, _ reader: inout ByteReader, bodyBytes: Int
    ) throws(ServiceError) -> Request {
        switch operation {
        case .hello:
            guard let minimum = reader.byte(), let maximum = reader.byte(), let zero: UInt16 = reader.integer() else {
                throw tooShort
            }
            guard zero == 0 else { throw malformedRequest("a reserved bit is set") }
            guard minimum <= maximum else { throw malformedRequest("the lowest version is above the highest") }
            guard !reader.isAtEnd else { return .hello(minimum: minimum, maximum: maximum) }
            // Whatever stands here was presented as a key. One of another length is a wrong one.
            guard let key = reader.shortBytes(), !key.isEmpty else { throw tooShort }
            return .hello(minimum: minimum, maximum: maximum, key: Array(key))
        case .ping:
            try checkLimit(bodyBytes, Limits.pingBytesMax, "bytes of ping")
            guard let bytes = reader.bytes(bodyBytes) else { throw tooShort }
            return .ping(Array(bytes))
        case .issueChallenges:
            guard let count: UInt32 = reader.integer() else { throw tooShort }
            try checkLimit(Int(count), Limits.challengesPerRequestMax, "challenges")
            return .issueChallenges(count: Int(count))
        case .addRoots, .removeRoots, .createCollaboration, .dropCollaboration:
            guard let identifier: UInt128 = reader.integer() else { throw tooShort }
            return .mutate(Mutation(identifier: MutationIdentifier(identifier), try readChange(operation, &reader)))
        case .testRoots: return .testRoots(try readCollaboration(&reader), try readRoots(&reader))
        case .listRoots: return try readRootPage(&reader)
        case .countRoots: return .countRoots(try readCollaboration(&reader))
        case .listCollaborations:
            guard let limit: UInt32 = reader.integer(), let name = reader.shortBytes() else { throw tooShort }
            try checkPage(Int(limit), Limits.collaborationsPerPageMax)
            if name.isEmpty { return .listCollaborations(after: nil, limit: Int(limit)) }
            guard let start = CollaborationIdentifier(utf8: name) else { throw invalidCollaboration }
            return .listCollaborations(after: start, limit: Int(limit))
        case .statistics: return .statistics
        case .readChanges:
            guard let sequence: UInt64 = reader.integer(), let limit: UInt32 = reader.integer() else { throw tooShort }
            try checkPage(Int(limit), Limits.changesPerPageMax)
            return .readChanges(after: sequence, limit: Int(limit))
        case .confirmEverywhere:
            guard let sequence: UInt64 = reader.integer() else { throw tooShort }
            return .confirmEverywhere(sequence: sequence)
        case .readSnapshot:
            guard let request = SnapshotRequest(&reader) else { throw tooShort }
            return .readSnapshot(request)
        case .collaborate: return .collaborate(try CollaborationCall(&reader, bodyBytes: bodyBytes))
        case .checkGrants: return .checkGrants(try GrantBatch(&reader))
        case .edit:
            throw ServiceError(
                .unknownOperation, detail: UInt32(operation.rawValue), "edits are in the change log, but can't be sent")
        case .verify, .verifyInclusion, .open:
            throw ServiceError(.internalFault, "proofs are read elsewhere")
        }
    }

    /// What a mutation changes, behind its identifier.
    private static func readChange(
        _ operation: Operation, _ reader: inout ByteReader
    ) throws(ServiceError) -> Change {
        let collaboration = try readCollaboration(&reader)
        switch operation {
        case .addRoots: return .addRoots(collaboration, try readRoots(&reader))
        case .removeRoots: return .removeRoots(collaboration, try readRoots(&reader))
        case .dropCollaboration: return .dropCollaboration(collaboration)
        case .createCollaboration:
            guard let kind = reader.byte(), let window: UInt32 = reader.integer() else { throw tooShort }
            guard let policy = ProofPolicy(kind: kind, windowSeconds: window) else {
                throw malformedRequest("there is no policy \(kind) with a window of \(window) seconds")
            }
            return .createCollaboration(collaboration, policy)
        default: throw ServiceError(.internalFault, "\(operation) changes nothing")
        }
    }

    private static func readRootPage(_ reader: inout ByteReader) throws(ServiceError) -> Request {
        let collaboration = try readCollaboration(&reader)
        guard let limit: UInt32 = reader.integer(), let hasStart = reader.byte(), hasStart <= 1 else {
            throw tooShort
        }
        try checkPage(Int(limit), Limits.rootsPerPageMax)
        var start: Digest?
        if hasStart == 1 {
            guard let digest = reader.digest() else { throw tooShort }
            start = digest
        }
        return .listRoots(collaboration, after: start, limit: Int(limit))
    }

    private static var tooShort: ServiceError { malformedRequest("the body is too short") }

    private static var invalidCollaboration: ServiceError {
        malformedRequest("a collaboration's identifier is 1 to 128 bytes of UTF-8 without control characters")
    }

    static func readCollaboration(_ reader: inout ByteReader) throws(ServiceError) -> CollaborationIdentifier {
        guard let name = reader.shortBytes(), let identifier = CollaborationIdentifier(utf8: name) else {
            throw invalidCollaboration
        }
        return identifier
    }

    private static func readRoots(_ reader: inout ByteReader) throws(ServiceError) -> [Digest] {
        guard let count: UInt32 = reader.integer() else { throw tooShort }
        try checkLimit(Int(count), Limits.rootsPerRequestMax, "root hashes")
        guard let roots = reader.digests(Int(count)) else { throw tooShort }
        return roots
    }

    // MARK: Making one

    /// The operation that this request is for.
    package var operation: Operation {
        switch self {
        case .hello: .hello
        case .ping: .ping
        case .issueChallenges: .issueChallenges
        case .verify(let batch): batch.isSigned ? .verify : .verifyInclusion
        case .mutate(let mutation):
            switch mutation.change {
            case .createCollaboration: .createCollaboration
            case .dropCollaboration: .dropCollaboration
            case .addRoots: .addRoots
            case .removeRoots: .removeRoots
            case .edit: .edit
            }
        case .testRoots: .testRoots
        case .listRoots: .listRoots
        case .countRoots: .countRoots
        case .listCollaborations: .listCollaborations
        case .statistics: .statistics
        case .readChanges: .readChanges
        case .confirmEverywhere: .confirmEverywhere
        case .readSnapshot: .readSnapshot
        case .collaborate: .collaborate
        case .open: .open
        case .checkGrants: .checkGrants
        }
    }

    /// Appends the body. For a `verify`, use `ProofBatch.append`: the proofs are not in this value.
    package func append(to bytes: inout [UInt8]) {
        switch self {
        case .hello(let minimum, let maximum, let key):
            bytes.append(minimum)
            bytes.append(maximum)
            bytes.appendInteger(UInt16(0))
            if let key { bytes.appendShortBytes(key) }
        case .ping(let content): bytes.append(contentsOf: content)
        case .issueChallenges(let count): bytes.appendInteger(UInt32(count))
        case .verify, .open: preconditionFailure("proofs are written by ProofBatch.append")
        case .checkGrants: preconditionFailure("grants are written by GrantBatch.append")
        case .collaborate(let call): call.append(to: &bytes)
        case .mutate(let mutation):
            bytes.appendInteger(mutation.identifier.value)
            bytes.appendShortBytes(mutation.change.collaboration?.utf8 ?? [])
            switch mutation.change {
            case .createCollaboration(_, let policy):
                bytes.append(policy.code.kind)
                bytes.appendInteger(policy.code.windowSeconds)
            case .dropCollaboration: break
            case .addRoots(_, let roots), .removeRoots(_, let roots):
                bytes.appendInteger(UInt32(roots.count))
                bytes.appendDigests(roots)
            case .edit: preconditionFailure("edits are not sent")
            }
        case .testRoots(let collaboration, let roots):
            bytes.appendShortBytes(collaboration.utf8)
            bytes.appendInteger(UInt32(roots.count))
            bytes.appendDigests(roots)
        case .listRoots(let collaboration, let start, let limit):
            bytes.appendShortBytes(collaboration.utf8)
            bytes.appendInteger(UInt32(limit))
            bytes.append(start == nil ? 0 : 1)
            if let start { bytes.appendDigests([start]) }
        case .countRoots(let collaboration): bytes.appendShortBytes(collaboration.utf8)
        case .listCollaborations(let start, let limit):
            bytes.appendInteger(UInt32(limit))
            bytes.appendShortBytes(start?.utf8 ?? [])
        case .statistics: break
        case .readChanges(let sequence, let limit):
            bytes.appendInteger(sequence)
            bytes.appendInteger(UInt32(limit))
        case .confirmEverywhere(let sequence): bytes.appendInteger(sequence)
        case .readSnapshot(let request): request.append(to: &bytes)
        }
    }
}
