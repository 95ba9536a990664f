package import Core
import Hashing
import Identity
import RootgateClient
import Wire

/// Makes the requests of a mix, for a population.
package struct MixedRequests: Sendable {
    /// How much is in a request.
    package struct Sizes: Sendable {
        /// Proofs or grants on average, from 1 to `Limits.proofsPerRequestMax`.
        package var batch = 1.0
        /// Root hashes of a mutation.
        package var roots = 1
        /// Notices of a post.
        package var notices = 1

        package init() {}
    }

    /// Requests whose proofs are not made yet.
    package struct Drafts: Sendable {
        fileprivate var list: [Draft] = []
        /// How many challenges the proofs sign.
        package fileprivate(set) var challengeCount = 0
        /// Proofs of all requests.
        package fileprivate(set) var proofCount = 0
        package var count: Int { list.count }
    }

    fileprivate enum Draft: Sendable {
        case proofs(LoadKind, [DraftedProof], firstChallenge: Int)
        case check([(grant: Int, isSpoiled: Bool)])
        case mutate(Mutation)
        case post(grant: Int, notices: Int)
    }

    fileprivate struct DraftedProof: Sendable {
        let person: Int
        let device: Int
        let forgery: Forgery?
    }

    private let population: Population
    private var choice: DeviceChoice
    private var forged: EvenPart
    private var forgeries = (signed: 0, unsigned: 0)
    private var nextGrant = 0
    /// Parts of proofs or grants that the requests so far have not had.
    private var owed = 0.0
    /// Root hashes that mutations have added and none has removed.
    private var added: [(collaboration: CollaborationIdentifier, roots: [Digest])] = []
    private var mutations = 0

    package var sizes = Sizes()
    /// What checks and posts show; not empty when there are such requests.
    package var grants: [HeldGrant] = []

    /// `invalidPart`: of the proofs and of the checked grants, from 0 to 1. They are forgeries, of all kinds in turn.
    package init(_ population: Population, choice: DeviceChoice, invalidPart: Double) {
        self.population = population
        self.choice = choice
        forged = EvenPart(invalidPart)
    }

    /// Forgeries from now on; see `init`.
    package mutating func forge(_ part: Double) { forged = EvenPart(part) }

    /// Drafts a request of each of the kinds, in order. `proofsMax`: proofs of all together, at most; the last request
    /// may have fewer than the others, and requests without any are left out.
    package mutating func drafts(_ kinds: [LoadKind], proofsMax: Int = .max) -> Drafts {
        var drafts = Drafts()
        for kind in kinds {
            switch kind {
            case .verify, .inclusion, .open:
                let count = min(nextBatch(), proofsMax - drafts.proofCount)
                guard count > 0 else { continue }
                let proofs = (0..<count).map { _ in draftProof(isSigned: kind != .inclusion) }
                drafts.list.append(.proofs(kind, proofs, firstChallenge: drafts.challengeCount))
                drafts.proofCount += count
                if kind.needsChallenges { drafts.challengeCount += count }
            case .check:
                let count = min(nextBatch(), Limits.grantsPerCheckMax)
                drafts.list.append(.check((0..<count).map { _ in (takeGrant(), forged.next()) }))
            case .mutate: drafts.list.append(.mutate(nextMutation()))
            case .post: drafts.list.append(.post(grant: takeGrant(), notices: sizes.notices))
            }
        }
        return drafts
    }

    /// Makes the requests on all cores. `challenges`: as many as the drafts need.
    ///
    /// Throws `internalFault` when libcrypto can't sign.
    package func requests(_ drafts: Drafts, challenges: [[UInt8]]) throws(ServiceError) -> [LoadRequest] {
        precondition(challenges.count >= drafts.challengeCount, "there are not enough challenges")
        return try inParallel(drafts.count) { number throws(ServiceError) in
            switch drafts.list[number] {
            case .proofs(let kind, let proofs, let first): try request(kind, proofs, challenges[first...])
            case .check(let checks): try check(checks)
            case .mutate(let mutation): LoadRequest(.mutate(mutation), kind: .mutate)
            case .post(let grant, let notices): try post(by: grants[grant], notices)
            }
        }
    }

    // MARK: Drafting

    private mutating func nextBatch() -> Int {
        owed += sizes.batch
        let count = min(max(1, Int(owed)), Limits.proofsPerRequestMax)
        owed -= Double(count)
        return count
    }

    private mutating func draftProof(isSigned: Bool) -> DraftedProof {
        let (person, device) = choice.next()
        guard forged.next() else { return DraftedProof(person: person, device: device, forgery: nil) }
        let forgery: Forgery
        if isSigned {
            forgery = Forgery.allCases[forgeries.signed % Forgery.allCases.count]
            forgeries.signed += 1
        } else {
            forgery = Forgery.withoutSignature[forgeries.unsigned % Forgery.withoutSignature.count]
            forgeries.unsigned += 1
        }
        return DraftedProof(person: person, device: device, forgery: forgery)
    }

    /// The position of the next grant. All of them take turns.
    private mutating func takeGrant() -> Int {
        precondition(!grants.isEmpty, "there are no grants to show")
        nextGrant = (nextGrant + 1) % grants.count
        return nextGrant
    }

    /// Sets in turn get root hashes, which a later mutation removes.
    private mutating func nextMutation() -> Mutation {
        mutations += 1
        if mutations % 2 == 0, let oldest = added.first {
            added.removeFirst()
            return Mutation(.removeRoots(oldest.collaboration, oldest.roots))
        }
        let collaboration = population.collaborations[mutations / 2 % population.collaborations.count]
        let roots = (0..<sizes.roots).map { _ in Digest(RandomSource.system.bytes(Digest.byteCount)) ?? .zero }
        added.append((collaboration, roots))
        return Mutation(.addRoots(collaboration, roots))
    }

    // MARK: Making

    private func request(
        _ kind: LoadKind, _ drafted: [DraftedProof], _ challenges: ArraySlice<[UInt8]>
    ) throws(ServiceError) -> LoadRequest {
        var proofs: [LoadRequest.Proof] = []
        proofs.reserveCapacity(drafted.count)
        for (number, draft) in drafted.enumerated() {
            var proof: SignedIdentityProof
            if kind == .inclusion {
                proof = try population.inclusionProof(of: draft.person, device: draft.device)
            } else {
                proof = try population.people[draft.person].proof(
                    ofDevice: draft.device, signing: challenges[challenges.startIndex + number])
            }
            if let forgery = draft.forgery { proof = try forgery.spoil(proof, stranger: population.stranger) }
            let verdict = draft.forgery?.verdict ?? (kind == .inclusion ? .included : .granted)
            proofs.append((population.collaboration(ofPerson: draft.person), proof, verdict))
        }
        return try LoadRequest(proofs, of: population.collaborations, kind: kind)
    }

    private func check(_ checks: [(grant: Int, isSpoiled: Bool)]) throws(ServiceError) -> LoadRequest {
        var statuses: [GrantStatus] = []
        let shown = checks.map { check in
            let held = grants[check.grant]
            var bytes = held.grant.bytes
            // The tag is at the end.
            if check.isSpoiled { bytes[bytes.count - 1] ^= 1 }
            statuses.append(check.isSpoiled ? .forged : .valid)
            return GrantBatch.Entry(collaboration: held.collaboration, deviceKey: held.deviceKey, grant: bytes)
        }
        return try LoadRequest(shown, expected: statuses, of: population.collaborations)
    }

    private func post(by held: HeldGrant, _ notices: Int) throws(ServiceError) -> LoadRequest {
        let events = (0..<notices).map { HighlightEvent.change(trigger: $0 % 2 == 0 ? .edit : .comment) }
        let post = PostNotices(events, on: population.collaborations[held.collaboration], by: held.grant)
        let call = CollaborationCall(
            identifier: MutationIdentifier.random(), name: PostNotices.name, json: try JSON.encode(post))
        return LoadRequest(.collaborate(call), kind: .post)
    }
}

/// Says yes to a part of all calls, as evenly as possible.
struct EvenPart: Sendable {
    private let part: Double
    private var lag = 0.0

    /// `part`: from 0 to 1.
    init(_ part: Double) {
        self.part = min(max(part, 0), 1)
    }

    mutating func next() -> Bool {
        lag += part
        // A sum of many parts that make a whole is a little less than one.
        guard lag >= 1 - 1e-9 else { return false }
        lag -= 1
        return true
    }
}

extension Forgery {
    /// Those that spoil something else than the signature or what was signed.
    fileprivate static let withoutSignature: [Forgery] = [
        .tooManySiblings, .hybridKey, .truncatedKey, .indexBeyondTree, .changedSibling, .wrongIndex, .otherKey,
    ]
}
