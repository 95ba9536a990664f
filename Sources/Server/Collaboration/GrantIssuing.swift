import Collaboration
import Core
import Foundation
import Hashing
import RootSets
import Synchronization
import Transport
import Verification
import Wire

// The open request: verifying with grants. A granted proof gets a grant when its person is a participant of the layer.
// A person's first grant is answered after the record of the person's joining was committed.

/// One verify request whose granted proofs get grants.
final class GrantIssuing: Sendable {
    let batch: ProofBatch
    let frame: FrameBytes
    let pending: PendingRequest
    private let staleCount = Atomic<Int>(0)

    init(_ batch: ProofBatch, _ frame: FrameBytes, _ pending: PendingRequest) {
        self.batch = batch
        self.frame = frame
        self.pending = pending
    }

    /// Counts a decision whose edit was stale, and returns the number of such decisions.
    func countStaleDecision() -> Int { staleCount.add(1, ordering: .relaxed).newValue }

    func proof(at index: Int) -> BorrowedProof {
        batch.proof(at: index, in: body)
    }

    /// The body of the verify request, which the batch's offsets refer to.
    var body: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: frame.bytes[Limits.frameHeaderBytes...])
    }
}

extension CollaborationLayer {
    /// Verifies the proofs of an open request and answers with verdicts and grants.
    ///
    /// Throws `busy` or `behindSequence`.
    func open(
        _ batch: ProofBatch, in frame: FrameBytes, _ pending: PendingRequest,
        _ patience: LaggingRequests.Patience = .init()
    ) throws(ServiceError) {
        let isKept = try resources.rootSets.lacks(batch.atLeast, keptBy: lagging, pending, patience) {
            () throws(ServiceError) in try self.open(batch, in: frame, pending, patience)
        }
        if isKept { return }
        let issuing = GrantIssuing(batch, frame, pending)
        guard batch.count > 0 else {
            let none = [[UInt8]](
                repeating: SelectedOptions.none, count: batch.wantsOptions ? batch.collaborationCount : 0)
            let grants = Grants(verdicts: [], moment: resources.rootSets.moment, options: none)
            return answer(issuing, grants, [])
        }
        pending.begin(.queued)
        let request = VerificationRequest(count: batch.count, isSigned: true, wantsRoots: true) {
            pending.begin(.working)
            issuing.batch.read($0, in: issuing.body, into: $1)
        } completion: { [self] request, failure in
            if let failure { return pending.fail(failure) }
            let roots = request.roots.map { Array($0) } ?? []
            grant(issuing, Array(request.verdicts), roots, request.moment)
        }
        guard pool.submit(request, from: pending.source) else { throw Admission.busy }
    }

    /// The decided part of the answer to a request.
    private struct Grants {
        var verdicts: [Verdict]
        /// Before the oldest snapshot on which something of them was decided.
        let moment: ReadMoment
        /// 112 bytes for each proof, zeros where there is no grant.
        var bytes: [UInt8] = []
        /// The selected options of each of the request's collaborations, if they were asked for.
        var options: [[UInt8]] = []
        /// The edits that record the joining of participants, in the order of the proofs, and their records' keys.
        var joinings: [Edit] = []
        var joined: Set<[UInt8]> = []
    }

    /// Issues grants for the granted proofs. Reads a snapshot that is no older than the verdicts. Runs on a worker.
    ///
    /// `verified`: before the oldest snapshot that the verdicts come from.
    private func grant(_ issuing: GrantIssuing, _ verdicts: [Verdict], _ roots: [Digest], _ verified: ReadMoment) {
        let moment = verified.older(than: resources.rootSets.moment)
        let grants: Grants
        do throws(ServiceError) {
            grants = try resources.rootSets.read { snapshot throws(ServiceError) in
                try self.grants(issuing, Grants(verdicts: verdicts, moment: moment), roots, in: snapshot)
            }
        } catch {
            return issuing.pending.fail(error)
        }
        guard !grants.joinings.isEmpty else { return answer(issuing, grants, roots) }
        issuing.pending.begin(.committing)
        note(grants.joinings, issuing.pending) { [self] failure in
            let isDamaged = failure?.code == .storageDamaged && !resources.rootSets.health.hasFailed
            switch failure?.code {
            case _ where isDamaged, nil, .storageFull, .busy:
                // When the storage is full or damaged, or has too many changes to make, the joining is not recorded,
                // but the device gets its grant: what decides that was whole. A worker answers, because the answer may
                // be long and there is one writer; a full pool leaves it to the writer.
                let isTaken = pool.submit(from: issuing.pending.source) { self.answer(issuing, grants, roots) }
                if !isTaken { answer(issuing, grants, roots) }
            case .staleEdit where issuing.countStaleDecision() < Limits.decisionsPerRequestMax:
                // A participant joined or was removed at the same time: decide again on a newer snapshot.
                issuing.pending.begin(.queued)
                let isTaken = pool.submit(from: issuing.pending.source) {
                    issuing.pending.begin(.working)
                    self.grant(issuing, grants.verdicts, roots, grants.moment)
                }
                if !isTaken { issuing.pending.fail(Admission.busy) }
            default:
                issuing.pending.fail(failure ?? Admission.busy)
            }
        }
    }

    private func grants(
        _ issuing: GrantIssuing, _ undecided: Grants, _ roots: [Digest], in snapshot: borrowing Snapshot
    ) throws(ServiceError) -> Grants {
        let verdicts = undecided.verdicts
        precondition(roots.count == verdicts.count, "a proof has no root")
        var grants = undecided
        grants.bytes.reserveCapacity(verdicts.count * AccessGrant.byteCount)
        let sequence = try snapshot.lastSequence()
        let milliseconds = UInt64(max(0, wallClock().timeIntervalSince1970 * 1000))
        var lookup: AccessLookup?
        // Proofs with the same collaboration in the request refer to the same bytes of its name.
        var name: UnsafeRawPointer?
        for index in verdicts.indices {
            if verdicts[index] == .granted {
                let proof = issuing.proof(at: index)
                if name == nil || name != proof.collaboration.baseAddress {
                    name = proof.collaboration.baseAddress
                    lookup = nil
                    if let collaboration = CollaborationIdentifier(utf8: proof.collaboration) {
                        lookup = try AccessLookup(collaboration, snapshot)
                    }
                }
                if var known = lookup {
                    try grantOne(
                        index, PersonIdentity(rootHash: roots[index]), proof, &known, sequence, milliseconds,
                        in: snapshot, &grants)
                }
            }
            let end = (index + 1) * AccessGrant.byteCount
            grants.bytes += repeatElement(0, count: end - grants.bytes.count)
        }
        if issuing.batch.wantsOptions { grants.options = try options(issuing, grants, in: snapshot) }
        return grants
    }

    /// The selected options of each of the request's collaborations for which a grant was issued; no identifiers for
    /// the others.
    private func options(
        _ issuing: GrantIssuing, _ grants: Grants, in snapshot: borrowing Snapshot
    ) throws(ServiceError) -> [[UInt8]] {
        let batch = issuing.batch
        var isShown = [Bool](repeating: false, count: batch.collaborationCount)
        for index in 0..<batch.count where grants.bytes[index * AccessGrant.byteCount] != 0 {
            isShown[batch.collaborationIndex(of: index, in: issuing.body)] = true
        }
        var lists: [[UInt8]] = []
        var byteCount = batch.count * (1 + Digest.byteCount + Limits.grantBytes)
        for index in 0..<batch.collaborationCount {
            var list = SelectedOptions.none
            if isShown[index],
                let collaboration = CollaborationIdentifier(utf8: batch.collaboration(at: index, in: issuing.body))
            {
                list = try AccessLookup(collaboration, snapshot).selectedOptions(in: snapshot)
            }
            byteCount += list.count
            try checkLimit(byteCount, Limits.frameBodyBytesMax, "bytes of the answer with selected options")
            lists.append(list)
        }
        return lists
    }

    private func grantOne(
        _ index: Int, _ person: PersonIdentity, _ proof: BorrowedProof, _ lookup: inout AccessLookup,
        _ sequence: UInt64, _ milliseconds: UInt64, in snapshot: borrowing Snapshot, _ grants: inout Grants
    ) throws(ServiceError) {
        let collaboration = lookup.collaboration
        // The person may have been removed after the proof was verified.
        guard try lookup.isMember(person, in: snapshot) else {
            grants.verdicts[index] = .notParticipant
            return
        }
        // A root hash that was added to the set without the layer stays granted, and gets no grant.
        guard let access = Access(try lookup.own(person, in: snapshot), lookup.defaultPermission) else { return }
        assert(access.since <= sequence, "a record is newer than its snapshot")
        let claim = GrantClaim(
            permission: access.permission, role: access.role, expiry: self.grants.now + self.grants.validMilliseconds,
            sequence: sequence, collaboration: lookup.fingerprint,
            deviceKey: Fingerprint(SHA256.hash(proof.publicKey)), rootHash: person.rootHash)
        self.grants.issue(claim, to: &grants.bytes)
        let key = Joining.key(collaboration, person)
        if !grants.joined.contains(key), try snapshot.record(key) == nil {
            grants.joined.insert(key)
            grants.joinings.append(Joining.edit(of: person, in: collaboration, access, milliseconds: milliseconds))
        }
    }

    /// Commits the edits. Calls `completion` when all are committed or refused, with a failure if there was one.
    private func note(
        _ edits: [Edit], _ pending: PendingRequest, completion: @escaping @Sendable (ServiceError?) -> Void
    ) {
        let tally = Tally(left: edits.count)
        for edit in edits {
            storage.submit(Mutation(identifier: .random(from: random), .edit(edit)), for: pending) { result in
                if tally.settle(result) { completion(tally.failure) }
            }
        }
    }

    private final class Tally: Sendable {
        private let state: Lock<(left: Int, failure: ServiceError?)>

        init(left: Int) {
            state = Lock((left, nil))
        }

        /// Records one result; true when it was the last one.
        func settle(_ result: Result<MutationReceipt, ServiceError>) -> Bool {
            state.withLock { state in
                state.left -= 1
                if case .failure(let error) = result, state.failure == nil || error.code == .staleEdit {
                    state.failure = error
                }
                return state.left == 0
            }
        }

        /// The failure. A stale edit takes precedence over other failures, because deciding again resolves it.
        var failure: ServiceError? { state.withLock { $0.failure } }
    }

    private func answer(_ issuing: GrantIssuing, _ grants: Grants, _ roots: [Digest]) {
        do throws(ServiceError) {
            // To record a joining may have taken long.
            try resources.rootSets.checkFresh(grants.moment)
        } catch {
            return issuing.pending.fail(error)
        }
        issuing.pending.answer { bytes in
            grants.verdicts.withUnsafeBufferPointer { verdicts in
                roots.withUnsafeBufferPointer { roots in
                    VerdictList.append(verdicts, roots: issuing.batch.wantsRoots ? roots : nil, to: &bytes)
                }
            }
            bytes.append(contentsOf: grants.bytes)
            for list in grants.options { bytes.append(contentsOf: list) }
        }
    }
}
