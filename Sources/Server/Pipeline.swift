import Core
import RootSets
import Synchronization
import Transport
import Verification
import Wire

/// The whole flow of a request: its frame arrives and is decoded, this thread, a worker or the writer answers it, and
/// the answer is sent.
///
///     Session -> Pipeline.handle -> WorkerPool | RootSets -> PendingRequest -> Responder -> Connection
struct Pipeline: Sendable {
    let resources: VerificationResources
    let principals: PrincipalTable
    /// The way of all mutations.
    let storage: AuditedStorage
    let pool: WorkerPool
    let admission: Admission
    let statistics: StatisticsSource
    let collaboration: CollaborationLayer
    let confirmations: Confirmations
    /// `nil` unless the service is one of a cluster.
    let snapshots: SnapshotStore?
    let timers: Timers
    /// `nil` unless requests are traced.
    let tracer: RequestTracer?
    /// `nil` unless requests are metered.
    let meter: RequestMeter?

    /// Starts to answer one request. It calls `frame`, which keeps the frame's bytes, only when the request's proofs
    /// are read from them later; that takes `frameBytes` more bytes of memory. Returns the kind of the request's work.
    func handle(
        _ header: FrameHeader, body: UnsafeRawBufferPointer, frame: () -> FrameBytes, frameBytes: Int,
        respondingTo responder: Responder
    ) -> WorkKind {
        var kind = WorkKind.prompt
        // Before the principal: one who was removed elsewhere is not to be known by an older table than this.
        let moment = resources.rootSets.moment
        let pending = pending(header, responder)
        do throws(ServiceError) {
            let request = try Request.decode(operation: header.operation, body: body)
            let kept = request.isReadFromFrame ? frameBytes : body.count
            try pending.reserve(
                Limits.requestOverheadBytes + kept + request.answerBytes,
                // A frame that needs no memory to be kept is in the connection's own.
                received: frameBytes == 0 ? Limits.frameHeaderBytes + body.count : 0,
                keepsFrame: request.isReadFromFrame,
                isUrgent: Urgency.isUrgent(header.operation, body),
                isRemoval: Urgency.isRemoval(header.operation, body))
            let layered = try RoleCheck.check(request, body: body, pending)
            if let layered, layered.follows { kind = .following }
            if request.needsFreshness { try resources.rootSets.checkFresh(moment) }
            if let contents = request.contents { try resources.rootSets.admit(reading: contents) }
            try pending.spend(RequestCost(request, layered))
            switch request {
            case .hello(let minimum, let maximum, let key):
                try hello(minimum...maximum, key, pending, respondingTo: responder)
            case .ping(let content):
                // Whoever asks whether the service is ready asks so.
                if let error = resources.rootSets.health.unreadiness { throw error }
                try resources.rootSets.checkFresh(moment)
                pending.answer { $0.append(contentsOf: content) }
            case .issueChallenges(let count): try issue(count, pending)
            case .verify(let batch): try verify(batch, in: frame(), pending)
            case .mutate(let mutation): apply(mutation, pending)
            case .collaborate(let call): try collaboration.handle(call, layered, pending)
            case .open(let batch): try collaboration.open(batch, in: frame(), pending)
            case .checkGrants(let batch): try collaboration.check(batch, pending)
            case .confirmEverywhere(let sequence): confirm(sequence, pending)
            case .readSnapshot(let wanted): readSnapshot(wanted, pending)
            default: try read(request, pending)
            }
        } catch {
            pending.fail(error)
            // What follows a key that was not accepted is not done as somebody else.
            let isKeyed = header.operation == Operation.hello.rawValue && body.count > Request.helloBytes
            if isKeyed, error.code == .keyRefused || error.code == .busy { responder.refuse() }
        }
        return kind
    }

    /// Starts to answer requests that have one proof each, as many as `handle` would accept. Returns false, and does
    /// nothing, when one of them might be refused: then each is handled by itself. `received`: the bytes of their
    /// frames, which `frames` keeps; that takes `frameBytes` more bytes of memory.
    func handle(
        _ proofs: SingleProofs, in received: UnsafeRawBufferPointer, frames: () -> FrameBytes, frameBytes: Int,
        respondingTo responder: Responder
    ) -> Bool {
        // A trace follows single requests.
        guard tracer == nil else { return false }
        let moment = resources.rootSets.moment
        let principal = responder.identity.principal
        responder.become(principal.holder ?? responder.identity.address, pool)
        guard RoleCheck.allows(proofs, in: received, principal.authority),
            (try? resources.rootSets.checkFresh(moment)) != nil,
            (try? resources.rootSets.admit(reading: .sets)) != nil,
            (try? resources.rootSets.check(atLeast: proofs.atLeast)) != nil,
            let pending = PendingProofs.begin(
                proofs, frames: frames, frameBytes: frameBytes, responder, admission, principal.allowance, meter)
        else { return false }
        return pending.submit(to: pool, reading: resources.rootSets)
    }

    /// Answers `busy` to a request that is not read. Returns false when its connection is closed instead.
    func refuse(_ header: FrameHeader, respondingTo responder: Responder) -> Bool {
        pending(header, responder).refuse()
    }

    private func pending(_ header: FrameHeader, _ responder: Responder) -> PendingRequest {
        let pending = PendingRequest(header, responder, admission, tracer: tracer, audit: storage.trail, meter: meter)
        // The principals may have changed since the request before.
        responder.become(pending.principal.holder ?? responder.identity.address, pool)
        return pending
    }

    private func verify(
        _ batch: ProofBatch, in frame: FrameBytes, _ pending: PendingRequest,
        _ patience: LaggingRequests.Patience = .init()
    ) throws(ServiceError) {
        let isKept = try resources.rootSets.lacks(batch.atLeast, keptBy: collaboration.lagging, pending, patience) {
            () throws(ServiceError) in try self.verify(batch, in: frame, pending, patience)
        }
        if isKept { return }
        guard batch.count > 0 else {
            return pending.answer { VerdictList.append(UnsafeBufferPointer(start: nil, count: 0), roots: nil, to: &$0) }
        }
        pending.begin(.queued)
        let request = VerificationRequest(count: batch.count, isSigned: batch.isSigned, wantsRoots: batch.wantsRoots) {
            pending.begin(.working)
            batch.read($0, in: UnsafeRawBufferPointer(rebasing: frame.bytes[Limits.frameHeaderBytes...]), into: $1)
        } completion: { [resources] request, failure in
            if let failure { return pending.fail(failure) }
            do throws(ServiceError) {
                // Its first proofs may have been verified long ago.
                try resources.rootSets.checkFresh(request.moment)
            } catch {
                return pending.fail(error)
            }
            pending.answer { bytes in
                VerdictList.append(
                    UnsafeBufferPointer(request.verdicts), roots: request.roots.map { UnsafeBufferPointer($0) },
                    to: &bytes)
            }
        }
        guard pool.submit(request, from: pending.source) else { throw Admission.busy }
    }

    private func apply(_ mutation: Mutation, _ pending: PendingRequest) {
        pending.begin(.committing)
        storage.submit(pending.principal.own(mutation), for: pending) { result in pending.answer(result) }
    }

    /// Answers when every service of the cluster has the change, or answers nothing.
    private func confirm(_ sequence: UInt64, _ pending: PendingRequest, _ patience: LaggingRequests.Patience = .init())
    {
        pending.begin(.queued)
        guard confirmations.begin(of: pending.owner) else { return pending.fail(Admission.busy) }
        let owner = pending.owner
        resources.rootSets.whenEverywhere(sequence, within: Limits.everywhereMilliseconds) { [confirmations] result in
            confirmations.end(of: owner)
            switch result {
            case .success: pending.answer { $0.appendInteger(sequence) }
            case .failure(let error):
                pending.fail(error, lacking: .change(sequence), unlessKeptBy: collaboration.lagging, patience) {
                    () throws(ServiceError) in
                    self.confirm(sequence, pending, patience)
                }
            }
        }
    }

    private func readSnapshot(_ request: SnapshotRequest, _ pending: PendingRequest) {
        pending.begin(.queued)
        guard let snapshots else {
            return pending.fail(
                ServiceError(
                    .unknownOperation, detail: UInt32(Operation.readSnapshot.rawValue),
                    "only a service of a cluster gives snapshots"))
        }
        snapshots.read(request, of: pending.owner) { result in
            switch result {
            case .success(let piece): pending.answer { piece.append(to: &$0) }
            case .failure(let error): pending.fail(error)
            }
        }
    }

    private func read(_ request: Request, _ pending: PendingRequest) throws(ServiceError) {
        pending.begin(.queued)
        let list = FilteredList(request, for: pending.principal)
        guard submit(request, list, pending, arrival: resources.rootSets.logTime) else { throw Admission.busy }
    }

    /// Queues a read for a worker. A list of which the caller sees only a part may need several turns. `arrival`: of
    /// the request, by the clock of the shared log. `moment`: that of the turns before.
    private func submit(
        _ request: Request, _ list: FilteredList?, _ pending: PendingRequest, arrival: UInt64?,
        _ moment: ReadMoment = .always, _ patience: LaggingRequests.Patience = .init()
    ) -> Bool {
        pool.submit(from: pending.source) {
            guard !pending.isConnectionClosed else { return }
            pending.begin(.working)
            let asked = moment.older(than: resources.rootSets.moment)
            do throws(ServiceError) {
                try pending.reserveAnswer(request.pageBytes)
                guard var list else {
                    let body = try body(of: request)
                    if request.needsFreshness { try resources.rootSets.checkFresh(asked) }
                    return pending.answer(body)
                }
                let isDone = try resources.rootSets.read { snapshot throws(ServiceError) in
                    try list.readOn(snapshot)
                }
                if request.needsFreshness { try resources.rootSets.checkFresh(asked) }
                if isDone { return pending.answer { list.append(to: &$0) } }
                pending.begin(.queued)
                guard submit(request, list, pending, arrival: arrival, asked) else { throw Admission.busy }
            } catch {
                guard error.code.isAboutData else { return pending.fail(error) }
                pending.answerIfKnown(as: asked, since: arrival, keptBy: collaboration.lagging, patience) {
                    pending.fail(error)
                } retry: { () throws(ServiceError) in
                    pending.begin(.queued)
                    guard submit(request, list, pending, arrival: arrival, moment, patience) else {
                        throw Admission.busy
                    }
                }
            }
        }
    }

    /// Writes an answer's body.
    private typealias Body = (inout [UInt8]) -> Void

    /// Reads the answer of a request. It may be sent only when the read has ended well.
    private func body(of request: Request) throws(ServiceError) -> Body {
        do throws(ServiceError) {
            return try resources.rootSets.read { snapshot throws(ServiceError) in
                try body(of: request, from: snapshot)
            }
        } catch {
            // The figures of a storage that has failed are missing, but that it has failed is among the others.
            guard case .statistics = request, resources.rootSets.health.level != .intact else { throw error }
            let figures = statistics.figures(storage: nil)
            return { Answer.append(statistics: figures, to: &$0) }
        }
    }

    private func body(of request: Request, from snapshot: borrowing Snapshot) throws(ServiceError) -> Body {
        switch request {
        case .testRoots(let collaboration, let roots):
            let tests = try known(try snapshot.test(roots, in: collaboration), collaboration)
            return { Answer.append(tests: tests, to: &$0) }
        case .listRoots(let collaboration, let start, let limit):
            let page = try known(try snapshot.roots(of: collaboration, after: start, limit: limit), collaboration)
            return { Answer.append(roots: page.items, hasMore: page.hasMore, to: &$0) }
        case .countRoots(let collaboration):
            let summary = try known(try snapshot.summary(of: collaboration), collaboration)
            return { Answer.append(policy: summary.policy, rootCount: summary.rootCount, to: &$0) }
        case .listCollaborations(let start, let limit):
            let page = try snapshot.collaborations(after: start, limit: limit)
            let items = page.items.map { ($0.identifier, $0.policy, $0.rootCount) }
            return { Answer.append(collaborations: items, hasMore: page.hasMore, to: &$0) }
        case .statistics:
            let figures = statistics.figures(storage: try snapshot.statistics())
            return { Answer.append(statistics: figures, to: &$0) }
        case .readChanges(let sequence, let limit):
            let page = try snapshot.changes(after: sequence, limit: limit)
            return { Answer.append(changes: page.items, hasMore: page.hasMore, to: &$0) }
        case .hello, .ping, .issueChallenges, .verify, .mutate, .collaborate, .open, .checkGrants, .confirmEverywhere,
            .readSnapshot:
            throw ServiceError(.internalFault, "\(request.operation) is not read from a snapshot")
        }
    }

    private func known<T>(_ found: T?, _ collaboration: CollaborationIdentifier) throws(ServiceError) -> T {
        guard let found else {
            throw ServiceError(.unknownCollaboration, "there is no collaboration \(collaboration)")
        }
        return found
    }

    private func issue(_ count: Int, _ pending: PendingRequest) throws(ServiceError) {
        guard count > 0 else { return answer(with: UnsafeRawBufferPointer(start: nil, count: 0), pending) }
        pending.begin(.queued)
        let request = ChallengeRequest(count: count) {
            pending.begin(.working)
        } completion: { request in
            answer(with: request.bytes, pending)
        }
        guard pool.submit(request, from: pending.source) else { throw Admission.busy }
    }

    private func answer(with challenges: UnsafeRawBufferPointer, _ pending: PendingRequest) {
        pending.answer { bytes in
            bytes.reserveCapacity(bytes.count + 16 + challenges.count)
            Answer.appendChallengesHeader(
                count: challenges.count / ChallengeBook.challengeBytes, challengeBytes: ChallengeBook.challengeBytes,
                validMilliseconds: resources.challenges.validMilliseconds, to: &bytes)
            bytes.append(contentsOf: challenges)
        }
    }

    private func hello(
        _ versions: ClosedRange<UInt8>, _ key: [UInt8]?, _ pending: PendingRequest, respondingTo responder: Responder
    ) throws(ServiceError) {
        guard versions.contains(protocolVersion) else {
            throw ServiceError(
                .unsupportedVersion, detail: UInt32(protocolVersion), "only version \(protocolVersion) is spoken here")
        }
        if let key {
            try responder.identity.present(key: key)
            responder.become(responder.identity.holder, pool)
        }
        let answer = HelloAnswer(
            version: protocolVersion,
            features: [.challenges, .deviceNonces, .inclusionOnly, .changeLog, .collaboration],
            limits: limits, software: "rootgate \(Service.version)")
        pending.answer { answer.append(to: &$0) }
    }

    private var limits: [UInt16: UInt64] {
        let named: [HelloAnswer.Limit: Int] = [
            .frameBodyBytes: Limits.frameBodyBytesMax, .proofsPerRequest: Limits.proofsPerRequestMax,
            .collaborationsPerRequest: Limits.collaborationsPerRequestMax,
            .rootsPerRequest: Limits.rootsPerRequestMax, .rootsPerPage: Limits.rootsPerPageMax,
            .collaborationsPerPage: Limits.collaborationsPerPageMax, .changesPerPage: Limits.changesPerPageMax,
            .challengesPerRequest: Limits.challengesPerRequestMax,
            .requestsInFlight: Limits.requestsInFlightPerConnectionMax,
            .signedDataBytes: Limits.signedDataBytesMax, .inclusionHashes: Limits.inclusionHashesMax,
            .collaborationBytes: Limits.collaborationBytesMax, .challengeBytes: ChallengeBook.challengeBytes,
            .challengeValidMilliseconds: Int(resources.challenges.validMilliseconds),
        ]
        var limits = Dictionary(uniqueKeysWithValues: named.map { ($0.key.rawValue, UInt64($0.value)) })
        limits[HelloAnswer.Limit.issuer.rawValue] = resources.challenges.epoch
        return limits
    }
}

extension Request {
    /// Whether the request depends on what is stored: its answer, or whether its sender may send it. Where services
    /// share their changes, others may have taken a right away.
    fileprivate var needsFreshness: Bool {
        switch self {
        case .hello, .ping, .issueChallenges, .statistics, .readSnapshot: false
        case .verify, .open, .checkGrants, .mutate, .collaborate, .confirmEverywhere, .testRoots, .listRoots,
            .countRoots, .listCollaborations, .readChanges:
            true
        }
    }

    /// What is read for the request on a loop's thread; `nil`: nothing that the check of a start comes to late.
    fileprivate var contents: RootSets.Contents? {
        switch self {
        case .hello, .ping, .issueChallenges, .mutate, .statistics, .confirmEverywhere, .readSnapshot: nil
        case .verify, .testRoots, .listRoots, .countRoots, .listCollaborations: .sets
        case .open, .checkGrants, .collaborate: .records
        case .readChanges: .changes
        }
    }

    /// Whether proofs are read from the request's frame later. Everything else is copied out of it.
    fileprivate var isReadFromFrame: Bool {
        switch self {
        case .verify, .open: true
        default: false
        }
    }

    /// Bytes that are reserved for the answer, and for what is kept until then, when the request arrives.
    fileprivate var answerBytes: Int {
        switch self {
        case .verify(let batch): batch.count * (4 + (batch.wantsRoots ? 1 + Digest.byteCount : 1))
        // The challenges are in memory twice while the answer is built.
        case .issueChallenges(let count): 2 * count * ChallengeBook.challengeBytes
        case .open(let batch):
            batch.count * (4 + 1 + Digest.byteCount + Limits.grantBytes)
                + (batch.wantsOptions ? OptionLists.byteCountMax(batch.collaborationCount) : 0)
        case .checkGrants(let batch):
            batch.count * GrantAnswer.byteCount
                + (batch.wantsOptions ? OptionLists.byteCountMax(batch.collaborations.count) : 0)
        case .ping(let content): content.count
        case .readSnapshot: Limits.snapshotPieceBytes + 16
        case .hello, .mutate, .countRoots, .testRoots, .listRoots, .listCollaborations, .statistics, .readChanges,
            .collaborate, .confirmEverywhere:
            0
        }
    }

    /// Bytes of the longest answer of a request that is read from a snapshot. They are reserved when a worker begins
    /// with it, because many such requests may wait for one.
    fileprivate var pageBytes: Int {
        switch self {
        case .testRoots(_, let roots): roots.count
        case .listRoots(_, _, let limit): limit * Digest.byteCount
        case .listCollaborations(_, let limit): limit * (14 + Limits.collaborationBytesMax)
        case .readChanges: Limits.changesAnswerBytesMax
        case .statistics: Limits.statisticsAnswerBytesMax
        case .countRoots, .hello, .ping, .issueChallenges, .verify, .mutate, .collaborate, .open, .checkGrants,
            .confirmEverywhere, .readSnapshot:
            0
        }
    }
}
