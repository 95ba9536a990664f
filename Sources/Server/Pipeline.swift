import Core
import RootSets
import Synchronization
import Transport
import Verification
import Wire

/// The whole flow: a frame comes in, is decoded, goes to whoever answers it
/// (this thread, the workers, the writer), and the answer goes out.
///
///     Session -> Pipeline.handle -> WorkerPool | RootSets -> Ticket -> Connection
struct Pipeline: Sendable {
    let gate: Gate
    let pool: WorkerPool
    let admission: Admission
    let statistics: StatisticsSource
    let collaboration: CollaborationLayer

    /// Sees to one request. `frame` is kept only by requests whose proofs stay in it.
    func handle(_ header: FrameHeader, body: UnsafeRawBufferPointer, frame: () -> FrameBytes, from session: Session) {
        let ticket = Ticket(header, session, admission)
        do throws(ServiceError) {
            let request = try Request.decode(operation: header.operation, body: body)
            try admission.admit(ticket, bytes: body.count + request.answerBytes)
            switch request {
            case .hello(let minimum, let maximum): try hello(minimum...maximum, ticket)
            case .ping(let content): ticket.answer { $0.append(contentsOf: content) }
            case .issueChallenges(let count): issue(count, ticket)
            case .verify(let batch): try verify(batch, in: frame(), ticket)
            case .mutate(let mutation): gate.rootSets.submit(mutation) { result in ticket.answer(result) }
            case .collaborate(let call): try collaboration.handle(call, ticket)
            case .open(let batch): try collaboration.open(batch, in: frame(), ticket)
            case .checkGrants(let batch): try collaboration.check(batch, ticket)
            default: try read(request, ticket)
            }
        } catch {
            ticket.fail(error)
        }
    }

    private func verify(_ batch: ProofBatch, in frame: FrameBytes, _ ticket: Ticket) throws(ServiceError) {
        try gate.rootSets.check(atLeast: batch.atLeast)
        guard batch.count > 0 else {
            return ticket.answer { VerdictList.append(UnsafeBufferPointer(start: nil, count: 0), roots: nil, to: &$0) }
        }
        let request = VerificationRequest(count: batch.count, isSigned: batch.isSigned, wantsRoots: batch.wantsRoots) {
            batch.read($0, in: UnsafeRawBufferPointer(rebasing: frame.bytes[Limits.frameHeaderBytes...]), into: $1)
        } completion: { request, failure in
            if let failure { return ticket.fail(failure) }
            ticket.answer { bytes in
                VerdictList.append(
                    UnsafeBufferPointer(request.verdicts), roots: request.roots.map { UnsafeBufferPointer($0) },
                    to: &bytes)
            }
        }
        guard pool.submit(request, from: ticket.source) else { throw Admission.busy }
    }

    private func read(_ request: Request, _ ticket: Ticket) throws(ServiceError) {
        let isTaken = pool.submit(from: ticket.source) {
            do throws(ServiceError) {
                try gate.rootSets.read { snapshot throws(ServiceError) in
                    try answer(request, from: snapshot, ticket)
                }
            } catch {
                ticket.fail(error)
            }
        }
        guard isTaken else { throw Admission.busy }
    }

    private func answer(
        _ request: Request, from snapshot: borrowing Snapshot, _ ticket: Ticket
    ) throws(ServiceError) {
        switch request {
        case .testRoots(let collaboration, let roots):
            let tests = try known(try snapshot.test(roots, in: collaboration), collaboration)
            ticket.answer { Answer.append(tests: tests, to: &$0) }
        case .listRoots(let collaboration, let start, let limit):
            let page = try known(try snapshot.roots(of: collaboration, after: start, limit: limit), collaboration)
            ticket.answer { Answer.append(roots: page.items, hasMore: page.hasMore, to: &$0) }
        case .countRoots(let collaboration):
            let summary = try known(try snapshot.summary(of: collaboration), collaboration)
            ticket.answer { Answer.append(policy: summary.policy, rootCount: summary.rootCount, to: &$0) }
        case .listCollaborations(let start, let limit):
            let page = try snapshot.collaborations(after: start, limit: limit)
            let items = page.items.map { ($0.identifier, $0.policy, $0.rootCount) }
            ticket.answer { Answer.append(collaborations: items, hasMore: page.hasMore, to: &$0) }
        case .statistics:
            let figures = statistics.figures(storage: try snapshot.statistics())
            ticket.answer { Answer.append(statistics: figures, to: &$0) }
        case .readChanges(let sequence, let limit):
            let page = try snapshot.changes(after: sequence, limit: limit)
            ticket.answer { Answer.append(changes: page.items, hasMore: page.hasMore, to: &$0) }
        case .hello, .ping, .issueChallenges, .verify, .mutate, .collaborate, .open, .checkGrants:
            throw ServiceError(.internalFault, "\(request.operation) is not read from a snapshot")
        }
    }

    private func known<T>(_ found: T?, _ collaboration: CollaborationIdentifier) throws(ServiceError) -> T {
        guard let found else {
            throw ServiceError(.unknownCollaboration, "there is no collaboration \(collaboration)")
        }
        return found
    }

    private func issue(_ count: Int, _ ticket: Ticket) {
        ticket.answer { bytes in
            Answer.appendChallengesHeader(
                count: count, challengeBytes: ChallengeBook.challengeBytes,
                validMilliseconds: gate.challenges.validMilliseconds, to: &bytes)
            gate.challenges.issue(count, into: &bytes)
        }
    }

    private func hello(_ versions: ClosedRange<UInt8>, _ ticket: Ticket) throws(ServiceError) {
        guard versions.contains(protocolVersion) else {
            throw ServiceError(
                .unsupportedVersion, detail: UInt32(protocolVersion), "only version \(protocolVersion) is spoken here")
        }
        let answer = HelloAnswer(
            version: protocolVersion,
            features: [.challenges, .deviceNonces, .inclusionOnly, .changeLog, .collaboration],
            limits: limits, software: "rootgate \(Service.version)")
        ticket.answer { answer.append(to: &$0) }
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
            .challengeValidMilliseconds: Int(gate.challenges.validMilliseconds),
        ]
        return Dictionary(uniqueKeysWithValues: named.map { ($0.key.rawValue, UInt64($0.value)) })
    }
}

extension Request {
    /// Bytes that the answer may take, for admission.
    fileprivate var answerBytes: Int {
        switch self {
        case .verify(let batch): batch.count * (batch.wantsRoots ? 1 + Digest.byteCount : 1)
        case .issueChallenges(let count): count * ChallengeBook.challengeBytes
        case .testRoots(_, let roots): roots.count
        case .listRoots, .listCollaborations: Limits.pageAnswerBytes
        case .readChanges: 4 * Limits.pageAnswerBytes
        // Looked at when the answer is made: most are short, or wait for news.
        case .collaborate: Limits.errorTextBytesMax
        case .open(let batch): batch.count * (1 + Digest.byteCount + GrantBatch.grantBytes)
        case .checkGrants(let batch): batch.count * GrantAnswer.byteCount
        case .hello, .ping, .mutate, .countRoots, .statistics: Limits.errorTextBytesMax
        }
    }
}
