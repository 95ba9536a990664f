import Core
import Dispatch
import Foundation
import Hashing
import Platform
import RootSets
import Wire

/// The snapshot that a service of a cluster gives to others that can't follow the log from where they are. There is one
/// at most, in a file of the data directory that has no name. It is forgotten when nobody has read of it for a while.
///
/// Any thread may use it. Making a snapshot and reading of it take long, and have a thread of their own.
final class SnapshotStore: Sendable {
    private struct Snapshot {
        let identifier: UInt64
        let file: CInt
        let size: UInt64
        /// In milliseconds of the clock.
        let madeAt: UInt64
        var readAt: UInt64
    }

    private let rootSets: RootSets
    private let directory: String
    private let keys: RotatingKeys
    /// What the token is made of; `nil`: nobody knows where to ask.
    private let message: [UInt8]?
    private let clock: MonotonicClock
    private let time: @Sendable () -> UInt64
    private let log: Log
    private let queue = DispatchQueue(label: "rootgate snapshots")
    private let snapshot = Lock<Snapshot?>(nil)
    private let places = Lock(PeerShares(capacity: Limits.snapshotReadersMax))
    private let timer = Lock<RepeatingTimer?>(nil)

    /// `message`: what a token is made of, see `ClusterSettings.Peers`; `nil`: none is genuine. `time`: now, in
    /// milliseconds since 1970.
    init(
        _ rootSets: RootSets, directory: String, keys: RotatingKeys, message: [UInt8]?, clock: MonotonicClock,
        timers: Timers, time: @escaping @Sendable () -> UInt64, log: Log
    ) {
        (self.rootSets, self.directory, self.keys, self.clock) = (rootSets, directory, keys, clock)
        (self.message, self.time, self.log) = (message, time, log)
        let timer = timers.every(milliseconds: 1000, leeway: 500) { [weak self] in self?.forgetIdle() }
        self.timer.withLock { $0 = timer }
    }

    deinit {
        timer.withLock { $0 }?.cancel()
        if let snapshot = snapshot.withLock({ $0 }) { close(snapshot.file) }
    }

    /// Calls `completion` once, on any thread, with a piece of the snapshot.
    ///
    /// It gets `roleMissing` when the token is not genuine, `busy` when the asker's peer has too many requests or the
    /// snapshot is no longer there, and what keeps a snapshot from being made.
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
        queue.async { [self] in
            let result = Result { () throws(ServiceError) in try piece(request) }
            places.withLock { $0.giveBack(1, by: peer) }
            completion(result)
        }
    }

    // MARK: On the queue

    private func piece(_ request: SnapshotRequest) throws(ServiceError) -> SnapshotPiece {
        if request.identifier == 0 { try makeUnlessThere() }
        let now = clock.milliseconds
        let found = snapshot.withLock { snapshot -> Snapshot? in
            guard let present = snapshot, [0, present.identifier].contains(request.identifier) else { return nil }
            snapshot?.readAt = now
            return present
        }
        guard let found else { throw ServiceError(.busy, "the snapshot is no longer there: ask for a new one") }
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

    /// Makes a snapshot, unless there is one that is new enough, or that somebody else reads.
    private func makeUnlessThere() throws(ServiceError) {
        let now = clock.milliseconds
        let isThere = snapshot.withLock { snapshot in
            snapshot.map {
                now < $0.madeAt + Limits.snapshotFreshMilliseconds || now < $0.readAt + Limits.snapshotReadMilliseconds
            } ?? false
        }
        guard !isThere else { return }
        forget()
        let file = try newFile()
        do throws(ServiceError) {
            // The log is kept from here on, for whoever begins with the snapshot.
            rootSets.givesSnapshot(true)
            let summary = try rootSets.backUp(to: file, time: time())
            let made = clock.milliseconds
            let new = Snapshot(
                identifier: .random(in: 1 ... .max), file: file, size: summary.bytes, madeAt: made, readAt: made)
            snapshot.withLock { $0 = new }
            log(.info, "made a snapshot of \(summary.bytes) bytes for another service of the cluster")
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

    private func forget() {
        if let old = snapshot.withLock({ snapshot -> Snapshot? in
            defer { snapshot = nil }
            return snapshot
        }) {
            close(old.file)
            rootSets.givesSnapshot(false)
        }
    }

    private func forgetIdle() {
        let now = clock.milliseconds
        let isIdle = snapshot.withLock { $0.map { now >= $0.readAt + Limits.snapshotIdleMilliseconds } ?? false }
        // Not while a piece of it is read.
        if isIdle { queue.async { [self] in forget() } }
    }
}
