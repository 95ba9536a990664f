package import Core
import Dispatch
import Foundation
import Synchronization

/// A fixed number of workers that verify proofs, make challenges and perform other short reads. A worker takes its
/// share of the waiting work from all sources in turn. So an idle pool starts a single proof at once, and batches grow
/// with the load. No timers are needed.
///
/// A worker runs on a thread of the pool's or on a thread that also does other work. An event loop that verifies the
/// proofs that it has just read saves two thread switches for each request.
package final class WorkerPool: Sendable {
    private struct State {
        /// Sources with waiting work, in the order of their turns.
        var turns = Queue<WorkSource>()
        var waitingItems = 0
        var workerCount = 0
        /// Workers that found no work and must be woken when there is some.
        var sleepers: [PoolWorker] = []
        /// Workers that are performing a portion.
        var busyCount = 0
        var isClosed = false
    }

    /// A range of a request's proofs.
    private struct Slice {
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
    private let waitingItemsMax: Int
    private let state = Mutex(State())
    private let ended = DispatchSemaphore(value: 0)
    private let counts = Mutex([UInt64](repeating: 0, count: 256))

    /// `workerCount`: workers on threads of the pool's own; 0 when all will be attached to other threads.
    /// `waitingItemsMax`: proofs and tasks that may wait; `Limits.challengesPerItem` challenges count as one. Above it
    /// `submit` refuses more.
    ///
    /// Throws `internalFault` when a worker's memory can't be allocated.
    package init(_ resources: VerificationResources, workerCount: Int, waitingItemsMax: Int) throws(ServiceError) {
        self.resources = resources
        self.waitingItemsMax = waitingItemsMax
        threadCount = workerCount
        for number in 0..<workerCount {
            let awake = DispatchSemaphore(value: 0)
            let worker = try attachWorker { awake.signal() }
            let thread = Thread { [self] in
                while !state.withLock({ $0.isClosed && $0.waitingItems == 0 }) {
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
        let worker = PoolWorker(self, try BatchVerifier(resources), resources.challenges.makeTagMaker(), wake)
        state.withLock { $0.workerCount += 1 }
        return worker
    }

    // MARK: Taking work in

    /// Queues a request. Returns false, and will not call its completion, when the pool is full or closed.
    package func submit(_ request: VerificationRequest, from source: WorkSource) -> Bool {
        add(.verification(request), items: request.count, to: source)
    }

    /// Queues a request for challenges. Returns false, and will not call its completion, when the pool is full or
    /// closed.
    package func submit(_ request: ChallengeRequest, from source: WorkSource) -> Bool {
        add(.challenges(request), items: ChallengeRequest.items(request.count), to: source)
    }

    /// Queues a task to run on a worker. Returns false when the pool is full or closed. The task must be short.
    package func submit(from source: WorkSource, task: @escaping @Sendable () -> Void) -> Bool {
        add(.task(task), items: 1, to: source)
    }

    /// Queues a task even when the pool is full. Only for tasks of which there is never more than one at a time, so
    /// that they can't pile up. Does nothing on a closed pool.
    package func submitAlways(from source: WorkSource, task: @escaping @Sendable () -> Void) {
        _ = add(.task(task), items: 1, to: source, evenWhenFull: true)
    }

    private func add(
        _ work: WorkSource.Work, items: Int, to source: WorkSource, evenWhenFull: Bool = false
    ) -> Bool {
        let (isTaken, sleeper) = state.withLock { state -> (Bool, PoolWorker?) in
            precondition(items > 0, "work has no items")
            // A request above the whole limit is accepted when nothing else waits.
            let hasRoom = state.waitingItems == 0 || state.waitingItems + items <= waitingItemsMax
            guard !state.isClosed, hasRoom || evenWhenFull else { return (false, nil) }
            state.waitingItems += items
            check(state)
            if source.waiting.isEmpty { state.turns.append(source) }
            source.waiting.append(work)
            // If every worker is asleep or busy, none of them will see this work soon, so one that sleeps is woken. A
            // worker that is looking for work wakes others when it leaves some.
            guard state.sleepers.count + state.busyCount == state.workerCount else { return (true, nil) }
            return (true, state.sleepers.popLast())
        }
        sleeper?.wake()
        return isTaken
    }

    /// Number of proofs and tasks that wait.
    package var depth: Int { state.withLock { $0.waitingItems } }

    /// How often each verdict was given.
    package var verdictCounts: [(verdict: Verdict, count: UInt64)] {
        counts.withLock { counts in Verdict.allCases.map { ($0, counts[Int($0.rawValue)]) } }
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
        precondition(state.waitingItems >= 0, "more work was taken than was queued")
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
                precondition(state.waitingItems == 0, "work is counted, but no source has any")
                if !state.isClosed { state.sleepers.append(worker) }
                check(state)
                return (nil, nil)
            }
            state.busyCount += 1
            check(state)
            return (portion, state.waitingItems > 0 ? state.sleepers.popLast() : nil)
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

    /// Takes work from the sources in turn until the portion is full. A portion is this worker's share of the waiting
    /// work, rounded up to as many proofs as take no more time.
    private func take(_ state: inout State) -> Portion? {
        let share = (state.waitingItems + state.workerCount - 1) / max(1, state.workerCount)
        var room = min(Limits.proofsPerPortionMax, resources.signatures.filled(max(Limits.proofsPerPortionMin, share)))
        var slices: [Slice] = []
        var isSigned = true
        while room > 0, let source = state.turns.first, let work = source.waiting.first {
            switch work {
            case .task(let task):
                guard slices.isEmpty else { return .pass(slices, isSigned: isSigned) }
                endTurn(of: source, isWorkDone: true, &state)
                state.waitingItems -= 1
                return .task(task)
            case .challenges(let request):
                guard slices.isEmpty else { return .pass(slices, isSigned: isSigned) }
                let range = request.take()
                state.waitingItems -= ChallengeRequest.items(range.count)
                endTurn(of: source, isWorkDone: request.isTaken, &state)
                return .challenges(request, range)
            case .verification(let request):
                if slices.isEmpty { isSigned = request.isSigned }
                guard request.isSigned == isSigned else { return .pass(slices, isSigned: isSigned) }
                let count = min(request.count - request.next, Limits.proofsPerTurn, room)
                precondition(count > 0, "a request waits although all of its proofs were taken")
                slices.append(Slice(request: request, range: request.next..<request.next + count))
                request.next += count
                room -= count
                state.waitingItems -= count
                endTurn(of: source, isWorkDone: request.next == request.count, &state)
            }
        }
        return slices.isEmpty ? nil : .pass(slices, isSigned: isSigned)
    }

    private func endTurn(of source: WorkSource, isWorkDone: Bool, _ state: inout State) {
        precondition(state.turns.first === source, "a source ended another source's turn")
        if isWorkDone { source.waiting.removeFirst() }
        state.turns.removeFirst()
        if !source.waiting.isEmpty { state.turns.append(source) }
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
        do throws(ServiceError) {
            if isSigned {
                try worker.verifier.verify(proofs, verdicts: verdicts, roots: roots)
            } else {
                try worker.verifier.verifyInclusion(proofs, verdicts: verdicts, roots: roots)
            }
            counts.withLock { counts in
                for verdict in verdicts { counts[Int(verdict.rawValue)] += 1 }
            }
        } catch {
            failure = error
        }
        var start = 0
        for slice in slices {
            for position in slice.range {
                slice.request.verdicts[position] = verdicts[start]
                slice.request.roots?[position] = roots[start]
                start += 1
            }
            slice.request.finish(slice.range.count, failure: failure)
        }
    }
}
