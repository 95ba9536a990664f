package import Core
import Dispatch
import Foundation
import Synchronization

/// A fixed number of workers that turn proofs into verdicts and do other short reads. A worker takes its share of what
/// waits, from all sources in turn: so an idle pool starts a single proof at once, and batches grow with the load,
/// without timers.
///
/// A worker runs on a thread of the pool's or on one that does other work too: an event loop that verifies what it has
/// just read saves two changes of thread for each request.
package final class WorkerPool: Sendable {
    private struct State {
        /// Sources that have something waiting, in the order of their turns.
        var turns = Queue<WorkSource>()
        var waitingItems = 0
        var workerCount = 0
        /// Workers that found nothing to do and want to be woken.
        var sleepers: [PoolWorker] = []
        /// Workers in the middle of a portion.
        var busyCount = 0
        var isClosed = false
    }

    /// Some of a request's proofs.
    private struct Slice {
        let request: VerificationRequest
        let range: Range<Int>
    }

    /// What a worker took to do in one go.
    private enum Portion {
        case pass([Slice], isSigned: Bool)
        case task(@Sendable () -> Void)
    }

    private let resources: VerificationResources
    private let threadCount: Int
    private let waitingItemsMax: Int
    private let state = Mutex(State())
    private let ended = DispatchSemaphore(value: 0)
    private let counts = Mutex([UInt64](repeating: 0, count: 256))

    /// `workerCount`: workers on threads of the pool's own; 0 when all will be attached to other threads.
    /// `waitingItemsMax`: proofs and tasks that may wait; beyond it the pool is busy.
    ///
    /// Throws `internalFault` when a worker can't get its memory.
    package init(_ resources: VerificationResources, workerCount: Int, waitingItemsMax: Int) throws(ServiceError) {
        self.resources = resources
        self.waitingItemsMax = waitingItemsMax
        threadCount = workerCount
        for number in 0..<workerCount {
            let awake = DispatchSemaphore(value: 0)
            let worker = try attachWorker { awake.signal() }
            let thread = Thread { [self] in
                while !state.withLock({ $0.isClosed && $0.waitingItems == 0 }) {
                    // A closed pool wakes only those that slept before.
                    if !worker.work(), !state.withLock({ $0.isClosed }) { awake.wait() }
                }
                ended.signal()
            }
            thread.name = "rootgate worker \(number)"
            thread.start()
        }
    }

    /// A worker for a thread that calls its `work` again and again, and waits for `wake` when it returned
    /// false. `wake` is called from any thread.
    ///
    /// Throws `internalFault` when it can't get its memory.
    package func attachWorker(wake: @escaping @Sendable () -> Void) throws(ServiceError) -> PoolWorker {
        let worker = PoolWorker(self, try BatchVerifier(resources), wake)
        state.withLock { $0.workerCount += 1 }
        return worker
    }

    // MARK: Taking work in

    /// Whether the request was taken; if not, the pool is busy or closed and nothing will be called.
    package func submit(_ request: VerificationRequest, from source: WorkSource) -> Bool {
        add(.verification(request), items: request.count, to: source)
    }

    /// Whether the task was taken. It runs on a worker; it is to be short.
    package func submit(from source: WorkSource, task: @escaping @Sendable () -> Void) -> Bool {
        add(.task(task), items: 1, to: source)
    }

    /// The same for a task of which there is one at a time, so that nobody can have many wait: it is taken although the
    /// pool is full. Without effect on a closed pool.
    package func submitAlways(from source: WorkSource, task: @escaping @Sendable () -> Void) {
        _ = add(.task(task), items: 1, to: source, evenWhenFull: true)
    }

    private func add(
        _ work: WorkSource.Work, items: Int, to source: WorkSource, evenWhenFull: Bool = false
    ) -> Bool {
        let (isTaken, sleeper) = state.withLock { state -> (Bool, PoolWorker?) in
            precondition(items > 0, "work that is nothing")
            // A request that is larger than the whole limit is taken when nothing else waits.
            let hasRoom = state.waitingItems == 0 || state.waitingItems + items <= waitingItemsMax
            guard !state.isClosed, hasRoom || evenWhenFull else { return (false, nil) }
            state.waitingItems += items
            check(state)
            if source.waiting.isEmpty { state.turns.append(source) }
            source.waiting.append(work)
            // When no worker will look for work by itself, one has to be woken; one that looks wakes others if
            // there is enough to share.
            guard state.sleepers.count + state.busyCount == state.workerCount else { return (true, nil) }
            return (true, state.sleepers.popLast())
        }
        sleeper?.wake()
        return isTaken
    }

    /// Proofs and tasks that wait.
    package var depth: Int { state.withLock { $0.waitingItems } }

    /// How often each verdict was given, for those that were.
    package var verdictCounts: [(verdict: Verdict, count: UInt64)] {
        counts.withLock { counts in Verdict.allCases.map { ($0, counts[Int($0.rawValue)]) } }
    }

    /// Refuses new work, has the pool's threads do what waits, and ends them.
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

    /// Asserts what holds between two steps. Under the lock.
    private func check(_ state: borrowing State) {
        precondition(state.waitingItems >= 0, "more work was taken than came")
        precondition(
            state.busyCount >= 0 && state.busyCount + state.sleepers.count <= state.workerCount,
            "a worker is busy twice, or busy and asleep")
    }

    // MARK: Doing it

    /// Does a share of what waits on `worker`. False when nothing waits: then the worker will be woken when something
    /// does.
    func work(_ worker: PoolWorker) -> Bool {
        let (portion, sleeper) = state.withLock { state -> (Portion?, PoolWorker?) in
            guard let portion = take(&state) else {
                precondition(state.waitingItems == 0, "work waits that no source has")
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
        case .pass(let slices, let isSigned): run(slices, isSigned: isSigned, on: worker)
        case nil: return false
        }
        state.withLock { state in
            state.busyCount -= 1
            check(state)
        }
        return true
    }

    /// The worker's thread woke up without the pool.
    func awoke(_ worker: PoolWorker) {
        state.withLock { state in state.sleepers.removeAll { $0 === worker } }
    }

    /// Takes work from the sources in turn until the portion is full: this worker's share of what waits, and as many
    /// proofs more as take no more time.
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
            case .verification(let request):
                if slices.isEmpty { isSigned = request.isSigned }
                guard request.isSigned == isSigned else { return .pass(slices, isSigned: isSigned) }
                let count = min(request.count - request.next, Limits.proofsPerTurn, room)
                precondition(count > 0, "a request waits whose proofs are all taken")
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
        precondition(state.turns.first === source, "a turn ends that is not this source's")
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
