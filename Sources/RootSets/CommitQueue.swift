import CLMDB
import Core
import Dispatch
import Foundation
import Synchronization

/// The mutations that wait for the disk. One writer thread takes all that wait, commits them together, and answers
/// them after the commit.
final class CommitQueue: Sendable {
    typealias Completion = @Sendable (Result<MutationReceipt, ServiceError>) -> Void

    private struct Pending: Sendable {
        let mutation: Mutation
        let bytes: Int
        let completion: Completion
    }

    private struct State {
        var waiting: [Pending] = []
        var waitingBytes = 0
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
    /// Commits made, and mutations in them.
    let commits = Atomic<UInt64>(0)
    let committed = Atomic<UInt64>(0)

    init(_ environment: StorageEnvironment, _ configuration: RootSets.Configuration) {
        self.environment = environment
        self.configuration = configuration
    }

    /// Starts the writer; to be called once, before `close`.
    func start() {
        state.withLock { state in
            precondition(!state.isStarted && !state.isClosed, "a queue is started once")
            state.isStarted = true
        }
        let writer = Thread { self.run() }
        writer.name = "rootgate writer"
        writer.start()
    }

    /// `completion` is called on the writer's thread once the mutation is durable or refused, or at once
    /// with `busy` or `shuttingDown`.
    func submit(_ mutation: Mutation, completion: @escaping Completion) {
        let bytes = CommitQueue.weight(of: mutation)
        precondition(bytes > 0, "a mutation weighs nothing")
        let refusal: ServiceError? = state.withLock { state in
            if state.isClosed { return ServiceError(.shuttingDown, "the storage is closing") }
            guard state.waiting.count < Limits.mutationsQueuedMax,
                state.waitingBytes + bytes <= Limits.mutationBytesQueuedMax
            else { return ServiceError(.busy, "too many mutations wait for the disk: try again later") }
            state.waiting.append(Pending(mutation: mutation, bytes: bytes, completion: completion))
            state.waitingBytes += bytes
            if state.isWriterAsleep {
                state.isWriterAsleep = false
                wake.signal()
            }
            return nil
        }
        if let refusal { completion(.failure(refusal)) }
    }

    /// Mutations that wait.
    var depth: Int { state.withLock { $0.waiting.count } }

    /// Refuses new mutations, has what waits committed, and waits until the writer has ended; the second call does
    /// nothing. Traps when the first call is made on the writer's thread.
    func close() {
        let wasClosed = state.withLock { state in
            precondition(state.isStarted, "a queue is closed that was not started")
            let wasClosed = state.isClosed
            state.isClosed = true
            if state.isWriterAsleep {
                state.isWriterAsleep = false
                wake.signal()
            }
            return wasClosed
        }
        guard !wasClosed else { return }
        precondition(!writer.isCurrent, "the writer would wait for its own end")
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
            precondition(state.isClosed && state.waiting.isEmpty, "the writer ends before its work does")
        }
        // The thread ends: a later one may have the same identity.
        writer.unbind()
        ended.signal()
    }

    /// Everything that waits, up to the size of one commit; `nil` once closed and empty.
    private func nextGroup() -> ArraySlice<Pending>? {
        writer.assertIsCurrent()
        while true {
            let (group, isClosed) = state.withLock { state -> (ArraySlice<Pending>?, Bool) in
                guard !state.waiting.isEmpty else {
                    precondition(state.waitingBytes == 0, "the bytes of no mutation wait")
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
                state.waitingBytes -= bytes
                precondition(count > 0 && count <= Limits.mutationsPerCommitMax, "a group has too many mutations")
                precondition(state.waitingBytes >= 0, "more bytes leave the queue than came")
                assert(
                    state.waitingBytes == state.waiting.dropFirst(count).reduce(0) { $0 + $1.bytes },
                    "the bytes that wait are not those of the mutations that wait")
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

    /// Commits the group in one transaction. When the space runs out, nothing of the transaction stays and the
    /// mutations are committed one by one, so that those that free space succeed.
    private func commit(_ group: ArraySlice<Pending>) {
        writer.assertIsCurrent()
        do throws(StorageFailure) {
            let results = try attempt(group)
            precondition(results.count == group.count, "a mutation has no result, or two")
            // The commit has succeeded: each mutation is durable or refused.
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
        // Refusals and repeats of durable mutations alone need no commit.
        guard isWritten else { return results }
        // The log counts towards the limit: it must leave room for the sets, whatever the operator said.
        let retention = min(configuration.logRetentionBytes, configuration.sizeLimitBytes / 4)
        try applier.finish(trimmingLogTo: UInt64(retention), count: 64 + 2 * group.count)
        try transaction.commit()
        commits.add(1, ordering: .relaxed)
        committed.add(UInt64(group.count), ordering: .relaxed)
        return results
    }

    /// Whether mutations that need space may go on: the quota is not used up and the reserve for removals
    /// is still free on the disk.
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
