package import Core
import Dispatch
import Foundation
import Synchronization

/// A request's proofs on their way through the pool, and their verdicts.
///
/// Sendable without the compiler's proof: `next` is touched under the pool's
/// lock only; each worker writes the verdicts and roots of the range that it
/// took, and nobody reads them before the last range is done.
package final class VerificationRequest: @unchecked Sendable {
    package let count: Int
    package let isSigned: Bool
    package let verdicts: UnsafeMutableBufferPointer<Verdict>
    package let roots: UnsafeMutableBufferPointer<Digest>?
    /// Returns the proof at a position, borrowed from memory that lives as long as this request.
    fileprivate let proof: @Sendable (Int) -> BorrowedProof
    /// Called once, on the worker that finished last.
    fileprivate let completion: @Sendable (VerificationRequest, ServiceError?) -> Void
    /// The first proof that no worker took yet.
    fileprivate var next = 0
    private let unfinished: Atomic<Int>
    private let failure = Mutex<ServiceError?>(nil)

    /// `count`: at least one. `proof` may capture the buffer that keeps the proofs' memory alive.
    package init(
        count: Int, isSigned: Bool, wantsRoots: Bool, proof: @escaping @Sendable (Int) -> BorrowedProof,
        completion: @escaping @Sendable (VerificationRequest, ServiceError?) -> Void
    ) {
        precondition(count > 0)
        self.count = count
        self.isSigned = isSigned
        self.proof = proof
        self.completion = completion
        unfinished = Atomic(count)
        verdicts = .allocate(capacity: count)
        verdicts.initialize(repeating: .malformed)
        roots = wantsRoots ? .allocate(capacity: count) : nil
        roots?.initialize(repeating: .zero)
    }

    deinit {
        verdicts.deallocate()
        roots?.deallocate()
    }

    fileprivate func finish(_ count: Int, failure error: ServiceError?) {
        if let error { failure.withLock { $0 = $0 ?? error } }
        if unfinished.subtract(count, ordering: .acquiringAndReleasing).newValue == 0 {
            completion(self, failure.withLock { $0 })
        }
    }
}

/// Where work comes from, a connection as a rule: sources take turns, so that
/// one with much to do does not hold up one with little.
///
/// Sendable without the compiler's proof: touched under the pool's lock only.
package final class WorkSource: @unchecked Sendable {
    fileprivate enum Work {
        case verification(VerificationRequest)
        case task(@Sendable () -> Void)
    }

    fileprivate var waiting = Queue<Work>()

    package init() {}
}

/// A fixed number of threads that turn proofs into verdicts and do other short
/// reads. A worker takes what waits, from all sources in turn, up to one pass:
/// an idle pool starts a single proof at once, a busy one gets batches by
/// itself, without timers.
package final class WorkerPool: Sendable {
    private struct State {
        /// Sources that have something waiting, in the order of their turns.
        var turns = Queue<WorkSource>()
        var waitingItems = 0
        var sleepers = 0
        var isClosed = false
    }

    /// What a worker took to do in one go.
    private enum Portion {
        case pass([(request: VerificationRequest, range: Range<Int>)], isSigned: Bool)
        case task(@Sendable () -> Void)
    }

    private let gate: Gate
    private let workerCount: Int
    private let waitingItemsMax: Int
    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)
    private let counts = Mutex([UInt64](repeating: 0, count: 256))

    /// `workerCount`: threads, one for each core as a rule. `waitingItemsMax`: proofs and tasks that may
    /// wait; beyond it the pool is busy.
    ///
    /// Throws `internalFault` when a worker can't get its memory.
    package init(_ gate: Gate, workerCount: Int, waitingItemsMax: Int) throws(ServiceError) {
        self.gate = gate
        self.workerCount = max(1, workerCount)
        self.waitingItemsMax = waitingItemsMax
        var verifiers: [BatchVerifier] = []
        for _ in 0..<self.workerCount { verifiers.append(try BatchVerifier(gate)) }
        for (number, verifier) in verifiers.enumerated() {
            let worker = Worker(verifier)
            let thread = Thread { self.run(worker) }
            thread.name = "rootgate worker \(number)"
            thread.start()
        }
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

    private func add(_ work: WorkSource.Work, items: Int, to source: WorkSource) -> Bool {
        let (isTaken, wakes) = state.withLock { state -> (Bool, Bool) in
            // A request that is larger than the whole bound is taken when nothing else waits.
            guard !state.isClosed, state.waitingItems == 0 || state.waitingItems + items <= waitingItemsMax else {
                return (false, false)
            }
            state.waitingItems += items
            if source.waiting.isEmpty { state.turns.append(source) }
            source.waiting.append(work)
            guard state.sleepers > 0 else { return (true, false) }
            state.sleepers -= 1
            return (true, true)
        }
        if wakes { wake.signal() }
        return isTaken
    }

    /// Proofs and tasks that wait.
    package var depth: Int { state.withLock { $0.waitingItems } }

    /// How often each verdict was given, for those that were.
    package var verdictCounts: [(verdict: Verdict, count: UInt64)] {
        counts.withLock { counts in Verdict.allCases.map { ($0, counts[Int($0.rawValue)]) } }
    }

    /// Refuses new work, does what waits, ends the threads.
    package func close() {
        let (wasClosed, sleepers) = state.withLock { state in
            let result = (state.isClosed, state.sleepers)
            state.isClosed = true
            state.sleepers = 0
            return result
        }
        for _ in 0..<sleepers { wake.signal() }
        if !wasClosed { for _ in 0..<workerCount { ended.wait() } }
    }

    // MARK: Doing it

    /// A worker's own memory for one pass.
    ///
    /// Sendable without the compiler's proof: handed to its one thread before that starts.
    private final class Worker: @unchecked Sendable {
        let verifier: BatchVerifier
        let proofs: UnsafeMutableBufferPointer<BorrowedProof>
        let verdicts: UnsafeMutableBufferPointer<Verdict>
        let roots: UnsafeMutableBufferPointer<Digest>

        init(_ verifier: BatchVerifier) {
            self.verifier = verifier
            proofs = .allocate(capacity: BatchVerifier.capacity)
            verdicts = .allocate(capacity: BatchVerifier.capacity)
            roots = .allocate(capacity: BatchVerifier.capacity)
            verdicts.initialize(repeating: .malformed)
            roots.initialize(repeating: .zero)
        }

        deinit {
            proofs.deallocate()
            verdicts.deallocate()
            roots.deallocate()
        }
    }

    private func run(_ worker: Worker) {
        while let portion = nextPortion() {
            switch portion {
            case .task(let task): task()
            case .pass(let slices, let isSigned): run(slices, isSigned: isSigned, on: worker)
            }
        }
        ended.signal()
    }

    /// What to do next; `nil` once closed and empty.
    private func nextPortion() -> Portion? {
        while true {
            let (portion, wakesAnother, isOver) = state.withLock { state -> (Portion?, Bool, Bool) in
                guard let portion = take(&state) else {
                    if !state.isClosed { state.sleepers += 1 }
                    return (nil, false, state.isClosed)
                }
                guard state.waitingItems > 0, state.sleepers > 0 else { return (portion, false, false) }
                state.sleepers -= 1
                return (portion, true, false)
            }
            if wakesAnother { wake.signal() }
            if let portion { return portion }
            if isOver { return nil }
            wake.wait()
        }
    }

    /// Takes turns from the sources until the pass is full: this worker's share of what waits, at least
    /// one turn and at most one pass.
    private func take(_ state: inout State) -> Portion? {
        let share = (state.waitingItems + workerCount - 1) / workerCount
        var room = min(Limits.proofsPerPassMax, max(Limits.proofsPerTurn, share))
        var slices: [(request: VerificationRequest, range: Range<Int>)] = []
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
                slices.append((request, request.next..<request.next + count))
                request.next += count
                room -= count
                state.waitingItems -= count
                endTurn(of: source, isWorkDone: request.next == request.count, &state)
            }
        }
        return slices.isEmpty ? nil : .pass(slices, isSigned: isSigned)
    }

    private func endTurn(of source: WorkSource, isWorkDone: Bool, _ state: inout State) {
        if isWorkDone { source.waiting.removeFirst() }
        state.turns.removeFirst()
        if !source.waiting.isEmpty { state.turns.append(source) }
    }

    private func run(
        _ slices: [(request: VerificationRequest, range: Range<Int>)], isSigned: Bool, on worker: Worker
    ) {
        var count = 0
        for (request, range) in slices {
            for position in range {
                worker.proofs.initializeElement(at: count, to: request.proof(position))
                count += 1
            }
        }
        let proofs = UnsafeBufferPointer(rebasing: worker.proofs[..<count])
        let verdicts = UnsafeMutableBufferPointer(rebasing: worker.verdicts[..<count])
        let roots = UnsafeMutableBufferPointer(rebasing: worker.roots[..<count])
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
        for (request, range) in slices {
            for position in range {
                request.verdicts[position] = verdicts[start]
                request.roots?[position] = roots[start]
                start += 1
            }
            request.finish(range.count, failure: failure)
        }
    }
}
