@testable import Collaboration
import Core
import Foundation
import Hashing
import RootgateClient
@testable import Server
import Synchronization
import TestSupport
import Testing
import Transport

/// Every way to check a grant against a model that was written from the documents alone: the fields of grants, the
/// order of the checks, and what revokes grants.
@Suite("Every way to check a grant")
struct GrantAgreementTests {
    /// The status that a check gives a grant.
    private struct Answer: Equatable {
        var status: GrantStatus
        var permission: Permission?
        var role: ParticipantRole?
        var millisecondsLeft: UInt64?

        init(_ status: GrantStatus) {
            self.status = status
        }

        init(_ finding: GrantFinding) {
            switch finding {
            case .refused(let status): self.init(status)
            case .valid(_, let access, let millisecondsLeft):
                self.init(.valid)
                (permission, role) = (access.permission, access.role)
                self.millisecondsLeft = min(millisecondsLeft, UInt64(UInt32.max))
            }
        }

        init(_ decision: GrantDecision) {
            self.init(decision.status)
            (permission, role) = (decision.permission, decision.role)
            millisecondsLeft = decision.timeLeft.map { UInt64($0 / .milliseconds(1)) }
        }
    }

    @Test("Every way to check a grant gives the status that the documents give it")
    func agreement() async throws {
        let scene = try GrantScene(seed: runSeed)
        var counts: [GrantStatus: Int] = [:]
        for _ in 0..<24 {
            for _ in 0..<6 { try scene.changeSomething() }
            let shown = scene.grants(150)
            let expected = shown.map { answer(to: $0, $0.deviceKey, in: scene) }
            let decisions = try await scene.client.check(shown.map(\.check))
            #expect(decisions.count == shown.count)
            for (place, (grant, decision)) in zip(shown, decisions).enumerated() {
                counts[expected[place].status, default: 0] += 1
                #expect(Answer(decision) == expected[place], "batch: \(grant), seed \(runSeed)")
                #expect(scene.book.isGenuine(grant.grant) == grant.isGenuine, "book: \(grant), seed \(runSeed)")
            }
            for grant in shown {
                let expected = answer(to: grant, nil, in: scene)
                #expect(Answer(try scene.finding(grant)) == expected, "rules: \(grant), seed \(runSeed)")
            }
            for grant in shown.prefix(30) {
                let expected = answer(to: grant, nil, in: scene).status
                #expect(try await scene.bearerStatus(grant) == expected, "bearer: \(grant), seed \(runSeed)")
            }
        }
        // Each status came so often that the comparison means something.
        for status in GrantStatus.allCases where status != .unknown {
            #expect(counts[status, default: 0] > 30, "\(status): \(counts[status, default: 0]), seed \(runSeed)")
        }
    }

    @Test("A genuine grant with any byte changed is forged in every way")
    func everyByte() async throws {
        let scene = try GrantScene(seed: runSeed)
        let (grant, collaboration) = try scene.validGrant()
        #expect(try await scene.client.check([GrantCheck(grant, in: collaboration)])[0].status == .valid)
        var generator = SeededGenerator(seed: runSeed)
        var shown: [GrantScene.Shown] = []
        for place in 0..<AccessGrant.byteCount {
            var bytes = grant.bytes
            bytes[place] ^= UInt8.random(in: 1...255, using: &generator)
            let changed = try #require(AccessGrant(bytes: bytes))
            shown.append(GrantScene.Shown(grant: changed, isGenuine: false, collaboration: collaboration))
        }
        let decisions = try await scene.client.check(shown.map(\.check))
        for (place, (grant, decision)) in zip(shown, decisions).enumerated() {
            #expect(decision.status == .forged, "byte \(place), seed \(runSeed)")
            #expect(!scene.book.isGenuine(grant.grant), "byte \(place), seed \(runSeed)")
            #expect(try scene.finding(grant) == .refused(.forged), "byte \(place), seed \(runSeed)")
        }
        for place in stride(from: 0, to: shown.count, by: 7) {
            #expect(try await scene.bearerStatus(shown[place]) == .forged, "byte \(place), seed \(runSeed)")
        }
    }

    /// The status that the documents give a grant when a device with this key shows it.
    private func answer(to shown: GrantScene.Shown, _ deviceKey: [UInt8]?, in scene: GrantScene) -> Answer {
        let bytes = shown.grant.bytes
        func number(_ range: Range<Int>) -> UInt64 { bytes[range].reversed().reduce(0) { $0 << 8 | UInt64($1) } }
        guard shown.isGenuine, bytes[0] == 1, (1...2).contains(bytes[1]), (1...3).contains(bytes[2]),
            bytes[3..<8] == [0, 0, 0, 0, 0]
        else { return Answer(.forged) }
        let expiry = number(8..<16)
        guard expiry >= GrantScene.now, expiry <= GrantScene.now + 86_400_000 else { return Answer(.expired) }
        guard bytes[24..<40] == SHA256.hash(shown.collaboration.utf8).bytes[..<16] else {
            return Answer(.otherCollaboration)
        }
        if let deviceKey, bytes[40..<56] != deviceKey[...] { return Answer(.otherDevice) }
        let state = scene.states[shown.collaboration]
        let root = Array(bytes[56..<88])
        guard let state, let preset = state.preset, let own = state.own[root], state.hasSet,
            state.members.contains(root)
        else { return Answer(.revoked) }
        let inherits = own.value[0] == 0
        let since = inherits ? max(own.version, preset.version) : own.version
        guard since <= number(16..<24) else { return Answer(.revoked) }
        var answer = Answer(.valid)
        answer.permission = (inherits ? preset.value[0] : own.value[0]) == 1 ? .readOnly : .readWrite
        answer.role = [.owner, .administrator, .member][Int(own.value[1]) - 1]
        answer.millisecondsLeft = min(expiry - GrantScene.now, UInt64(UInt32.max))
        return answer
    }
}

/// A service whose key for grants is known and whose clock stands still, with three collaborations whose records and
/// sets are changed at random, in ways that the layer's requests would never change them too.
private final class GrantScene {
    /// A grant, and where and by whom it is shown.
    struct Shown: CustomStringConvertible {
        var grant: AccessGrant
        /// Whether its tag is right.
        var isGenuine: Bool
        var collaboration: CollaborationIdentifier
        var deviceKey: [UInt8]?

        var check: GrantCheck { GrantCheck(grant, in: collaboration, deviceKey: deviceKey) }
        var description: String { "\(grant.bytes.hexadecimal) for \(collaboration)" }
    }

    /// A collaboration, as the model has it.
    struct State {
        struct Record {
            var version: UInt64
            var value: [UInt8]
        }

        var hasSet = false
        var members: Set<[UInt8]> = []
        /// The default permission.
        var preset: Record?
        /// By root hash.
        var own: [[UInt8]: Record] = [:]
    }

    static let now: UInt64 = 1_000_000
    private static let secret = [UInt8](1...32)
    /// Values of a participant's record and of a default permission, and none. Others are damage, which is an error.
    private static let ownValues: [[UInt8]?] = [[0, 3], [0, 3], [0, 1], [1, 3], [2, 3], [2, 2], nil, nil]
    private static let presetValues: [[UInt8]?] = [[1], [2], [1], [2], nil]

    let client: RootgateClient
    let book: GrantBook
    private let key: MessageAuthenticator
    private(set) var states: [CollaborationIdentifier: State] = [:]
    private let directory = ScratchDirectory()
    private let service: Service
    private let collaborations: [CollaborationIdentifier]
    private let roots: [[UInt8]]
    private let deviceKeys: [[UInt8]]
    private var generator: SeededGenerator
    private var sequence: UInt64 = 0

    init(seed: UInt64) throws {
        generator = SeededGenerator(seed: seed)
        var generator = generator
        collaborations = try ["a", "b", "c"].map { try #require(CollaborationIdentifier($0)) }
        roots = (0..<4).map { _ in generator.bytes(32) }
        deviceKeys = (0..<3).map { _ in generator.bytes(16) }
        // The service's root secret, the only 32 random bytes that it takes, is this one.
        let random = RandomSource { buffer in
            if buffer.count == 32 {
                buffer.copyBytes(from: GrantScene.secret)
            } else {
                RandomSource.system.fill(buffer)
            }
        }
        let clock = MonotonicClock { GrantScene.now }
        let secret = try KeyDerivation.hkdf(
            secret: GrantScene.secret, info: Array("rootgate grant v1".utf8), count: 32)
        key = MessageAuthenticator(key: secret)
        book = GrantBook(validMilliseconds: 1, clock: clock, keys: RotatingKeys(KeyPair(current: key)))
        var configuration = Configuration(dataDirectory: directory.path + "/data", workers: 2)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        configuration.times.drain = 5
        service = try Service(
            configuration, clock: clock, random: random,
            wallClock: { Date(timeIntervalSince1970: Double(GrantScene.now) / 1000) })
        client = try RootgateClient(service.endpoints[0], configuration: .init(requestTimeout: patience))
        for collaboration in collaborations { try start(collaboration) }
    }

    deinit {
        _ = service.shutDown()
    }

    // MARK: Changes

    private func apply(_ edit: Edit) throws {
        sequence = try service.resources.rootSets.apply(Mutation(.edit(edit))).sequence
    }

    private func start(_ collaboration: CollaborationIdentifier) throws {
        var edit = Edit(collaboration)
        edit.creation = .challenge
        edit.addedRoots = roots.compactMap { Digest($0) }
        edit.records = [RecordEdit(RecordKeys.defaultPermission(collaboration), value: [2])]
        edit.records += roots.map { RecordEdit(ownKey(collaboration, $0), value: [0, 3]) }
        try apply(edit)
        var state = State(hasSet: true, members: Set(roots), preset: .init(version: sequence, value: [2]))
        for root in roots { state.own[root] = .init(version: sequence, value: [0, 3]) }
        states[collaboration] = state
    }

    private func ownKey(_ collaboration: CollaborationIdentifier, _ root: [UInt8]) -> [UInt8] {
        RecordKeys.access(collaboration, PersonIdentity(rootHash: Digest(root) ?? .zero))
    }

    /// One random change: of a record, which may be missing then, or of a set.
    func changeSomething() throws {
        let collaboration = pick(collaborations)
        let root = pick(roots)
        guard var state = states[collaboration] else { return }
        guard state.hasSet else { return try start(collaboration) }
        var edit = Edit()
        switch Int.random(in: 0..<12, using: &generator) {
        case 0..<5:
            let value = pick(GrantScene.ownValues)
            edit.records = [RecordEdit(ownKey(collaboration, root), value: value)]
            try apply(edit)
            state.own[root] = value.map { .init(version: sequence, value: $0) }
        case 5..<8:
            let value = pick(GrantScene.presetValues)
            edit.records = [RecordEdit(RecordKeys.defaultPermission(collaboration), value: value)]
            try apply(edit)
            state.preset = value.map { .init(version: sequence, value: $0) }
        case 8:
            edit.collaboration = collaboration
            edit.removedRoots = [Digest(root) ?? .zero]
            try apply(edit)
            state.members.remove(root)
        case 9, 10:
            edit.collaboration = collaboration
            edit.addedRoots = roots.compactMap { Digest($0) }
            try apply(edit)
            state.members = Set(roots)
        default:
            edit.collaboration = collaboration
            edit.dropsCollaboration = true
            try apply(edit)
            (state.hasSet, state.members) = (false, [])
        }
        states[collaboration] = state
    }

    // MARK: Grants

    private func pick<Value>(_ values: [Value]) -> Value { values[Int.random(in: values.indices, using: &generator)] }

    /// True once in `count` times.
    private func isOne(in count: Int) -> Bool { Int.random(in: 0..<count, using: &generator) == 0 }

    /// Random grants, most of them right in most respects.
    func grants(_ count: Int) -> [Shown] { (0..<count).compactMap { _ in randomGrant() } }

    private func randomGrant() -> Shown? {
        let collaboration = pick(collaborations)
        let root = isOne(in: 20) ? generator.bytes(32) : pick(roots)
        let deviceKey = pick(deviceKeys)
        var bytes: [UInt8] = [
            isOne(in: 40) ? UInt8.random(in: 0...255, using: &generator) : 1, pick([1, 2]), pick([1, 2, 3]), 0, 0, 0, 0,
            0,
        ]
        if isOne(in: 20) {
            bytes[Int.random(in: 0..<8, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
        }
        let now = GrantScene.now
        bytes.appendInteger(
            pick([
                now, now, now + 1, now + 60_000, now + 86_400_000, now + 86_400_001, isOne(in: 2) ? .max : now,
                now - 1, isOne(in: 2) ? 0 : now,
            ]))
        bytes.appendInteger(randomSequence(collaboration, root))
        bytes += SHA256.hash((isOne(in: 10) ? pick(collaborations) : collaboration).utf8).bytes.prefix(16)
        bytes += deviceKey
        bytes += root
        let tag = bytes.withRawBytes { key.tag(of: $0) }
        bytes += tag.bytes.prefix(24)
        let isGenuine = !isOne(in: 12)
        if !isGenuine {
            bytes[Int.random(in: bytes.indices, using: &generator)] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        }
        return AccessGrant(bytes: bytes).map { grant in
            Shown(
                grant: grant, isGenuine: isGenuine, collaboration: collaboration,
                deviceKey: isOne(in: 3) ? nil : isOne(in: 8) ? pick(deviceKeys) : deviceKey)
        }
    }

    /// A sequence at or about one that matters.
    private func randomSequence(_ collaboration: CollaborationIdentifier, _ root: [UInt8]) -> UInt64 {
        let own = states[collaboration]?.own[root]?.version ?? 1
        let preset = states[collaboration]?.preset?.version ?? 1
        return pick([
            sequence, sequence, own, own - 1, preset, preset - 1, max(own, preset), max(own, preset) - 1, 0, .max,
        ])
    }

    /// A grant that is valid now, and where.
    func validGrant() throws -> (AccessGrant, CollaborationIdentifier) {
        var bytes: [UInt8] = []
        let claim = GrantClaim(
            permission: .readWrite, role: .member, expiry: GrantScene.now, sequence: sequence,
            collaboration: Fingerprint(SHA256.hash(collaborations[0].utf8)), deviceKey: Fingerprint(.zero),
            rootHash: try #require(Digest(roots[0])))
        book.issue(claim, to: &bytes)
        return (try #require(AccessGrant(bytes: bytes)), collaborations[0])
    }

    // MARK: Checks

    /// The status by the rules, on the service's own records.
    func finding(_ shown: Shown) throws -> GrantFinding {
        let context = RuleContext(
            now: .distantPast, random: .system, sha256: { SHA256.hash($0) }, settings: CollaborationSettings(),
            grants: book)
        return try service.resources.rootSets.read { snapshot throws(ServiceError) in
            try snapshot.check(shown.grant, for: shown.collaboration, context)
        }
    }

    /// The status in the answer to a request that is made with the grant and posts nothing.
    func bearerStatus(_ shown: Shown) async throws -> GrantStatus? {
        do {
            _ = try await client.send(PostNotices([], on: shown.collaboration, by: shown.grant))
            return .valid
        } catch {
            guard error.code == .grantRefused else { throw error }
            return GrantStatus(rawValue: UInt8(error.detail))
        }
    }
}
