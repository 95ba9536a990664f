import CLMDB
import Core
import Dispatch
import Foundation
import Synchronization

/// The mutations that wait for the writer. One writer thread takes all waiting mutations, commits them together, and
/// answers them after the commit.
final class CommitQueue: Sendable {
    typealias Completion = @Sendable (Result<MutationReceipt, ServiceError>) -> Void

    private struct Pending: Sendable {
        let mutation: Mutation
        let bytes: Int
        let peer: Holder
        let completion: Completion
    }

    private struct State {
        var waiting: [Pending] = []
        /// The places of waiting mutations, and their bytes.
        var places = PeerShares(capacity: Limits.mutationsQueuedMax)
        var bytes = PeerShares(capacity: Limits.mutationBytesQueuedMax)
        var isWriterAsleep = false
        var isStarted = false
        var isClosed = false
    }

    private let environment: StorageEnvironment
    private let configuration: RootSets.Configuration
    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)
    private let writer = ThreadConfinement()
    /// Commits made, and mutations in all of them.
    let commits = Atomic<UInt64>(0)
    let committed = Atomic<UInt64>(0)

    init(_ environment: StorageEnvironment, _ configuration: RootSets.Configuration) {
        self.environment = environment
        self.configuration = configuration
    }

    /// Starts the writer. Must be called once, before `close`.
    func start() {
        state.withLock { state in
            precondition(!state.isStarted && !state.isClosed, "a queue was started twice, or after it was closed")
            state.isStarted = true
        }
        let writer = Thread { self.run() }
        writer.name = "rootgate writer"
        writer.start()
    }

    /// Queues a mutation of a peer, which shares the queue with others (`Shares`). The writer's thread calls
    /// `completion` once the mutation is durable or refused. If the mutation is not queued, `completion` is called at
    /// once with `busy` or `shuttingDown`.
    func submit(_ mutation: Mutation, of peer: Holder, completion: @escaping Completion) {
        let bytes = CommitQueue.weight(of: mutation)
        precondition(bytes > 0, "a mutation has no bytes")
        let refusal: ServiceError? = state.withLock { state in
            if state.isClosed { return ServiceError(.shuttingDown, "the storage is closing") }
            let busy = ServiceError(.busy, "too many mutations wait for the disk: try again later")
            guard state.places.take(1, by: peer) else { return busy }
            guard state.bytes.take(bytes, by: peer) else {
                state.places.giveBack(1, by: peer)
                return busy
            }
            state.waiting.append(Pending(mutation: mutation, bytes: bytes, peer: peer, completion: completion))
            if state.isWriterAsleep {
                state.isWriterAsleep = false
                wake.signal()
            }
            return nil
        }
        if let refusal { completion(.failure(refusal)) }
    }

    /// Number of waiting mutations.
    var depth: Int { state.withLock { $0.waiting.count } }

    /// Refuses new mutations, lets the writer commit those that wait, and waits until its thread has ended. A second
    /// call does nothing. A call on the writer's thread does not wait: a completion may release the last reference to
    /// the root sets, and the thread then ends by itself.
    func close() {
        let wasClosed = state.withLock { state in
            precondition(state.isStarted, "a queue was closed before it was started")
            let wasClosed = state.isClosed
            state.isClosed = true
            if state.isWriterAsleep {
                state.isWriterAsleep = false
                wake.signal()
            }
            return wasClosed
        }
        guard !wasClosed, !writer.isCurrent else { return }
        ended.wait()
    }

    private static func weight(of mutation: Mutation) -> Int {
        switch mutation.change {
        case .addRoots(_, let roots), .removeRoots(_, let roots): 256 + roots.count * Digest.byteCount
        case .createCollaboration, .dropCollaboration: 256
        case .edit(let edit): 256 + edit.weight
        }
    }

    // MARK: The writer

    private func run() {
        writer.bind()
        while let group = nextGroup() {
            commit(group)
        }
        state.withLock { state in
            precondition(state.isClosed && state.waiting.isEmpty, "the writer ends while mutations wait")
        }
        // The thread ends. A later thread may get the same identity.
        writer.unbind()
        ended.signal()
    }

    /// Waits for mutations and takes as many as one commit may carry. Returns `nil` once the queue is closed and empty.
    private func nextGroup() -> ArraySlice<Pending>? {
        writer.assertIsCurrent()
        while true {
            let (group, isClosed) = state.withLock { state -> (ArraySlice<Pending>?, Bool) in
                guard !state.waiting.isEmpty else {
                    precondition(state.bytes.taken == 0, "bytes are counted, but no mutation waits")
                    state.isWriterAsleep = !state.isClosed
                    return (nil, state.isClosed)
                }
                var count = 0
                var bytes = 0
                while count < state.waiting.count, count < Limits.mutationsPerCommitMax,
                    count == 0 || bytes + state.waiting[count].bytes <= Limits.mutationBytesPerCommitMax
                {
                    bytes += state.waiting[count].bytes
                    count += 1
                }
                for pending in state.waiting.prefix(count) {
                    state.places.giveBack(1, by: pending.peer)
                    state.bytes.giveBack(pending.bytes, by: pending.peer)
                }
                precondition(count > 0 && count <= Limits.mutationsPerCommitMax, "a group has too many mutations")
                assert(
                    state.bytes.taken == state.waiting.dropFirst(count).reduce(0) { $0 + $1.bytes },
                    "the count of waiting bytes is wrong")
                if count == state.waiting.count {
                    let all = state.waiting
                    state.waiting = []
                    return (all[...], false)
                }
                let group = state.waiting[..<count]
                state.waiting.removeFirst(count)
                return (group, false)
            }
            if let group { return group }
            if isClosed { return nil }
            wake.wait()
        }
    }

    /// Commits the group in one transaction. If the space runs out, that transaction is aborted and the mutations are
    /// committed one by one: then the mutations that free space succeed.
    private func commit(_ group: ArraySlice<Pending>) {
        writer.assertIsCurrent()
        do throws(StorageFailure) {
            let results = try attempt(group)
            precondition(results.count == group.count, "there is not one result for each mutation")
            // The commit has succeeded, so each mutation is durable or refused.
            for (pending, result) in zip(group, results) { pending.completion(result) }
        } catch {
            guard error.isLackOfSpace, group.count > 1 else {
                for pending in group { pending.completion(.failure(error.asServiceError)) }
                return
            }
            for index in group.indices { commit(group[index...index]) }
        }
    }

    private func attempt(
        _ group: ArraySlice<Pending>
    ) throws(StorageFailure) -> [Result<MutationReceipt, ServiceError>] {
        let transaction = try WriteTransaction(environment.handle)
        let hasSpace = try hasSpace()
        var applier = try Applier(transaction, environment)
        var results: [Result<MutationReceipt, ServiceError>] = []
        results.reserveCapacity(group.count)
        var isWritten = false
        var last = applier.sequence
        for pending in group {
            let result = try applier.apply(pending.mutation, spaceLeft: hasSpace)
            if case .success(let receipt) = result {
                precondition(
                    receipt.isRepeat ? receipt.sequence <= last : receipt.sequence == last + 1,
                    "a mutation got a sequence out of order")
                if !receipt.isRepeat { (isWritten, last) = (true, receipt.sequence) }
            }
            results.append(result)
        }
        // A group of refusals and repeats writes nothing, so it needs no commit.
        guard isWritten else { return results }
        // The log counts towards the size limit. It gets at most a quarter, so that there is room for the sets whatever
        // the operator configured.
        let retention = min(configuration.logRetentionBytes, configuration.sizeLimitBytes / 4)
        try applier.finish(trimmingLogTo: UInt64(retention), count: 64 + 2 * group.count)
        try transaction.commit()
        commits.add(1, ordering: .relaxed)
        committed.add(UInt64(group.count), ordering: .relaxed)
        return results
    }

    /// Whether mutations that need space are allowed: the size limit is not reached, and the disk has room for the
    /// reserve for removals.
    private func hasSpace() throws(StorageFailure) -> Bool {
        let limit = configuration.sizeLimitBytes
        guard try environment.usedBytes(above: limit / 8 * 7) < limit else { return false }
        do throws(StorageFailure) {
            try environment.reserve(configuration.reserveBytes)
            return true
        } catch {
            if error.isLackOfSpace { return false }
            throw error
        }
    }
}
