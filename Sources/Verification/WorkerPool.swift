package import Core
import Dispatch
import Foundation
import RootSets

/// A fixed number of workers that verify proofs, make challenges and perform other short reads. A worker takes its
/// share of the waiting work from all peers, and from all sources of a peer, in turn. So an idle pool starts a single
/// proof at once, and batches grow with the load. No timers are needed. Prompt work and queries that wait for changes
/// take turns (`KindTurns`).
///
/// A worker runs on a thread of the pool's or on a thread that also does other work. An event loop that verifies the
/// proofs that it has just read saves two thread switches for each request.
package final class WorkerPool: Sendable {
    private struct State {
        /// Peers with waiting work of a kind, in the order of their turns.
        var turns = ForEachKind(Queue<PeerLine>())
        var kindTurns = KindTurns()
        /// Proofs and tasks of a kind that wait.
        var items = ForEachKind(0)
        /// The lines of peers with waiting work, and of some that had some.
        var lines: [Holder: PeerLine] = [:]
        /// The number of lines at which those without work are removed.
        var linesMax = Limits.idleTurnsMax
        var waiting: Shares
        var workerCount = 0
        /// What counts the workers' passes, if that is wanted.
        var meters: [PassMeter] = []
        /// Workers that found no work and must be woken when there is some.
        var sleepers: [PoolWorker] = []
        /// Whose work was taken last, and for how many items from now on peers count as taking turns.
        var lastPeer: Holder?
        var sharedItems = 0
        /// Workers that are performing a portion.
        var busyCount = 0
        var isClosed = false
    }

    /// A range of a request's proofs.
    private struct Slice {
        let source: WorkSource
        let request: VerificationRequest
        let range: Range<Int>
    }

    /// The work that a worker takes at once.
    private enum Portion {
        case pass([Slice], isSigned: Bool)
        case challenges(ChallengeRequest, Range<Int>)
        case task(@Sendable () -> Void)
    }

    private let resources: VerificationResources
    private let threadCount: Int
    private let state: Lock<State>
    private let ended = DispatchSemaphore(value: 0)
    private let counts = Lock([UInt64](repeating: 0, count: 256))

    /// `workerCount`: workers on threads of the pool's own; 0 when all will be attached to other threads.
    /// `waitingItemsMax`: proofs and tasks that may wait; `Limits.challengesPerItem` challenges count as one. Peers
    /// share these places (`Shares`); `submit` refuses what is above a peer's share.
    ///
    /// Throws `internalFault` when a worker's memory can't be allocated.
    package init(_ resources: VerificationResources, workerCount: Int, waitingItemsMax: Int) throws(ServiceError) {
        self.resources = resources
        state = Lock(State(waiting: Shares(capacity: waitingItemsMax)))
        threadCount = workerCount
        for number in 0..<workerCount {
            let awake = DispatchSemaphore(value: 0)
            let worker = try attachWorker { awake.signal() }
            let thread = Thread { [self] in
                while !state.withLock({ $0.isClosed && $0.waiting.taken == 0 }) {
                    // Closing the pool wakes only the workers that are asleep at that moment.
                    if !worker.work(), !state.withLock({ $0.isClosed }) { awake.wait() }
                }
                ended.signal()
            }
            thread.name = "rootgate worker \(number)"
            thread.start()
        }
    }

    /// Makes a worker for a thread of the caller's. That thread calls `work` repeatedly. When `work` returns false, the
    /// thread waits for `wake`, which is called on any thread.
    ///
    /// Throws `internalFault` when its memory can't be allocated.
    package func attachWorker(wake: @escaping @Sendable () -> Void) throws(ServiceError) -> PoolWorker {
        let meter = resources.metersPasses ? PassMeter() : nil
        let worker = PoolWorker(self, try BatchVerifier(resources, meter), resources.challenges.makeTagMaker(), wake)
        state.withLock { state in
            state.workerCount += 1
            if let meter { state.meters.append(meter) }
        }
        return worker
    }

    // MARK: Taking work in

    /// Queues a request. Returns false, and will not call its completion, when the peer's share of the places is taken
    /// or the pool is closed.
    package func submit(_ request: VerificationRequest, from source: WorkSource) -> Bool {
        add(.verification(request), items: request.count, to: source)
    }

    /// Queues a request for challenges. Returns false, and will not call its completion, when the peer's share of
    /// the places is taken or the pool is closed.
    package func submit(_ request: ChallengeRequest, from source: WorkSource) -> Bool {
        add(.challenges(request), items: ChallengeRequest.items(request.count), to: source)
    }

    /// Queues a task to run on a worker. Returns false when the peer's share of the places is taken or the pool is
    /// closed. The task must be short.
    package func submit(
        from source: WorkSource, _ kind: WorkKind = .prompt, task: @escaping @Sendable () -> Void
    ) -> Bool {
        add(.task(task, kind), items: 1, to: source)
    }

    /// Queues a task even when the pool is full. Only for tasks of which there is never more than one at a time, so
    /// that they can't pile up. Does nothing on a closed pool.
    package func submitAlways(
        from source: WorkSource, _ kind: WorkKind = .prompt, task: @escaping @Sendable () -> Void
    ) {
        _ = add(.task(task, kind), items: 1, to: source, evenWhenFull: true)
    }

    private func add(
        _ work: WorkSource.Work, items: Int, to source: WorkSource, evenWhenFull: Bool = false
    ) -> Bool {
        let (isTaken, sleeper) = state.withLock { state -> (Bool, PoolWorker?) in
            precondition(items > 0, "work has no items")
            let line = line(of: source, &state)
            // A request above a peer's whole share is accepted when nothing else waits.
            let hasRoom = state.waiting.taken == 0 || state.waiting.allows(items, to: line.waitingItems)
            guard !state.isClosed, hasRoom || evenWhenFull else { return (false, nil) }
            state.waiting.take(items)
            line.waitingItems += items
            check(state)
            state.items[work.kind] += items
            source.waiting[work.kind].append(work)
            if source.waiting[work.kind].count == 1 { addTurn(of: source, in: line, work.kind, &state) }
            // If every worker is asleep or busy, none of them will see this work soon, so one that sleeps is woken. A
            // worker that is looking for work wakes others when it leaves some.
            guard state.sleepers.count + state.busyCount == state.workerCount else { return (true, nil) }
            return (true, state.sleepers.popLast())
        }
        sleeper?.wake()
        return isTaken
    }

    /// Puts a source at the end of its peer's line for work of a kind.
    private func addTurn(of source: WorkSource, in line: PeerLine, _ kind: WorkKind, _ state: inout State) {
        if line.turns[kind].isEmpty { state.turns[kind].append(line) }
        line.turns[kind].append(source)
    }

    /// The line of the source's peer. Lines of peers without work are forgotten when there are many.
    private func line(of source: WorkSource, _ state: inout State) -> PeerLine {
        // Work that waits keeps its line when the source has become another peer's.
        if let line = source.line, line.isListed, line.peer == source.peer || source.hasWork { return line }
        let line = state.lines[source.peer] ?? PeerLine(source.peer)
        source.line = line
        state.lines[source.peer] = line
        if state.lines.count > state.linesMax {
            for (peer, idle) in state.lines where idle.waitingItems == 0 && idle !== line {
                idle.isListed = false
                state.lines[peer] = nil
            }
            state.linesMax = max(Limits.idleTurnsMax, 2 * state.lines.count)
        }
        return line
    }

    /// Counts the source's work as another peer's, as soon as what waits now is done.
    package func move(_ source: WorkSource, to peer: Holder) {
        state.withLock { _ in source.peer = peer }
    }

    /// Number of proofs and tasks that wait.
    package var depth: Int { state.withLock { $0.waiting.taken } }

    /// How often each verdict was given.
    package var verdictCounts: [(verdict: Verdict, count: UInt64)] {
        counts.withLock { counts in
            Verdict.allCases.filter { $0 != .unknown }.map { ($0, counts[Int($0.rawValue)]) }
        }
    }

    /// What the passes of all workers took; empty unless it is counted.
    package var passFigures: PassFigures {
        state.withLock { $0.meters }.reduce(into: PassFigures()) { $0.add($1.figures) }
    }

    /// Refuses new work, lets the pool's threads finish the waiting work, and ends them.
    package func close() {
        let (wasClosed, sleepers) = state.withLock { state in
            let result = (state.isClosed, state.sleepers)
            state.isClosed = true
            state.sleepers = []
            return result
        }
        for sleeper in sleepers { sleeper.wake() }
        if !wasClosed { for _ in 0..<threadCount { ended.wait() } }
    }

    /// Checks the invariants of the state. Called under the lock.
    private func check(_ state: borrowing State) {
        precondition(
            state.busyCount >= 0 && state.busyCount + state.sleepers.count <= state.workerCount,
            "a worker is counted twice as busy, or as busy and asleep")
    }

    // MARK: Doing it

    /// Performs a portion of the waiting work on `worker`. Returns false when no work waits; the pool then wakes the
    /// worker when there is some.
    func work(_ worker: PoolWorker) -> Bool {
        let (portion, sleeper) = state.withLock { state -> (Portion?, PoolWorker?) in
            guard let portion = take(&state) else {
                precondition(state.waiting.taken == 0, "work is counted, but no source has any")
                if !state.isClosed { state.sleepers.append(worker) }
                check(state)
                return (nil, nil)
            }
            state.busyCount += 1
            check(state)
            return (portion, state.waiting.taken > 0 ? state.sleepers.popLast() : nil)
        }
        sleeper?.wake()
        switch portion {
        case .task(let task): task()
        case .challenges(let request, let range):
            request.make(range, of: resources.challenges, with: worker.tagMaker)
        case .pass(let slices, let isSigned): run(slices, isSigned: isSigned, on: worker)
        case nil: return false
        }
        state.withLock { state in
            state.busyCount -= 1
            check(state)
        }
        return true
    }

    /// Removes the worker from the sleepers, because its thread woke up without the pool.
    func awoke(_ worker: PoolWorker) {
        state.withLock { state in state.sleepers.removeAll { $0 === worker } }
    }

    /// Takes work of one kind from the sources in turn until the portion is full. A portion is this worker's share of
    /// what waits of the kind, rounded up to as many proofs as take no more time. It is smaller while peers take turns:
    /// who sends a single proof waits until a worker has done what it has begun.
    private func take(_ state: inout State) -> Portion? {
        let kind = state.kindTurns.next(
            promptPeers: state.turns[.prompt].count, followingPeers: state.turns[.following].count)
        let share = (state.items[kind] + state.workerCount - 1) / max(1, state.workerCount)
        let isShared = state.sharedItems > 0 || state.turns[kind].count > 1
        let most = isShared ? Limits.proofsPerSharedPortionMax : Limits.proofsPerPortionMax
        var turn = Limits.proofsPerTurn
        var room = min(most, resources.signatures.filled(max(Limits.proofsPerPortionMin, share)))
        var slices: [Slice] = []
        var isSigned = true
        while room > 0, let source = state.turns[kind].first?.turns[kind].first,
            let work = source.waiting[kind].first
        {
            switch work {
            case .task(let task, _):
                guard slices.isEmpty else { return .pass(slices, isSigned: isSigned) }
                endTurn(of: source, kind, taken: 1, isWorkDone: true, &state)
                return .task(task)
            case .challenges(let request):
                guard slices.isEmpty else { return .pass(slices, isSigned: isSigned) }
                let range = request.take()
                let items = ChallengeRequest.items(range.count)
                endTurn(of: source, kind, taken: items, isWorkDone: request.isTaken, &state)
                return .challenges(request, range)
            case .verification(let request):
                if slices.isEmpty {
                    isSigned = request.isSigned
                    if isShared, isSigned {
                        room = min(room, resources.signatures.sharedPortion)
                        // Another peer finds room, too, unless the room is for one proof. When it is odd, another one
                        // gets the larger part the next time.
                        turn = min(turn, max(1, room / 2))
                    }
                }
                guard request.isSigned == isSigned else { return .pass(slices, isSigned: isSigned) }
                let count = min(request.count - request.next, turn, room)
                precondition(count > 0, "a request waits although all of its proofs were taken")
                slices.append(Slice(source: source, request: request, range: request.next..<request.next + count))
                request.next += count
                room -= count
                endTurn(of: source, kind, taken: count, isWorkDone: request.next == request.count, &state)
            }
        }
        return slices.isEmpty ? nil : .pass(slices, isSigned: isSigned)
    }

    /// Ends the turn of a source, and that of its peer. `taken`: proofs and tasks that were taken from it.
    private func endTurn(
        of source: WorkSource, _ kind: WorkKind, taken: Int, isWorkDone: Bool, _ state: inout State
    ) {
        guard let line = state.turns[kind].popFirst(), line.turns[kind].popFirst() === source,
            line.waitingItems >= taken, state.items[kind] >= taken
        else { preconditionFailure("a source ended another source's turn, or more work was taken than was queued") }
        state.sharedItems = max(0, state.sharedItems - taken)
        if state.lastPeer != line.peer {
            if state.lastPeer != nil { state.sharedItems = Limits.sharedItems }
            state.lastPeer = line.peer
        }
        state.kindTurns.note(kind, cost: 1)
        line.waitingItems -= taken
        state.waiting.giveBack(taken)
        state.items[kind] -= taken
        if !line.turns[kind].isEmpty { state.turns[kind].append(line) }
        if isWorkDone { source.waiting[kind].removeFirst() }
        if !source.waiting[kind].isEmpty { addTurn(of: source, in: line, kind, &state) }
        let isEmpty = WorkKind.allCases.allSatisfy { line.turns[$0].isEmpty }
        precondition((line.waitingItems == 0) == isEmpty, "a peer's work is counted wrongly")
    }

    private func run(
        _ slices: [Slice], isSigned: Bool, on worker: PoolWorker
    ) {
        var count = 0
        for slice in slices {
            let end = count + slice.range.count
            precondition(end <= worker.proofs.count, "a portion has more proofs than a worker has room for")
            slice.request.readProofs(
                slice.range, UnsafeMutableBufferPointer(rebasing: worker.proofs.elements[count..<end]))
            count = end
        }
        let proofs = UnsafeBufferPointer(worker.proofs.prefix(count))
        let verdicts = worker.verdicts.prefix(count)
        let roots = worker.roots.prefix(count)
        var failure: ServiceError?
        let moment = resources.rootSets.moment
        do throws(ServiceError) {
            if isSigned {
                try worker.verifier.verify(proofs, verdicts: verdicts, roots: roots)
            } else {
                try worker.verifier.verifyInclusion(proofs, verdicts: verdicts, roots: roots)
            }
            counts.withLock { counts in
                for verdict in verdicts { counts[Int(verdict.rawValue)] += 1 }
            }
            if isSigned { resources.sample?.note(proofs, verdicts) }
        } catch {
            // Only the requests that meet the damage, or what is not checked yet, get the error.
            if error.isOfSingleProofs, let parts = WorkerPool.parts(of: slices) {
                for part in parts { run([part], isSigned: isSigned, on: worker) }
                return
            }
            failure = error
        }
        finish(slices, on: worker, moment, failure: failure)
    }

    /// What can fail by itself; `nil` when nothing less than all can.
    private static func parts(of slices: [Slice]) -> [Slice]? {
        guard slices.count == 1, let slice = slices.first else { return slices }
        guard slice.request.failsSingly, slice.range.count > 1 else { return nil }
        return slice.range.map { Slice(source: slice.source, request: slice.request, range: $0..<$0 + 1) }
    }

    /// Hands the verdicts of a pass to its requests. The answers of one connection leave together, after its last
    /// slice: they don't wait for what later requests of other connections do with their verdicts.
    private func finish(
        _ slices: [Slice], on worker: PoolWorker, _ moment: ReadMoment, failure: ServiceError?
    ) {
        let gathers = slices.count > 1
        if gathers { for slice in slices { slice.source.answers?.beginGathering() } }
        var start = 0
        for slice in slices {
            for position in slice.range {
                slice.request.verdicts[position] = worker.verdicts[start]
                slice.request.roots?[position] = worker.roots[start]
                start += 1
            }
            slice.request.finish(slice.range, moment, failure: failure)
            if gathers { slice.source.answers?.endGathering() }
        }
    }
}
