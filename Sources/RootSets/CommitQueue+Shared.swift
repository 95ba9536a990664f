import Core
import Hashing

// A storage that shares a log. Its writer does not commit what it is given. It packs the mutations that wait into a
// segment, appends that to the log, and applies every segment in the order of the log: those of others, and its own. A
// mutation is answered when its segment was applied here. So it is in the log, and every other storage comes to the
// same result.

extension CommitQueue {
    /// What the writer knows of the shared log.
    struct Sharing {
        /// When the log is to be looked at again, in milliseconds of the system's clock.
        var lookAt: UInt64 = 0
        /// When that is to be done at the earliest, whoever rings meanwhile.
        var pausedUntil: UInt64 = 0
        /// When the list reserve may be used for a segment again, in milliseconds of the system's clock.
        var reserveDue: UInt64 = 0
        /// Whether somebody has said that the log has something new.
        var isRung = false
        /// Why the storage does not follow the log; `nil`: it does, as far as is known.
        var problem: String?
        /// When the storage began to follow the log, in milliseconds of the log's clock.
        var began: UInt64?
        /// Whether the service's log was told last that readings are answered; `nil`: it was told nothing yet.
        var isFreshTold: Bool?
        /// Whether the service's log was told last that no change is taken.
        var isRefusalTold = false
        /// Whether the process ends because the log has left the storage behind.
        var isLeft = false
        /// Whether the storage is being closed, which nobody has to be told.
        var isEnding = false
        /// The bytes of change log that each storage of the shared log keeps; `nil`: not known yet.
        var retentionBytes: Int?

        /// Whether the list reserve may be used at that time. Then it may not be used again for a moment: readers that
        /// keep it from being used end soon, or not at all.
        mutating func takeReserve(at now: UInt64) -> Bool {
            guard now >= reserveDue else { return false }
            reserveDue = now + Limits.sharedReserveWaitMilliseconds
            return true
        }
    }

    /// Changes in segments that may have been applied.
    struct UndecidedChanges {
        /// The number of the last segment.
        let segment: UInt64
        let changes: [Change]
        /// The sequence of the last change.
        let sequence: UInt64
    }

    // MARK: Following

    /// Somebody says that the log has something new.
    func ring() {
        sharing.withLock { $0.isRung = true }
        wakeWriter()
    }

    /// Looks at the log, unless that was a moment ago, and applies what is new. Called on the writer's thread.
    func followIfDue() {
        guard let shared else { return }
        defer { tellFreshness() }
        guard !storage.health.hasFailed else { return }
        let now = MonotonicClock.system.milliseconds
        let isDue = sharing.withLock { sharing in
            guard now >= sharing.pausedUntil, sharing.isRung || now >= sharing.lookAt else { return false }
            sharing.isRung = false
            return true
        }
        guard isDue else { return }
        looked()
        watch.begin()
        follow(shared)
        watch.end()
    }

    private func follow(_ log: any SharedLog) {
        do throws(StorageFailure) {
            let place = try place()
            try notePlace(place)
            var (next, hash) = (place.map { $0.number + 1 } ?? 1, place?.hash)
            while !state.withLock({ $0.isClosed || $0.isAbandoned }) {
                switch log.read(from: next, after: hash) {
                case .segments(let segments, let hasMore, let asOf):
                    if !segments.isEmpty { _ = try apply(segments) }
                    next += UInt64(segments.count)
                    hash = segments.last.map { Segment.hash($0) } ?? hash
                    guard hasMore else { return next > 1 ? noteFresh(asOf) : note("the shared log is empty") }
                case .removed(let first):
                    giveUp("the shared log begins at \(first), and this storage needs \(next)")
                    if log.replacesStorage { leaveToNextStart() }
                    return
                case .lost: return giveUp("the shared log has lost segment \(next - 1), which was applied here")
                case .failed(let reason): return note("the shared log does not answer: \(reason)")
                }
            }
        } catch {
            giveUp(error.text)
        }
    }

    /// Ends the process, once: only its next start can put another storage into the place of this one.
    private func leaveToNextStart() {
        let isFirst = sharing.withLock { sharing in
            defer { sharing.isLeft = true }
            return !sharing.isLeft
        }
        guard isFirst else { return }
        log(.critical, "the storage was left behind by the shared log: the next start replaces it")
        onLoss()
    }

    /// Notes a problem that will not pass in a moment. Others' changes must not make it look all the time.
    private func giveUp(_ problem: String) {
        note(problem)
        let next = MonotonicClock.system.milliseconds + Limits.sharedPauseMilliseconds
        sharing.withLock { ($0.lookAt, $0.pausedUntil) = (next, next) }
    }

    private func looked() {
        let next = MonotonicClock.system.milliseconds + Limits.sharedLookMilliseconds
        sharing.withLock { $0.lookAt = next }
    }

    /// The storage has everything that was in the log at that time. One that is damaged is not relied on.
    private func noteFresh(_ asOf: UInt64) {
        guard storage.health.level == .intact else { return note("the storage is damaged") }
        sharing.withLock { ($0.problem, $0.pausedUntil) = (nil, 0) }
        becameFresh(asOf)
    }

    private func becameFresh(_ asOf: UInt64) {
        freshAsOf.max(asOf + 1, ordering: .releasing)
        listeners.withLock(\.onNews)?(asOf)
    }

    /// The storage is being closed: it will no longer be fresh.
    func endsFollowing() { sharing.withLock { $0.isEnding = true } }

    /// Another thread has asked the log at that time, and found nothing behind what was applied.
    func hasNothingNew(_ asOf: UInt64) {
        guard storage.health.level == .intact else { return }
        becameFresh(asOf)
    }

    private func note(_ problem: String) {
        sharing.withLock { $0.problem = problem }
    }

    /// Tells the service's log when readings begin to be refused because the storage is too old, and when they are
    /// answered again.
    func tellFreshness() {
        guard let shared else { return }
        let asOf = freshAsOf.load(ordering: .acquiring)
        let now = shared.now
        let isFresh = asOf > 0 && shared.isRecent(asOf - 1, at: now)
        let problem: String? = sharing.withLock { sharing in
            let began = sharing.began ?? now
            sharing.began = began
            guard sharing.isFreshTold != isFresh, !sharing.isEnding else { return nil }
            // A start takes a moment.
            guard isFresh || sharing.isFreshTold != nil || now > began + shared.stalenessMilliseconds else {
                return nil
            }
            sharing.isFreshTold = isFresh
            return sharing.problem ?? shared.absence ?? ""
        }
        guard let problem else { return }
        if isFresh {
            log(.info, "the storage has what is in the shared log: proofs and grants are answered")
        } else {
            let reason = problem.isEmpty ? "" : ": \(problem)"
            log(.error, "no proof and no grant is answered, because the storage may lack what others removed\(reason)")
        }
    }

    /// Tells the service's log when changes begin to be refused because the shared log does not take them, with the
    /// reason, and when it takes them again.
    private func tellAppending(_ refusal: String?) {
        let isNews = sharing.withLock { sharing in
            defer { sharing.isRefusalTold = refusal != nil }
            return sharing.isRefusalTold != (refusal != nil)
        }
        guard isNews else { return }
        if let refusal {
            log(.error, "no change is taken, because the shared log does not take it: \(refusal)")
        } else {
            log(.info, "the shared log takes changes again")
        }
    }

    /// Notes where the storage is when the writer looks at the log. It changes only with a segment.
    private func notePlace(_ place: SharedPlace?) throws(StorageFailure) {
        tellUndecided(at: place)
        guard let place, progress.withLock({ $0.segment != place.number }) else { return }
        let totals = try storage.withTransaction { transaction throws(StorageFailure) in try transaction.totals() }
        note(place, totals.sequence, SharedContents(at: place, totals).digest)
    }

    /// Tells of the changes of a commit that has failed, if it turns out that it was made. `place`: where the storage
    /// is.
    private func tellUndecided(at place: SharedPlace?) {
        let found = undecided.withLock { undecided in
            defer { undecided = nil }
            return undecided
        }
        guard let found, let place, place.number >= found.segment, !found.changes.isEmpty else { return }
        listeners.withLock(\.onApplied)?(found.changes, [], found.sequence)
    }

    private func note(
        _ place: SharedPlace?, _ sequence: UInt64, _ digest: Digest?, _ checkpoint: SharedProgress.Checkpoint? = nil
    ) {
        progress.withLock { progress in
            progress.segment = place?.number ?? 0
            progress.hash = place?.hash
            progress.founding = place?.founding
            progress.sequence = sequence
            progress.digest = digest
            if let checkpoint { progress.checkpoint = checkpoint }
        }
        if let place { noteRetention(Int(clamping: place.logRetentionBytes)) }
    }

    /// Additions leave room for that much of the change log, which no storage makes shorter alone.
    private func noteRetention(_ bytes: Int) {
        let isNews = sharing.withLock { sharing in
            defer { sharing.retentionBytes = bytes }
            return sharing.retentionBytes != bytes
        }
        guard isNews, bytes > configuration.sizeLimitBytes / 4 else { return }
        log(
            .warning,
            "the cluster was founded with a change log of \(bytes >> 20) MiB, which is more than a quarter of this "
                + "storage: raise --storage-max to \(4 * ((bytes >> 20) + 1)) MiB, at all services")
    }

    private func place() throws(StorageFailure) -> SharedPlace? {
        try writing { _ throws(StorageFailure) in
            try storage.withTransaction { transaction throws(StorageFailure) in try transaction.sharedPlace() }
        }
    }

    // MARK: Appending

    /// Appends the group's mutations to the log, applies the log up to them, and answers them. Those for which there is
    /// no room here are refused before.
    func share(_ begun: Group, by log: any SharedLog) {
        var group = begun
        do throws(StorageFailure) {
            let refusals = try judge(&group)
            precondition(refusals.count == group.mutations.count, "there is not one judgement for each mutation")
            let appended = zip(group.mutations, refusals).filter { $0.1 == nil }.map(\.0.mutation)
            var results = (appended.isEmpty ? [] : try append(appended, to: log))[...]
            for (pending, refusal) in zip(group.mutations, refusals) {
                if let refusal {
                    answer(pending, .failure(refusal))
                } else {
                    answer(pending, results.popFirst() ?? .failure(ServiceError(.internalFault, "a result is missing")))
                }
            }
        } catch {
            for pending in group.mutations { answer(pending, .failure(error.asServiceError)) }
        }
    }

    /// The error of each mutation that is not to be appended. What waits joins the group, as long as it has room.
    private func judge(_ group: inout Group) throws(StorageFailure) -> [ServiceError?] {
        try writing { environment throws(StorageFailure) in
            var room = try room(for: group, in: environment)
            var refusals: [ServiceError?] = []
            // By how many bytes records become longer.
            var growing = 0
            while refusals.count < group.mutations.count || state.withLock({ $0.take(into: &group) }) {
                let mutation = group.mutations[refusals.count].mutation
                let growth = try environment.growth(by: mutation.change)
                let needsSpace = needsSpace(mutation.change, growth, behind: growing)
                var refusal = needsSpace ? storage.health.refusalOfAdditions : nil
                switch try room.judge(mutation.change, needsSpace: needsSpace, isAlone: refusals.isEmpty) {
                case .passes:
                    growing += growth.bytes
                    if needsSpace, let need = fullness.need, try room.wouldHave(need) {
                        fullness.hasRoomAgain()
                    }
                case .lacks(let lack):
                    fullness.refused(lack)
                    refusal = lack.error
                case .waits:
                    postponeLast(of: &group)
                    return refusals
                }
                // A repetition gets its receipt, whatever is lacking.
                if refusal != nil, try isKnown(mutation.identifier) { refusal = nil }
                refusals.append(refusal)
            }
            return refusals
        }
    }

    /// Whether the change log has a mutation of that identifier.
    private func isKnown(_ identifier: MutationIdentifier) throws(StorageFailure) -> Bool {
        let key = withUnsafeBytes(of: identifier.value.littleEndian) { Array($0) }
        return try storage.withTransaction { transaction throws(StorageFailure) in
            try transaction.value(transaction.environment.mutations, key) != nil
        }
    }

    /// Refuses what waits, so that nobody waits for a log that is silent: each group would wait for it anew.
    private func refuseWaiting(_ error: ServiceError) {
        let waiting = state.withLock { $0.takeWaiting() }
        for pending in waiting { pending.completion(.failure(error)) }
    }

    /// Appends mutations as one segment behind the last one. Returns what came of each. Throws when they are not in the
    /// log, and will not be.
    private func append(
        _ mutations: [Mutation], to log: any SharedLog
    ) throws(StorageFailure) -> [Result<MutationReceipt, ServiceError>] {
        func all(_ error: ServiceError) -> [Result<MutationReceipt, ServiceError>] {
            mutations.map { _ in .failure(error) }
        }
        guard let place = try place() else {
            return all(ServiceError(.busy, "the shared log was not read yet: try again later"))
        }
        if let lost = log.lostLog { return all(ServiceError(.busy, lost)) }
        var (number, hash) = (place.number, place.hash)
        // What others have appended meanwhile, read and not applied. The next attempt needs only its hash.
        var unapplied: [[UInt8]] = []
        for _ in 0..<Limits.segmentsLostMax {
            let segment = Segment(identifier: .random(in: .min ... .max), after: hash, .mutations(mutations)).bytes
            guard segment.count <= Limits.segmentBytesMax else {
                return all(ServiceError(.limitExceeded, "a change is too long for the shared log"))
            }
            // What can't be read would stop every storage.
            guard Segment(segment) != nil else {
                return all(ServiceError(.internalFault, "a change makes a segment that can't be read"))
            }
            let others: [[UInt8]]
            switch log.append(segment, as: number + 1, after: hash) {
            case .appended(let asOf):
                tellAppending(nil)
                return finish(unapplied, own: segment, asOf) ?? all(applicationFailure)
            case .taken(let found): others = found
            case .misplaced:
                guard case .segments(let found, _, _) = log.read(from: number + 1, after: hash) else {
                    // The next look says why.
                    return all(ServiceError(.busy, "the end of the shared log is not known: try again later"))
                }
                others = found
            case .failed(let reason, let isUnknown):
                note("the shared log does not answer: \(reason)")
                tellAppending(reason)
                refuseWaiting(ServiceError(.busy, "the shared log does not answer: \(reason)"))
                return all(
                    isUnknown
                        ? ServiceError(
                            .storageFailed, "whether the change is in the shared log is not known: \(reason)")
                        : ServiceError(.busy, "the shared log does not answer: \(reason)"))
            }
            number += UInt64(others.count)
            hash = others.last.map { Segment.hash($0) } ?? hash
            unapplied += others
            if unapplied.reduce(0, { $0 + $1.count }) > Limits.segmentBytesUnappliedMax {
                _ = try apply(unapplied)
                unapplied = []
            }
        }
        return all(ServiceError(.busy, "others append to the shared log without a pause: try again later"))
    }

    /// Applies segments of others and then the one that was appended here. `nil`: they could not be applied.
    private func finish(
        _ segments: [[UInt8]], own segment: [UInt8], _ asOf: UInt64
    ) -> [Result<MutationReceipt, ServiceError>]? {
        do throws(StorageFailure) {
            let results = try apply(segments + [segment], isLastOwn: true)
            noteFresh(asOf)
            looked()
            return results
        } catch {
            note(error.text)
            return nil
        }
    }

    private var applicationFailure: ServiceError {
        let problem = sharing.withLock { $0.problem } ?? "unknown"
        return ServiceError(.storageFailed, "the change is in the shared log, but was not applied here: \(problem)")
    }

    // MARK: Applying

    /// Applies segments behind the place in one commit; when they lack room together, in one commit each, with the list
    /// reserve if need be. Returns what came of the last segment's mutations. `isLastOwn`: whether those are answered
    /// here, so that nobody has to be told of them as of others' changes.
    private func apply(
        _ segments: [[UInt8]], isLastOwn: Bool = false
    ) throws(StorageFailure) -> [Result<MutationReceipt, ServiceError>] {
        do throws(StorageFailure) {
            return try writing { environment throws(StorageFailure) in
                try apply(segments[...], isLastOwn: isLastOwn, in: environment)
            }
        } catch {
            guard error.isLackOfSpace else { throw error }
        }
        var results: [Result<MutationReceipt, ServiceError>] = []
        for position in segments.indices {
            let isOwn = isLastOwn && position == segments.count - 1
            results = try applyAlone(segments[position...position], isLastOwn: isOwn)
        }
        return results
    }

    /// Applies a segment in a commit of its own, at last with the list reserve. When that is not enough, the reserve is
    /// left alone for a while: the segment is tried again each second, and using the reserve takes several commits.
    private func applyAlone(
        _ segment: ArraySlice<[UInt8]>, isLastOwn: Bool
    ) throws(StorageFailure) -> [Result<MutationReceipt, ServiceError>] {
        do throws(StorageFailure) {
            return try writing { environment throws(StorageFailure) in
                try commitNothing(environment)
                return try apply(segment, isLastOwn: isLastOwn, in: environment)
            }
        } catch {
            guard error.isLackOfSpace else { throw error }
            let now = MonotonicClock.system.milliseconds
            guard sharing.withLock({ $0.takeReserve(at: now) }) else { throw error }
            if try hasTakenBackSnapshots(), let results = try applyIfRoom(segment, isLastOwn: isLastOwn) {
                sharing.withLock { $0.reserveDue = 0 }
                return results
            }
            let results = try withListReserve { pages throws(StorageFailure) in
                sharing.withLock { $0.reserveDue = now + Limits.sharedReservePauseMilliseconds }
                return try writing { environment throws(StorageFailure) in
                    try apply(segment, isLastOwn: isLastOwn, listReserve: pages, in: environment)
                }
            }
            guard let results else { throw error }
            sharing.withLock { $0.reserveDue = 0 }
            return results
        }
    }

    /// Returns `nil` when there is no room.
    private func applyIfRoom(
        _ segment: ArraySlice<[UInt8]>, isLastOwn: Bool
    ) throws(StorageFailure) -> [Result<MutationReceipt, ServiceError>]? {
        do throws(StorageFailure) {
            return try writing { environment throws(StorageFailure) in
                try apply(segment, isLastOwn: isLastOwn, in: environment)
            }
        } catch {
            guard error.isLackOfSpace else { throw error }
            return nil
        }
    }

    private func apply(
        _ segments: ArraySlice<[UInt8]>, isLastOwn: Bool, listReserve: Int = 0, in environment: StorageEnvironment
    ) throws(StorageFailure) -> [Result<MutationReceipt, ServiceError>] {
        let (began, start) = (MonotonicClock.nanoseconds, surroundings.now())
        // Blocks of the disk are reserved first. What is in the log is applied even when there seem to be too few.
        var room = try roomBehindListReserve(environment)
        var read: [(segment: Segment, hash: Digest)] = []
        var growing = 0
        for bytes in segments {
            guard let segment = Segment(bytes) else { throw .mismatched("the shared log has an entry that is none") }
            if case .mutations(let mutations) = segment.contents {
                for mutation in mutations {
                    try room.count(mutation.change)
                    growing += try environment.growth(by: mutation.change).bytes
                }
            }
            read.append((segment, Segment.hash(bytes)))
        }
        let hasRoom = growing > 0 ? try room.hasRoomForAdditions() : false
        let transaction = try WriteTransaction(in: environment, watch)
        let reserve = ListReserve(transaction, environment)
        if listReserve > 0 {
            try room.countRun(listReserve)
            try reserve.hold(listReserve, room.trees)
        }
        var applier = try Applier(transaction, environment)
        var place = try SharedPlace.read(try transaction.get(environment.meta, SharedPlace.key))
        tellUndecided(at: place)
        var results: [Result<MutationReceipt, ServiceError>] = []
        var count = 0
        var (others, own): ([Change], [Change]) = ([], [])
        var checkpoint: SharedProgress.Checkpoint?
        var applied: [(number: UInt64, bytes: Int)] = []
        for (position, (segment, hash)) in read.enumerated() {
            let outcome = try applier.apply(segment, hash: hash, at: place)
            (place, results) = (outcome.place, outcome.results)
            count += results.count
            applied.append((outcome.place.number, segments[segments.startIndex + position].count))
            if outcome.place.number % SharedProgress.Checkpoint.interval == 0 {
                let digest = applier.contents(at: outcome.place).digest
                checkpoint = SharedProgress.Checkpoint(segment: outcome.place.number, digest: digest)
            }
            let changes = segment.changes(with: results)
            if isLastOwn, position == read.count - 1 { own = changes } else { others += changes }
            watch.proceed()
        }
        if listReserve > 0 { try reserve.release(listOf: room.freed(by: transaction), room.trees) }
        let digest = place.map { applier.contents(at: $0).digest }
        // Nobody else tells of its own changes when it fails and was made all the same.
        let all = UndecidedChanges(segment: place?.number ?? 0, changes: others + own, sequence: applier.sequence)
        undecided.withLock { $0 = all }
        try commit(
            transaction, environment, of: count, last: applier.sequence, began, isDiskFull: room.isDiskFull)
        undecided.withLock { $0 = nil }
        noteGrowth(growing, hasRoom: hasRoom)
        state.withLock { $0.written = surroundings.now() - start }
        // Who is told of the progress may rely on everything that is kept of the storage.
        listeners.withLock(\.onApplied)?(others, own, applier.sequence)
        note(place, applier.sequence, digest, checkpoint)
        for (number, bytes) in applied { shared?.applied(number, bytes: bytes) }
        return results
    }
}

extension Segment {
    /// The changes that were made, of which there is one result each.
    fileprivate func changes(with results: [Result<MutationReceipt, ServiceError>]) -> [Change] {
        guard case .mutations(let mutations) = contents else { return [] }
        return zip(mutations, results).compactMap { mutation, result in
            guard case .success(let receipt) = result, !receipt.isRepeat else { return nil }
            return mutation.change
        }
    }
}
