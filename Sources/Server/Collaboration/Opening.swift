import Collaboration
import Core
import Foundation
import Hashing
import RootSets
import Synchronization
import Transport
import Verification
import Wire

// Verify with grants. A proof that is granted gets a grant when its person takes part in the collaboration; the first
// one of a person is noted as joining before anybody is told.

/// A verify request whose granted proofs get grants.
final class Opening: Sendable {
    let batch: ProofBatch
    let frame: FrameBytes
    let ticket: Ticket
    let staleCount = Atomic<Int>(0)

    init(_ batch: ProofBatch, _ frame: FrameBytes, _ ticket: Ticket) {
        self.batch = batch
        self.frame = frame
        self.ticket = ticket
    }

    func proof(at index: Int) -> BorrowedProof {
        batch.proof(at: index, in: body)
    }

    /// The batch's.
    var body: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: frame.bytes[Limits.frameHeaderBytes...])
    }
}

extension CollaborationLayer {
    /// Verifies the proofs of an open request and answers with verdicts and grants.
    ///
    /// Throws `busy` or `behindSequence`.
    func open(_ batch: ProofBatch, in frame: FrameBytes, _ ticket: Ticket) throws(ServiceError) {
        try gate.rootSets.check(atLeast: batch.atLeast)
        let opening = Opening(batch, frame, ticket)
        guard batch.count > 0 else { return answer(opening, Grants(verdicts: []), []) }
        let request = VerificationRequest(count: batch.count, isSigned: true, wantsRoots: true) {
            opening.batch.read($0, in: opening.body, into: $1)
        } completion: { [self] request, failure in
            if let failure { return ticket.fail(failure) }
            let roots = request.roots.map { Array($0) } ?? []
            grant(opening, Array(request.verdicts), roots)
        }
        guard pool.submit(request, from: ticket.source) else { throw Admission.busy }
    }

    /// What is given out for a request's proofs.
    private struct Grants {
        var verdicts: [Verdict]
        /// 112 bytes for each proof, zeros where there is no grant.
        var bytes: [UInt8] = []
        /// Those whose first proof it was, by the records that will say so.
        var joinings: [[UInt8]: Edit] = [:]
    }

    /// A collaboration whose proofs are being given grants.
    private struct Entrance {
        /// Where the request names it: the same for all proofs that name it together.
        let name: UnsafeRawPointer?
        let collaboration: CollaborationIdentifier
        /// `nil` when nobody started it by the layer.
        let standing: StoredRecord?
        let fingerprint: [UInt8]

        init?(_ name: UnsafeRawBufferPointer, _ snapshot: borrowing Snapshot) throws(ServiceError) {
            guard let collaboration = CollaborationIdentifier(utf8: name) else { return nil }
            self.name = name.baseAddress
            self.collaboration = collaboration
            standing = try snapshot.record(Access.standingKey(collaboration))
            fingerprint = CollaborationLayer.fingerprint(SHA256.hash(collaboration.utf8))
        }
    }

    /// On a worker: gives the granted proofs their grants, under a snapshot that is no older than the verdicts.
    private func grant(_ opening: Opening, _ verdicts: [Verdict], _ roots: [Digest]) {
        let grants: Grants
        do throws(ServiceError) {
            grants = try gate.rootSets.read { snapshot throws(ServiceError) in
                try self.grants(opening, verdicts, roots, in: snapshot)
            }
        } catch {
            return opening.ticket.fail(error)
        }
        guard !grants.joinings.isEmpty else { return answer(opening, grants, roots) }
        note(Array(grants.joinings.values)) { [self] failure in
            switch failure?.code {
            case nil, .storageFull:
                // A full storage notes nothing, but keeps nobody out.
                answer(opening, grants, roots)
            case .staleEdit where opening.staleCount.add(1, ordering: .relaxed).newValue < Limits.decisionsPerRequestMax:
                // Somebody joined or was removed at the same moment: look again.
                let isTaken = pool.submit(from: opening.ticket.source) {
                    self.grant(opening, grants.verdicts, roots)
                }
                if !isTaken { opening.ticket.fail(Admission.busy) }
            default:
                opening.ticket.fail(failure ?? Admission.busy)
            }
        }
    }

    private func grants(
        _ opening: Opening, _ verdicts: [Verdict], _ roots: [Digest], in snapshot: borrowing Snapshot
    ) throws(ServiceError) -> Grants {
        var grants = Grants(verdicts: verdicts)
        grants.bytes.reserveCapacity(verdicts.count * AccessGrant.byteCount)
        let sequence = try snapshot.lastSequence()
        let milliseconds = UInt64(max(0, wallClock().timeIntervalSince1970 * 1000))
        var entrance: Entrance?
        for index in verdicts.indices {
            if verdicts[index] == .granted {
                let proof = opening.proof(at: index)
                if entrance == nil || entrance?.name != proof.collaboration.baseAddress {
                    entrance = try Entrance(proof.collaboration, snapshot)
                }
                if let entrance {
                    try grantOne(
                        index, PersonIdentity(rootHash: roots[index]), proof, at: entrance, sequence, milliseconds,
                        in: snapshot, &grants)
                }
            }
            let end = (index + 1) * AccessGrant.byteCount
            grants.bytes += [UInt8](repeating: 0, count: end - grants.bytes.count)
        }
        return grants
    }

    private func grantOne(
        _ index: Int, _ person: PersonIdentity, _ proof: BorrowedProof, at entrance: Entrance, _ sequence: UInt64,
        _ milliseconds: UInt64, in snapshot: borrowing Snapshot, _ grants: inout Grants
    ) throws(ServiceError) {
        let collaboration = entrance.collaboration
        guard
            let access = Access(
                standing: entrance.standing, record: try snapshot.record(Access.key(collaboration, person)))
        else {
            // Removed since the proof was verified; or a root hash that was added past the layer, which is granted
            // without a grant as long as it is in the set.
            let isMember = try snapshot.test([person.rootHash], in: collaboration)?.first ?? false
            if !isMember { grants.verdicts[index] = .notParticipant }
            return
        }
        let claim = GrantClaim(
            permission: access.permission, role: access.role, expiry: self.grants.now + self.grants.validMilliseconds,
            sequence: sequence, collaboration: entrance.fingerprint,
            deviceKey: CollaborationLayer.fingerprint(SHA256.hash(proof.publicKey)), rootHash: person.rootHash)
        self.grants.issue(claim, to: &grants.bytes)
        let key = Joining.key(collaboration, person)
        if grants.joinings[key] == nil, try snapshot.record(key) == nil {
            grants.joinings[key] = Joining.edit(of: person, in: collaboration, access, milliseconds: milliseconds)
        }
    }

    static func fingerprint(_ digest: Digest) -> [UInt8] {
        digest.withUnsafeBytes { Array($0.prefix(AccessGrant.fingerprintBytes)) }
    }

    /// Commits the edits; `completion` gets the worst of what was refused, once all are settled.
    private func note(_ edits: [Edit], completion: @escaping @Sendable (ServiceError?) -> Void) {
        let tally = Tally(left: edits.count)
        for edit in edits {
            gate.rootSets.submit(Mutation(.edit(edit))) { result in
                if tally.settle(result) { completion(tally.failure) }
            }
        }
    }

    private final class Tally: Sendable {
        private let state: Mutex<(left: Int, failure: ServiceError?)>

        init(left: Int) {
            state = Mutex((left, nil))
        }

        /// Takes one result; whether it was the last one.
        func settle(_ result: Result<MutationReceipt, ServiceError>) -> Bool {
            state.withLock { state in
                state.left -= 1
                if case .failure(let error) = result, state.failure == nil || error.code == .staleEdit {
                    state.failure = error
                }
                return state.left == 0
            }
        }

        /// What was refused; looking again settles what is stale, so that goes before the rest.
        var failure: ServiceError? { state.withLock { $0.failure } }
    }

    private func answer(_ opening: Opening, _ grants: Grants, _ roots: [Digest]) {
        opening.ticket.answer { bytes in
            grants.verdicts.withUnsafeBufferPointer { verdicts in
                roots.withUnsafeBufferPointer { roots in
                    VerdictList.append(verdicts, roots: opening.batch.wantsRoots ? roots : nil, to: &bytes)
                }
            }
            bytes.append(contentsOf: grants.bytes)
        }
    }
}
