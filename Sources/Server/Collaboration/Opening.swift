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
        batch.proof(
            at: index,
            in: UnsafeRawBufferPointer(rebasing: frame.bytes[(Limits.frameHeaderBytes + OpenRequest.headerBytes)...]))
    }
}

extension CollaborationLayer {
    /// Verifies the proofs of an open request and answers with verdicts and grants.
    ///
    /// Throws `busy` or `behindSequence`.
    func open(_ batch: ProofBatch, atLeast: UInt64, in frame: FrameBytes, _ ticket: Ticket) throws(ServiceError) {
        try check(atLeast: atLeast)
        let opening = Opening(batch, frame, ticket)
        guard batch.count > 0 else { return answer(opening, [], [], roots: []) }
        let request = VerificationRequest(count: batch.count, isSigned: true, wantsRoots: true) {
            opening.proof(at: $0)
        } completion: { [self] request, failure in
            if let failure { return ticket.fail(failure) }
            let roots = request.roots.map { Array($0) } ?? []
            grant(opening, Array(request.verdicts), roots)
        }
        guard pool.submit(request, from: ticket.source) else { throw Admission.busy }
    }

    private func check(atLeast: UInt64) throws(ServiceError) {
        guard atLeast > 0 else { return }
        try gate.rootSets.read { snapshot throws(ServiceError) in
            try Requests.check(atLeast: atLeast, try snapshot.lastSequence())
        }
    }

    /// On a worker: gives the granted proofs their grants, under a snapshot that is no older than the verdicts.
    private func grant(_ opening: Opening, _ verdicts: [Verdict], _ roots: [Digest]) {
        var verdicts = verdicts
        var grants = [UInt8](repeating: 0, count: 0)
        grants.reserveCapacity(verdicts.count * AccessGrant.byteCount)
        var joinings: [RecordKey: Edit] = [:]
        do throws(ServiceError) {
            try gate.rootSets.read { snapshot throws(ServiceError) in
                let sequence = try snapshot.lastSequence()
                let milliseconds = UInt64(max(0, wallClock().timeIntervalSince1970 * 1000))
                for index in verdicts.indices {
                    let start = grants.count
                    if verdicts[index] == .granted {
                        try grantOne(
                            opening.proof(at: index), roots[index], sequence, milliseconds, in: snapshot,
                            &verdicts[index], &grants, &joinings)
                    }
                    grants += [UInt8](repeating: 0, count: start + AccessGrant.byteCount - grants.count)
                }
            }
        } catch {
            return opening.ticket.fail(error)
        }
        guard !joinings.isEmpty else { return answer(opening, verdicts, grants, roots: roots) }
        let (settled, given) = (verdicts, grants)
        note(Array(joinings.values)) { [self] failure in
            switch failure?.code {
            case nil, .storageFull:
                // A full storage notes nothing, but keeps nobody out.
                answer(opening, settled, given, roots: roots)
            case .staleEdit where opening.staleCount.add(1, ordering: .relaxed).newValue < Limits.decisionsPerRequestMax:
                // Somebody joined or was removed at the same moment: look again.
                let isTaken = pool.submit(from: opening.ticket.source) { self.grant(opening, settled, roots) }
                if !isTaken { opening.ticket.fail(Admission.busy) }
            default:
                opening.ticket.fail(failure ?? Admission.busy)
            }
        }
    }

    private typealias RecordKey = [UInt8]

    private func grantOne(
        _ proof: BorrowedProof, _ root: Digest, _ sequence: UInt64, _ milliseconds: UInt64,
        in snapshot: borrowing Snapshot, _ verdict: inout Verdict, _ grants: inout [UInt8],
        _ joinings: inout [RecordKey: Edit]
    ) throws(ServiceError) {
        guard let collaboration = CollaborationIdentifier(utf8: proof.collaboration),
            let standing = try snapshot.record(Access.standingKey(collaboration))
        else { return }
        let person = PersonIdentity(rootHash: root)
        guard let access = Access(standing: standing, record: try snapshot.record(Access.key(collaboration, person)))
        else {
            // Removed since the proof was verified; or a root hash that was added past the layer, which is granted
            // without a grant as long as it is in the set.
            let isMember = try snapshot.test([root], in: collaboration)?.first ?? false
            if !isMember { verdict = .notParticipant }
            return
        }
        let claim = GrantClaim(
            permission: access.permission, role: access.role, expiry: self.grants.now + self.grants.validMilliseconds,
            sequence: sequence,
            collaboration: CollaborationLayer.fingerprint(SHA256.hash(collaboration.utf8)),
            deviceKey: CollaborationLayer.fingerprint(SHA256.hash(proof.publicKey)), rootHash: root)
        self.grants.issue(claim, to: &grants)
        let key = Joining.key(collaboration, person)
        if joinings[key] == nil, try snapshot.record(key) == nil {
            joinings[key] = Joining.edit(of: person, in: collaboration, access, milliseconds: milliseconds)
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
                if let settled = tally.settle(result) { completion(settled.failure) }
            }
        }
    }

    private final class Tally: Sendable {
        private let state: Mutex<(left: Int, failure: ServiceError?)>

        init(left: Int) {
            state = Mutex((left, nil))
        }

        /// The outcome of all when this was the last one.
        func settle(_ result: Result<MutationReceipt, ServiceError>) -> (failure: ServiceError?, Void)? {
            state.withLock { state in
                state.left -= 1
                if case .failure(let error) = result, state.failure?.code != .staleEdit {
                    if state.failure == nil || error.code == .staleEdit { state.failure = error }
                }
                return state.left == 0 ? (state.failure, ()) : nil
            }
        }
    }

    private func answer(_ opening: Opening, _ verdicts: [Verdict], _ grants: [UInt8], roots: [Digest]) {
        opening.ticket.answer { bytes in
            verdicts.withUnsafeBufferPointer { verdicts in
                roots.withUnsafeBufferPointer { roots in
                    VerdictList.append(verdicts, roots: opening.batch.wantsRoots ? roots : nil, to: &bytes)
                }
            }
            bytes.append(contentsOf: grants)
        }
    }
}
