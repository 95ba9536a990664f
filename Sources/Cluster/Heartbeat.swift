import Core
import Etcd
import Foundation
import Platform
import RootSets
import Synchronization

/// Asks the log of a cluster whether there is nothing new, when the writer has not asked for a while: it may wait until
/// a segment is appended. Meanwhile the storage is as fresh as the last such answer says.
final class Heartbeat: Sendable {
    private let name: LogName
    private let follower: SharedFollower
    private let isOver = Atomic<Bool>(false)
    private let ended = DispatchSemaphore(value: 0)

    /// `first`: the place of the member that is asked first.
    init(_ members: EtcdMembers, _ name: LogName, first: Int, _ follower: SharedFollower) {
        (self.name, self.follower) = (name, follower)
        let thread = Thread { [self] in
            run(OrderedLog(EtcdSession(members, first: first), name: name))
            ended.signal()
        }
        thread.name = "rootgate heartbeat"
        thread.start()
    }

    /// Returns when it asks no more. To be called once.
    func close() {
        isOver.store(true, ordering: .relaxed)
        ended.wait()
    }

    private func run(_ log: OrderedLog) {
        /// The segment behind which the log had something, and until when it is not asked for that again.
        var behind: (segment: UInt64, until: UInt64)?
        while !isOver.load(ordering: .relaxed) {
            usleep(UInt32(Limits.sharedLookMilliseconds) * 1000)
            let asked = System.millisecondsWithSleep
            // The progress is read before the question, so the storage has that much when it is asked.
            let progress = follower.progress()
            if let behind, behind.segment == progress.segment, asked < behind.until { continue }
            guard let hash = progress.hash, asked > follower.freshAsOf() + Limits.clusterHeartbeatMilliseconds,
                let reading = try? log.read(
                    from: progress.segment + 1, after: hash, milliseconds: Limits.clusterReadMilliseconds)
            else { continue }
            if reading == .entries([], hasMore: false) {
                follower.fresh(asked)
            } else {
                behind = (progress.segment, asked + Limits.sharedPauseMilliseconds)
            }
        }
    }
}
