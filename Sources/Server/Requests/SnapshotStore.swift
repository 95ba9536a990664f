import Core
import Dispatch
import Foundation
import Hashing
import Platform
import RootSets
import Wire

/// The snapshot that a service of a cluster gives to others that can't follow the log from where they are. There is one
/// at most, in a file of the data directory that has no name. It is forgotten when nobody has read of it for a while,
/// which is longer for one that takes long to restore: until then the log is kept for whoever has got it.
///
/// Any thread may use it. Making a snapshot and reading of it take long, and have a queue each. Who asks for a snapshot
/// that is being made waits for a while, and is told then to ask again.
final class SnapshotStore: Sendable {
    private struct Snapshot {
        let identifier: UInt64
        let file: CInt
        let size: UInt64
        /// In milliseconds of the clock; when it was made, if nobody has read of it.
        var readAt: UInt64

        /// For how many milliseconds it is there after somebody has read of it.
        var idleMilliseconds: UInt64 {
            Limits.snapshotIdleMilliseconds + size / Limits.snapshotRestoreBytesPerMillisecond
        }
    }

    typealias Write = @Sendable (_ file: CInt) throws(ServiceError) -> UInt64
    private typealias Completion = @Sendable (Result<SnapshotPiece, ServiceError>) -> Void

    /// Somebody who waits for the snapshot that is being made.
    private struct Waiting {
        let request: SnapshotRequest
        /// When it is told to ask again, in milliseconds of the clock.
        let deadline: UInt64
        let completion: Completion
    }

    private struct State {
        var snapshot: Snapshot?
        /// Whether one is being made.
        var isMaking = false
        var waiting: [Waiting] = []
    }

    private let rootSets: RootSets
    private let directory: String
    private let keys: RotatingKeys
    /// What the token is made of; `nil`: nobody knows where to ask.
    private let message: [UInt8]?
    private let clock: MonotonicClock
    private let write: Write
    private let log: Log
    private let queue = DispatchQueue(label: "rootgate snapshots")
    private let maker = DispatchQueue(label: "rootgate snapshot")
    private let state = Lock(State())
    private let places = Lock(PeerShares(capacity: Limits.snapshotReadersMax))
    private let timer = Lock<RepeatingTimer?>(nil)

    /// `message`: what a token is made of, see `ClusterSettings.Peers`; `nil`: none is genuine. `write`: writes what
    /// the storage holds to a file, and returns how many bytes that are.
    init(
        _ rootSets: RootSets, directory: String, keys: RotatingKeys, message: [UInt8]?, clock: MonotonicClock,
        timers: Timers, log: Log, write: @escaping Write
    ) {
        (self.rootSets, self.directory, self.keys, self.clock) = (rootSets, directory, keys, clock)
        (self.message, self.write, self.log) = (message, write, log)
        let timer = timers.every(milliseconds: 1000, leeway: 500) { [weak self] in
            guard let self else { return }
            // Not while a piece is read.
            queue.async { self.tick() }
        }
        self.timer.withLock { $0 = timer }
    }

    deinit {
        timer.withLock { $0 }?.cancel()
        if let snapshot = state.withLock({ $0.snapshot }) { close(snapshot.file) }
    }

    /// Calls `completion` once, on any thread, with a piece of the snapshot.
    ///
    /// It gets `roleMissing` when the token is not genuine, `busy` when the asker's peer has too many requests, when a
    /// new snapshot is still being made, or when the snapshot is no longer there; and what keeps a snapshot from being
    /// made.
    func read(
        _ request: SnapshotRequest, of peer: Holder,
        _ completion: @escaping @Sendable (Result<SnapshotPiece, ServiceError>) -> Void
    ) {
        let isGenuine = message?.withUnsafeBytes { message in
            request.token.withUnsafeBytes { keys.isGenuine(message, tag: $0) }
        }
        guard isGenuine == true else {
            return completion(
                .failure(ServiceError(.roleMissing, "snapshots are for services with the cluster's secret")))
        }
        guard places.withLock({ $0.take(1, by: peer) }) else { return completion(.failure(Admission.busy)) }
        let answer: Completion = { [self] result in
            places.withLock { $0.giveBack(1, by: peer) }
            completion(result)
        }
        queue.async { [self] in
            if request.identifier == 0, !isThere {
                let deadline = clock.milliseconds + Limits.snapshotWaitMilliseconds
                wait(Waiting(request: request, deadline: deadline, completion: answer))
            } else {
                answer(Result { () throws(ServiceError) in try piece(request) })
            }
        }
    }

    // MARK: On the queue

    private func piece(_ request: SnapshotRequest) throws(ServiceError) -> SnapshotPiece {
        let now = clock.milliseconds
        let found = state.withLock { state -> Snapshot? in
            guard let present = state.snapshot, [0, present.identifier].contains(request.identifier) else { return nil }
            state.snapshot?.readAt = now
            return present
        }
        guard let found, rootSets.keepsSnapshot else {
            throw ServiceError(.busy, "the snapshot is no longer there: ask for a new one")
        }
        guard request.offset <= found.size else {
            throw ServiceError(.malformedRequest, "the snapshot has \(found.size) bytes")
        }
        let count = Int(min(UInt64(Limits.snapshotPieceBytes), found.size - request.offset))
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let read = bytes.withUnsafeMutableBytes {
                pread(found.file, $0.baseAddress.map { $0 + done }, count - done, off_t(request.offset) + off_t(done))
            }
            if read < 0, errno == EINTR { continue }
            guard read > 0 else {
                throw ServiceError(.storageFailed, "reading the snapshot: \(SystemFailure("pread"))")
            }
            done += read
        }
        return SnapshotPiece(identifier: found.identifier, size: found.size, bytes: bytes)
    }

    /// Whether there is a snapshot behind which the log goes on. Another one would take it away from whoever restores
    /// it.
    private var isThere: Bool { state.withLock { $0.snapshot != nil } && rootSets.keepsSnapshot }

    /// Lets somebody wait for the snapshot that is being made, and begins to make one if none is.
    private func wait(_ waiting: Waiting) {
        let isMaking = state.withLock { state in
            defer { state.isMaking = true }
            state.waiting.append(waiting)
            return state.isMaking
        }
        guard !isMaking else { return }
        forget()
        maker.async { [self] in
            let failure: ServiceError?
            do throws(ServiceError) {
                try make()
                failure = nil
            } catch {
                failure = error
            }
            queue.async { [self] in answerWaiting(failure) }
        }
    }

    /// Answers who waits for a snapshot: it was made, or not.
    private func answerWaiting(_ failure: ServiceError?) {
        let waiting = state.withLock { state in
            defer { (state.isMaking, state.waiting) = (false, []) }
            return state.waiting
        }
        for one in waiting {
            one.completion(
                Result { () throws(ServiceError) in
                    if let failure { throw failure }
                    return try piece(one.request)
                })
        }
    }

    /// Tells who has waited for long to ask again.
    private func answerOverdue() {
        let now = clock.milliseconds
        let overdue = state.withLock { state in
            defer { state.waiting.removeAll { $0.deadline <= now } }
            return state.waiting.filter { $0.deadline <= now }
        }
        for one in overdue {
            one.completion(
                .failure(
                    ServiceError(
                        .busy, detail: UInt32(Limits.snapshotAskMilliseconds),
                        "a snapshot is being made: ask for it again")))
        }
    }

    private func forget() {
        let old = state.withLock { state in
            defer { state.snapshot = nil }
            return state.snapshot
        }
        guard let old else { return }
        close(old.file)
        rootSets.givesSnapshot(false)
    }

    private func tick() {
        answerOverdue()
        let now = clock.milliseconds
        let isIdle = state.withLock { $0.snapshot.map { now >= $0.readAt + $0.idleMilliseconds } ?? false }
        if isIdle { forget() }
    }

    // MARK: On the queue of the maker

    private func make() throws(ServiceError) {
        let file = try newFile()
        do throws(ServiceError) {
            // The log is kept from here on, for whoever begins with the snapshot.
            rootSets.givesSnapshot(true)
            let bytes = try write(file)
            let new = Snapshot(
                identifier: .random(in: 1 ... .max), file: file, size: bytes, readAt: clock.milliseconds)
            state.withLock { $0.snapshot = new }
            log(.info, "made a snapshot of \(bytes) bytes for another service of the cluster")
        } catch {
            close(file)
            rootSets.givesSnapshot(false)
            log(.warning, "a snapshot for another service of the cluster was not made: \(error.reason)")
            throw error
        }
    }

    /// A file without a name, so that nothing of it stays.
    private func newFile() throws(ServiceError) -> CInt {
        var path = Array((directory + "/snapshot-XXXXXX").utf8CString)
        let file = mkstemp(&path)
        guard file >= 0 else { throw ServiceError(.storageFailed, "making a snapshot: \(SystemFailure("mkstemp"))") }
        unlink(&path)
        return file
    }
}
