package import Core

/// The service's description of itself: the answer to hello.
///
///     version (1)  zero (3)  features (4)  limits (2)  each limit: number (2), value (8)
///     length (1), software
package struct HelloAnswer: Equatable, Sendable {
    package struct Features: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }
        package static let challenges = Features(rawValue: 1)
        package static let deviceNonces = Features(rawValue: 2)
        package static let inclusionOnly = Features(rawValue: 4)
        package static let changeLog = Features(rawValue: 8)
        package static let collaboration = Features(rawValue: 16)
    }

    /// The numbers of the limits; a peer skips those that it does not know.
    package enum Limit: UInt16, CaseIterable, Sendable {
        case frameBodyBytes = 1
        case proofsPerRequest = 2
        case collaborationsPerRequest = 3
        case rootsPerRequest = 4
        case rootsPerPage = 5
        case collaborationsPerPage = 6
        case changesPerPage = 7
        case challengesPerRequest = 8
        case requestsInFlight = 9
        case signedDataBytes = 10
        case inclusionHashes = 11
        case collaborationBytes = 12
        case challengeBytes = 13
        case challengeValidMilliseconds = 14
        /// No limit: the bytes 16 to 23 of the challenges that the service issues since its start, little-endian.
        case issuer = 15
    }

    package var version: UInt8
    package var features: Features
    package var limits: [UInt16: UInt64]
    package var software: String

    package init(version: UInt8, features: Features, limits: [UInt16: UInt64], software: String) {
        self.version = version
        self.features = features
        self.limits = limits
        self.software = software
    }

    package func append(to bytes: inout [UInt8]) {
        bytes.append(version)
        bytes.append(contentsOf: [0, 0, 0])
        bytes.appendInteger(features.rawValue)
        bytes.appendInteger(UInt16(limits.count))
        for (number, value) in limits.sorted(by: { $0.key < $1.key }) {
            bytes.appendInteger(number)
            bytes.appendInteger(value)
        }
        bytes.appendShortBytes(software.utf8.prefix(255))
    }

    /// Throws `malformedAnswer`.
    package init(_ body: UnsafeRawBufferPointer) throws(ServiceError) {
        var reader = ByteReader(body)
        guard let version = reader.byte(), reader.bytes(3) != nil, let features: UInt32 = reader.integer(),
            let count: UInt16 = reader.integer()
        else { throw malformedAnswer }
        var limits: [UInt16: UInt64] = [:]
        for _ in 0..<count {
            guard let number: UInt16 = reader.integer(), let value: UInt64 = reader.integer() else {
                throw malformedAnswer
            }
            limits[number] = value
        }
        guard let software = reader.shortBytes(), reader.isAtEnd else { throw malformedAnswer }
        self.init(
            version: version, features: Features(rawValue: features), limits: limits,
            software: String(decoding: software, as: UTF8.self))
    }
}

/// The bodies of the other answers, each beside its reader.
package enum Answer {
    /// Challenges: count (4), bytes of each (2), zero (2), valid milliseconds (8), the challenges.
    package static func appendChallengesHeader(
        count: Int, challengeBytes: Int, validMilliseconds: UInt64, to bytes: inout [UInt8]
    ) {
        bytes.appendInteger(UInt32(count))
        bytes.appendInteger(UInt16(challengeBytes))
        bytes.appendInteger(UInt16(0))
        bytes.appendInteger(validMilliseconds)
    }

    /// Throws `malformedAnswer`.
    package static func challenges(
        _ body: UnsafeRawBufferPointer
    ) throws(ServiceError) -> (challenges: [[UInt8]], validMilliseconds: UInt64) {
        var reader = ByteReader(body)
        guard let count: UInt32 = reader.integer(), let size: UInt16 = reader.integer(),
            let _: UInt16 = reader.integer(), let valid: UInt64 = reader.integer()
        else { throw malformedAnswer }
        var challenges: [[UInt8]] = []
        for _ in 0..<count {
            guard let bytes = reader.bytes(Int(size)), size > 0 else { throw malformedAnswer }
            challenges.append(Array(bytes))
        }
        guard reader.isAtEnd else { throw malformedAnswer }
        return (challenges, valid)
    }

    /// A receipt: sequence (8), changed (8), repeat (1).
    package static func append(_ receipt: MutationReceipt, to bytes: inout [UInt8]) {
        bytes.appendInteger(receipt.sequence)
        bytes.appendInteger(receipt.changed)
        bytes.append(receipt.isRepeat ? 1 : 0)
    }

    /// Throws `malformedAnswer`.
    package static func receipt(_ body: UnsafeRawBufferPointer) throws(ServiceError) -> MutationReceipt {
        var reader = ByteReader(body)
        guard let sequence: UInt64 = reader.integer(), let changed: UInt64 = reader.integer(),
            let isRepeat = reader.byte(), isRepeat <= 1, reader.isAtEnd
        else { throw malformedAnswer }
        return MutationReceipt(sequence: sequence, changed: changed, isRepeat: isRepeat == 1)
    }

    /// Tests: count (4), a byte each, 1 for a root hash that is in the set.
    package static func append(tests: [Bool], to bytes: inout [UInt8]) {
        bytes.appendInteger(UInt32(tests.count))
        for isMember in tests { bytes.append(isMember ? 1 : 0) }
    }

    /// Throws `malformedAnswer`.
    package static func tests(_ body: UnsafeRawBufferPointer) throws(ServiceError) -> [Bool] {
        var reader = ByteReader(body)
        guard let count: UInt32 = reader.integer(), let block = reader.bytes(Int(count)), reader.isAtEnd else {
            throw malformedAnswer
        }
        return block.map { $0 == 1 }
    }

    /// A page of root hashes: count (4), more (1), zero (3), the root hashes.
    package static func append(roots: [Digest], hasMore: Bool, to bytes: inout [UInt8]) {
        bytes.appendInteger(UInt32(roots.count))
        bytes.append(hasMore ? 1 : 0)
        bytes.append(contentsOf: [0, 0, 0])
        bytes.appendDigests(roots)
    }

    /// Throws `malformedAnswer`.
    package static func roots(_ body: UnsafeRawBufferPointer) throws(ServiceError) -> (roots: [Digest], hasMore: Bool) {
        var reader = ByteReader(body)
        guard let count: UInt32 = reader.integer(), let more = reader.byte(), reader.bytes(3) != nil,
            let roots = reader.digests(Int(count)), reader.isAtEnd
        else { throw malformedAnswer }
        return (roots, more == 1)
    }

    /// A collaboration's state: policy (1), window in seconds (4), root hashes (8).
    package static func append(policy: ProofPolicy, rootCount: UInt64, to bytes: inout [UInt8]) {
        bytes.append(policy.code.kind)
        bytes.appendInteger(policy.code.windowSeconds)
        bytes.appendInteger(rootCount)
    }

    /// Throws `malformedAnswer`.
    package static func count(
        _ body: UnsafeRawBufferPointer
    ) throws(ServiceError) -> (policy: ProofPolicy, rootCount: UInt64) {
        var reader = ByteReader(body)
        guard let state = collaborationState(&reader), reader.isAtEnd else { throw malformedAnswer }
        return state
    }

    private static func collaborationState(_ reader: inout ByteReader) -> (policy: ProofPolicy, rootCount: UInt64)? {
        guard let kind = reader.byte(), let window: UInt32 = reader.integer(), let count: UInt64 = reader.integer(),
            let policy = ProofPolicy(kind: kind, windowSeconds: window)
        else { return nil }
        return (policy, count)
    }

    /// One collaboration of a listing.
    package typealias ListedCollaboration = (
        identifier: CollaborationIdentifier, policy: ProofPolicy, rootCount: UInt64
    )

    /// A page of collaborations: count (4), more (1), zero (3), each: its state, length (1), identifier.
    package static func append(
        collaborations: [ListedCollaboration], hasMore: Bool, to bytes: inout [UInt8]
    ) {
        bytes.appendInteger(UInt32(collaborations.count))
        bytes.append(hasMore ? 1 : 0)
        bytes.append(contentsOf: [0, 0, 0])
        for collaboration in collaborations {
            append(policy: collaboration.policy, rootCount: collaboration.rootCount, to: &bytes)
            bytes.appendShortBytes(collaboration.identifier.utf8)
        }
    }

    /// Throws `malformedAnswer`.
    package static func collaborations(
        _ body: UnsafeRawBufferPointer
    ) throws(ServiceError) -> (collaborations: [ListedCollaboration], hasMore: Bool) {
        var reader = ByteReader(body)
        guard let count: UInt32 = reader.integer(), let more = reader.byte(), reader.bytes(3) != nil else {
            throw malformedAnswer
        }
        var collaborations: [ListedCollaboration] = []
        for _ in 0..<count {
            guard let state = collaborationState(&reader), let name = reader.shortBytes(),
                let identifier = CollaborationIdentifier(utf8: name)
            else { throw malformedAnswer }
            collaborations.append((identifier, state.policy, state.rootCount))
        }
        guard reader.isAtEnd else { throw malformedAnswer }
        return (collaborations, more == 1)
    }

    /// Statistics: count (2), each: length (1), name, value (8).
    package static func append(statistics: [(name: String, value: UInt64)], to bytes: inout [UInt8]) {
        bytes.appendInteger(UInt16(statistics.count))
        for (name, value) in statistics {
            bytes.appendShortBytes(name.utf8)
            bytes.appendInteger(value)
        }
    }

    /// Throws `malformedAnswer`.
    package static func statistics(
        _ body: UnsafeRawBufferPointer
    ) throws(ServiceError) -> [(name: String, value: UInt64)] {
        var reader = ByteReader(body)
        guard let count: UInt16 = reader.integer() else { throw malformedAnswer }
        var statistics: [(name: String, value: UInt64)] = []
        for _ in 0..<count {
            guard let name = reader.shortBytes(), let value: UInt64 = reader.integer() else { throw malformedAnswer }
            statistics.append((String(decoding: name, as: UTF8.self), value))
        }
        guard reader.isAtEnd else { throw malformedAnswer }
        return statistics
    }

    /// The sequence of the change that every service has.
    ///
    /// Throws `malformedAnswer`.
    package static func confirmation(_ body: UnsafeRawBufferPointer) throws(ServiceError) -> UInt64 {
        var reader = ByteReader(body)
        guard let sequence: UInt64 = reader.integer(), reader.isAtEnd else { throw malformedAnswer }
        return sequence
    }

    /// A page of the change log: count (4), more (1), zero (3), each: sequence (8), changed (8), mutation
    /// identifier (16), operation (2), policy (1), zero (1), window in seconds, number of roots or bytes of an edit
    /// (4), length (1), collaboration identifier, root hashes or edit.
    package static func append(changes: [LoggedMutation], hasMore: Bool, to bytes: inout [UInt8]) {
        bytes.appendInteger(UInt32(changes.count))
        bytes.append(hasMore ? 1 : 0)
        bytes.append(contentsOf: [0, 0, 0])
        for change in changes {
            var policy: UInt8 = 0
            var number: UInt32 = 0
            var roots: [Digest] = []
            var editBytes: [UInt8] = []
            switch change.mutation.change {
            case .createCollaboration(_, let chosen): (policy, number) = chosen.code
            case .dropCollaboration: break
            case .addRoots(_, let listed), .removeRoots(_, let listed): (roots, number) = (listed, UInt32(listed.count))
            case .edit(let edit):
                edit.append(to: &editBytes)
                number = UInt32(editBytes.count)
            }
            bytes.appendInteger(change.sequence)
            bytes.appendInteger(change.changed)
            bytes.appendInteger(change.mutation.identifier.value)
            bytes.appendInteger(Request.mutate(change.mutation).operation.rawValue)
            bytes.append(policy)
            bytes.append(0)
            bytes.appendInteger(number)
            bytes.appendShortBytes(change.mutation.change.collaboration?.utf8 ?? [])
            bytes.appendDigests(roots)
            bytes.append(contentsOf: editBytes)
        }
    }

    /// Throws `malformedAnswer`.
    package static func changes(
        _ body: UnsafeRawBufferPointer
    ) throws(ServiceError) -> (changes: [LoggedMutation], hasMore: Bool) {
        var reader = ByteReader(body)
        guard let count: UInt32 = reader.integer(), let more = reader.byte(), reader.bytes(3) != nil else {
            throw malformedAnswer
        }
        var changes: [LoggedMutation] = []
        for _ in 0..<count {
            guard let change = change(&reader) else { throw malformedAnswer }
            changes.append(change)
        }
        guard reader.isAtEnd else { throw malformedAnswer }
        return (changes, more == 1)
    }

    private static func change(_ reader: inout ByteReader) -> LoggedMutation? {
        guard let sequence: UInt64 = reader.integer(), let changed: UInt64 = reader.integer(),
            let identifier: UInt128 = reader.integer(), let code: UInt16 = reader.integer(),
            let policyKind = reader.byte(), reader.byte() != nil, let number: UInt32 = reader.integer(),
            let name = reader.shortBytes()
        else { return nil }
        let named = CollaborationIdentifier(utf8: name)
        if Operation(rawValue: code) == .edit {
            guard name.isEmpty || named != nil, let body = reader.bytes(Int(number)),
                let edit = Edit(body, collaboration: named)
            else { return nil }
            return LoggedMutation(
                sequence: sequence, changed: changed,
                mutation: Mutation(identifier: MutationIdentifier(identifier), .edit(edit)))
        }
        guard let collaboration = named else { return nil }
        let change: Change
        switch Operation(rawValue: code) {
        case .createCollaboration:
            guard let policy = ProofPolicy(kind: policyKind, windowSeconds: number) else { return nil }
            change = .createCollaboration(collaboration, policy)
        case .dropCollaboration: change = .dropCollaboration(collaboration)
        case .addRoots:
            guard let roots = reader.digests(Int(number)) else { return nil }
            change = .addRoots(collaboration, roots)
        case .removeRoots:
            guard let roots = reader.digests(Int(number)) else { return nil }
            change = .removeRoots(collaboration, roots)
        default: return nil
        }
        return LoggedMutation(
            sequence: sequence, changed: changed,
            mutation: Mutation(identifier: MutationIdentifier(identifier), change))
    }
}
