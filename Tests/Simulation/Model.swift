/// What one collaboration's set is after a change.
struct SetState: Equatable {
    var exists = false
    /// The people whose root hashes are in the set.
    var members: UInt64 = 0
}

/// A change that a client has asked for, under one mutation identifier.
final class MutationRecord {
    enum Kind: Equatable {
        case create
        case drop
        case add(UInt64)
        case remove(UInt64)
        /// Changes of the collaboration layer: participants, and posts of so many events.
        case participants(added: UInt64, removed: UInt64)
        case post(author: Int)
    }

    let number: Int
    let collaboration: Int
    let kind: Kind
    let operation: UInt16
    let body: [UInt8]
    let firstSent: UInt64
    /// The grant with which a post was made, by its number in the model.
    var grant: Int?
    /// The role that it needs, if its operation does not say.
    var role: Role?
    var principal: SimulatedPrincipal.Kind?
    var sequence: UInt64?
    var changed: UInt64?
    /// When the first receipt arrived.
    var acknowledged: UInt64?
    var inFlight = 0
    /// When an attempt was lost last, so that nobody knows what came of it.
    var lost: UInt64?
    /// An error that was the last word.
    var isRefused = false
    var isSettled: Bool { sequence != nil || isRefused && inFlight == 0 }

    init(number: Int, collaboration: Int, kind: Kind, operation: UInt16, body: [UInt8], firstSent: UInt64) {
        self.number = number
        self.collaboration = collaboration
        self.kind = kind
        self.operation = operation
        self.body = body
        self.firstSent = firstSent
    }
}

/// From when to when something was decided: steps of the run and milliseconds of its clock.
struct Interval {
    var began: UInt64
    var ended: UInt64
    var beganAt: UInt64
    var endedAt: UInt64
    /// Which start of the service decided it.
    var epoch: Int
}

/// An independent model of the service: what clients were told, and whether one history explains all of it.
///
/// The changes have an order, which their receipts tell. A reading must be explained by the state after one of the
/// changes that were the last durable one while it was under way. That is judged at the end of a run, when every
/// change has its receipt.
final class Model {
    struct Challenge {
        var bytes: [UInt8]
        var issued: Interval
        /// Proofs that were or may have been granted with it.
        var uses: [ProofUse] = []
    }

    final class ProofUse {
        let plan: ProofPlan
        let sent: UInt64
        let sentAt: UInt64
        let epoch: Int
        let isOpen: Bool
        var verdict: UInt8?
        var answered: Interval?

        /// Whether the challenge or nonce may be spent by this. An open is refused although its proof has held when the
        /// person is removed before the grant is made.
        var maySpend: Bool { verdict == nil || verdict == 1 || (isOpen && verdict == 27) }

        init(_ plan: ProofPlan, sent: UInt64, sentAt: UInt64, epoch: Int, isOpen: Bool) {
            self.isOpen = isOpen
            self.plan = plan
            self.sent = sent
            self.sentAt = sentAt
            self.epoch = epoch
        }
    }

    struct Grant {
        var bytes: [UInt8]
        var person: Int
        var device: Int
        var issued: Interval
    }

    private struct Reading {
        var text: String
        var collaboration: Int
        var interval: Interval
        var atLeast: UInt64
        var explains: (SetState) -> Bool
    }

    /// The last sequences of commits, with the steps at which they became durable.
    private var commits: [(step: UInt64, last: UInt64)] = [(0, 0)]
    private(set) var mutations: [MutationRecord] = []
    private var posts: [MutationRecord] = []
    private var bySequence: [UInt64: MutationRecord] = [:]
    private var readings: [Reading] = []
    private(set) var challenges: [Challenge] = []
    private var numbers: [[UInt8]: Int] = [:]
    private var nonceUses: [[UInt8]: [ProofUse]] = [:]
    private(set) var grants: [Grant] = []
    private var grantChecks: [(grant: Int, isValid: Bool, interval: Interval, what: String)] = []
    /// The newest post that a page of notices has had.
    private(set) var lastPostRead: UInt64 = 0
    private var pages: [(after: UInt64, next: UInt64, posts: [UInt64], interval: Interval)] = []
    private var logs: [(sequence: UInt64, operation: UInt16, changed: UInt64)] = []
    let challengeMilliseconds: UInt64
    let grantMilliseconds: UInt64
    let nonceMilliseconds: UInt64
    /// The collaboration whose policy is device nonce, and that of the layer.
    static let nonceCollaboration = 2
    static let layerCollaboration = 3
    /// Stands for the question whether the reader has the role observe, as a set that exists or does not.
    static let readersRole = 4

    init(challengeMilliseconds: UInt64, grantMilliseconds: UInt64, nonceMilliseconds: UInt64) {
        self.challengeMilliseconds = challengeMilliseconds
        self.grantMilliseconds = grantMilliseconds
        self.nonceMilliseconds = nonceMilliseconds
    }

    // MARK: What happened

    var lastDurable: UInt64 { commits[commits.count - 1].last }

    func committed(_ last: UInt64, at step: UInt64) { commits.append((step, last)) }

    /// The last durable sequence at a step.
    private func durable(at step: UInt64) -> UInt64 {
        var low = 0
        var high = commits.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if commits[middle].step <= step { low = middle } else { high = middle }
        }
        return commits[low].last
    }

    func add(_ mutation: MutationRecord) {
        mutations.append(mutation)
        if case .post = mutation.kind { posts.append(mutation) }
    }

    func receipt(
        _ mutation: MutationRecord, sequence: UInt64, changed: UInt64, isRepeat: Bool, at step: UInt64
    ) throws {
        let what = "mutation \(mutation.number) (\(mutation.kind))"
        guard sequence <= lastDurable else {
            throw Violation("\(what) has the receipt \(sequence), but only \(lastDurable) is durable")
        }
        guard sequence > 0 else { throw Violation("\(what) has the sequence 0") }
        if let known = mutation.sequence, known != sequence {
            throw Violation("\(what) has the receipts \(known) and \(sequence)")
        }
        if let known = mutation.changed, isRepeat, known != changed {
            throw Violation("\(what) has changed \(known) and \(changed)")
        }
        if let other = bySequence[sequence], other !== mutation {
            throw Violation("\(what) and mutation \(other.number) (\(other.kind)) have the sequence \(sequence)")
        }
        mutation.sequence = sequence
        if mutation.changed == nil || !isRepeat { mutation.changed = changed }
        if mutation.acknowledged == nil { mutation.acknowledged = step }
        bySequence[sequence] = mutation
    }

    func read(
        _ text: String, _ collaboration: Int, _ interval: Interval, atLeast: UInt64 = 0,
        _ explains: @escaping (SetState) -> Bool
    ) {
        readings.append(
            Reading(
                text: text, collaboration: collaboration, interval: interval, atLeast: atLeast, explains: explains))
    }

    /// Judges a request that demanded a sequence: it is refused as long as that is not durable, and only then.
    func demanded(_ sequence: UInt64, isRefused: Bool, _ interval: Interval) throws {
        if isRefused, durable(at: interval.began) >= sequence {
            throw Violation("the sequence \(sequence), which was durable, was called missing")
        }
        if !isRefused, durable(at: interval.ended) < sequence {
            throw Violation("a request was answered that demands the sequence \(sequence), which is not durable")
        }
    }

    func issue(_ bytes: [UInt8], _ interval: Interval) throws {
        guard numbers.updateValue(challenges.count, forKey: bytes) == nil else {
            throw Violation("a challenge was issued twice")
        }
        challenges.append(Challenge(bytes: bytes, issued: interval))
    }

    /// A proof is sent.
    func use(_ plan: ProofPlan, sent: UInt64, at time: UInt64, epoch: Int, isOpen: Bool, key: [UInt8]) -> ProofUse {
        let use = ProofUse(plan, sent: sent, sentAt: time, epoch: epoch, isOpen: isOpen)
        if let challenge = plan.challenge { challenges[challenge].uses.append(use) }
        if let nonce = plan.nonce { nonceUses[key + nonce, default: []].append(use) }
        return use
    }

    func grant(_ bytes: [UInt8], person: Int, device: Int, _ interval: Interval) {
        grants.append(Grant(bytes: bytes, person: person, device: device, issued: interval))
    }

    func grantChecked(_ grant: Int, isValid: Bool, _ interval: Interval, _ what: String) {
        grantChecks.append((grant, isValid, interval, what))
    }

    func page(after: UInt64, next: UInt64, posts: [UInt64], _ interval: Interval) {
        pages.append((after, next, posts, interval))
        lastPostRead = max(lastPostRead, posts.max() ?? 0)
    }

    func logged(sequence: UInt64, operation: UInt16, changed: UInt64) {
        logs.append((sequence, operation, changed))
    }

    /// A challenge that was issued lately and that nobody has used.
    func freshChallenge(_ dice: inout Dice) -> Int? {
        let unused = challenges.indices.suffix(40).filter { challenges[$0].uses.isEmpty }
        return unused.isEmpty ? nil : unused[dice.below(unused.count)]
    }

    /// A proof that was granted with one of the last challenges: whoever sends it again replays it.
    func grantedPlan(in collaboration: Int, _ dice: inout Dice) -> ProofPlan? {
        guard !challenges.isEmpty else { return nil }
        for _ in 0..<8 {
            let number = challenges.count - 1 - dice.below(min(challenges.count, 200))
            let granted = challenges[number].uses.first { $0.verdict == 1 && $0.plan.collaboration == collaboration }
            if let granted { return granted.plan }
        }
        return nil
    }

    /// When something ends that was given lately: the time of a granted challenge or nonce, or that of a grant.
    func nearEnd(_ dice: inout Dice) -> UInt64? {
        switch dice.below(3) {
        case 0:
            let granted = challenges.last { challenge in challenge.uses.contains { $0.verdict == 1 } }
            return granted.map { $0.issued.beganAt + challengeMilliseconds }
        case 1:
            let uses = nonceUses.values.compactMap { $0.last { $0.verdict == 1 }?.answered?.beganAt }
            return uses.max().map { $0 + nonceMilliseconds }
        default: return grants.last.map { $0.issued.beganAt + grantMilliseconds }
        }
    }

    /// Somebody who was added to a collaboration by one of the last changes that were answered.
    func likelyMember(of collaboration: Int, _ dice: inout Dice) -> Int? {
        var people: UInt64 = 0
        for mutation in mutations.suffix(80) where mutation.collaboration == collaboration && mutation.sequence != nil {
            switch mutation.kind {
            case .add(let added): people |= added
            case .remove(let removed): people &= ~removed
            case .participants(let added, let removed): people = (people | added) & ~removed
            case .drop: people = 0
            case .create, .post: break
            }
        }
        let members = (0..<SimulatedPeople.personCount).filter { people & 1 << UInt64($0) != 0 }
        return members.isEmpty ? nil : members[dice.below(members.count)]
    }

    /// Whether a post behind `sequence` was acknowledged before a step.
    func hasPost(after sequence: UInt64, acknowledgedBefore step: UInt64 = .max) -> Bool {
        posts.reversed().contains { post in
            guard let own = post.sequence, let acknowledged = post.acknowledged else { return false }
            return own > sequence && acknowledged < step
        }
    }

    // MARK: Judging

    /// States of each collaboration, by the sequence since which they hold.
    private var states: [[(since: UInt64, state: SetState)]] = []

    /// Judges everything. Every mutation must be settled.
    func judge() throws {
        states = Array(repeating: [(0, SetState())], count: Model.readersRole + 1)
        for present in [Model.layerCollaboration, Model.readersRole] { states[present] = [(0, SetState(exists: true))] }
        for entry in logs { try judgeLog(entry) }
        for sequence in bySequence.keys.sorted() {
            if let mutation = bySequence[sequence] { try replay(mutation, sequence) }
        }
        for reading in readings { try judge(reading) }
        for number in challenges.indices { try judgeChallenge(number) }
        for uses in nonceUses.values { try judgeNonce(uses) }
        for check in grantChecks { try judgeGrant(check) }
        for page in pages { try judgePage(page) }
    }

    private func replay(_ mutation: MutationRecord, _ sequence: UInt64) throws {
        let collaboration = mutation.collaboration
        var state = states[collaboration][states[collaboration].count - 1].state
        let before = state
        var changed: UInt64?
        switch mutation.kind {
        case .create: (state.exists, changed) = (true, before.exists ? 0 : 1)
        case .drop: (state, changed) = (SetState(), before.exists ? 1 : 0)
        case .add(let people):
            state.members |= people
            changed = UInt64((people & ~before.members).nonzeroBitCount)
        case .remove(let people):
            state.members &= ~people
            changed = UInt64((people & before.members).nonzeroBitCount)
        case .participants(let added, let removed): state.members = (state.members | added) & ~removed
        case .post: break
        }
        switch mutation.kind {
        case .add, .remove:
            guard before.exists else {
                throw Violation("mutation \(mutation.number) (\(mutation.kind)) changed what does not exist")
            }
        default: break
        }
        if let changed, mutation.operation != Code.collaborate, changed != mutation.changed {
            throw Violation(
                "mutation \(mutation.number) (\(mutation.kind)) with sequence \(sequence) has changed "
                    + "\(mutation.changed ?? 0) instead of \(changed)")
        }
        states[collaboration].append((sequence, state))
    }

    /// Whether one of the states that were the last durable one in the interval does what `test` asks.
    func has(_ collaboration: Int, _ interval: Interval, atLeast: UInt64 = 0, _ test: (SetState) -> Bool) -> Bool {
        let first = max(durable(at: interval.began), atLeast)
        let last = max(durable(at: interval.ended), first)
        let history = states[collaboration]
        for (index, entry) in history.enumerated() {
            guard entry.since <= last else { break }
            let isOver = index + 1 < history.count && history[index + 1].since <= first
            if !isOver, test(entry.state) { return true }
        }
        return false
    }

    private func judge(_ reading: Reading) throws {
        guard !has(reading.collaboration, reading.interval, atLeast: reading.atLeast, reading.explains) else { return }
        throw Violation(
            "\(reading.text) of collaboration \(reading.collaboration) is explained by no state from "
                + "\(max(durable(at: reading.interval.began), reading.atLeast)) to "
                + "\(durable(at: reading.interval.ended))")
    }

    private func judgeChallenge(_ number: Int) throws {
        let challenge = challenges[number]
        let granted = challenge.uses.filter { $0.verdict == 1 }
        guard granted.count <= 1 else { throw Violation("challenge \(number) was granted \(granted.count) times") }
        for use in challenge.uses {
            guard let verdict = use.verdict, let answered = use.answered else { continue }
            let isOwn = use.epoch == challenge.issued.epoch
            let mayBeInTime = isOwn && use.sentAt <= challenge.issued.endedAt + challengeMilliseconds
            let mayBeOver = !isOwn || answered.endedAt > challenge.issued.beganAt + challengeMilliseconds
            let mayBeSpent = challenge.uses.contains { other in
                other !== use && other.maySpend && other.epoch == use.epoch
                    && other.sent <= answered.ended
            }
            let what = "challenge \(number), person \(use.plan.person)"
            switch verdict {
            case 1 where !mayBeInTime: throw Violation("\(what): granted when it was over")
            case 21 where !mayBeOver: throw Violation("\(what): called expired when it was not")
            case 29 where isOwn: throw Violation("\(what): called another's, and it was issued here")
            case 22 where !mayBeSpent: throw Violation("\(what): called spent, but nobody spent it")
            case 20: throw Violation("\(what): called forged")
            case 27 where !mayBeInTime, 28 where !mayBeInTime:
                throw Violation("\(what): judged further when it was over")
            default: break
            }
        }
    }

    private func judgeNonce(_ uses: [ProofUse]) throws {
        let granted = uses.filter { $0.verdict == 1 }
        for (index, first) in granted.enumerated() {
            for second in granted[(index + 1)...] where first.epoch == second.epoch {
                guard let one = first.answered, let other = second.answered else { continue }
                let apart = max(one.endedAt, other.endedAt) - min(first.sentAt, second.sentAt)
                if apart < nonceMilliseconds { throw Violation("a nonce was granted twice within its window") }
            }
        }
        for use in uses where use.verdict == 24 {
            guard let answered = use.answered else { continue }
            let mayBeSpent = uses.contains { other in
                other !== use && other.maySpend && other.epoch == use.epoch
                    && other.sent <= answered.ended
            }
            if !mayBeSpent { throw Violation("a nonce was called spent, but nobody spent it") }
        }
    }

    private func judgeGrant(_ check: (grant: Int, isValid: Bool, interval: Interval, what: String)) throws {
        let grant = grants[check.grant]
        let removals = mutations.compactMap { mutation -> UInt64? in
            guard case .participants(_, let removed) = mutation.kind, removed & 1 << UInt64(grant.person) != 0 else {
                return nil
            }
            return mutation.sequence
        }
        let (low, high) = (durable(at: check.interval.began), durable(at: check.interval.ended))
        let issuedFrom = durable(at: grant.issued.began)
        let issuedTo = durable(at: grant.issued.ended)
        if check.isValid {
            let age = check.interval.beganAt - min(grant.issued.endedAt, check.interval.beganAt)
            if age > grantMilliseconds { throw Violation("\(check.what): a grant was valid after its time") }
            if removals.contains(where: { $0 > issuedTo && $0 <= low }) {
                throw Violation("\(check.what): the grant of a person who was removed is valid")
            }
        } else {
            let mayBeOver = check.interval.endedAt > grant.issued.beganAt + grantMilliseconds
            if !mayBeOver, !removals.contains(where: { $0 > issuedFrom && $0 <= high }) {
                throw Violation("\(check.what): a grant is refused without a reason")
            }
        }
    }

    /// Every post between the ends of a page is in it, in order.
    private func judgePage(_ page: (after: UInt64, next: UInt64, posts: [UInt64], interval: Interval)) throws {
        var expected: [UInt64] = []
        for mutation in mutations {
            guard case .post = mutation.kind, let sequence = mutation.sequence else { continue }
            if sequence > page.after, sequence <= page.next { expected.append(sequence) }
        }
        guard page.posts == expected.sorted() else {
            throw Violation(
                "the page of notices after \(page.after) to \(page.next) has the posts \(page.posts) instead of "
                    + "\(expected.sorted())")
        }
    }

    private func judgeLog(_ entry: (sequence: UInt64, operation: UInt16, changed: UInt64)) throws {
        guard let mutation = bySequence[entry.sequence] else {
            if entry.operation == 0x33 { return }
            throw Violation(
                "the change log has operation \(entry.operation) as \(entry.sequence), which nobody asked for")
        }
        let isEdit = mutation.operation == Code.collaborate
        guard isEdit ? entry.operation == 0x33 : entry.operation == mutation.operation else {
            throw Violation("the change log has operation \(entry.operation) as \(entry.sequence)")
        }
        if !isEdit, mutation.changed != entry.changed {
            throw Violation(
                "the change log has \(entry.changed) changes as \(entry.sequence) instead of \(mutation.changed ?? 0)")
        }
    }
}
