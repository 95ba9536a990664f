import Core
import Etcd
import Foundation
import Platform
import Synchronization

/// Tells when the log of a cluster may have something new. It never tells what, and it may miss something: the writer
/// looks at the log from time to time all the same.
final class Doorbell: Sendable {
    private let name: LogName
    private let ring: @Sendable () -> Void
    private let isOver = Atomic<Bool>(false)
    private let ended = DispatchSemaphore(value: 0)
    private let wasClosed = Atomic<Bool>(false)

    /// `first`: the place of the member that is watched first. `ring` is called on a thread of its own.
    init(_ members: EtcdMembers, _ name: LogName, first: Int = 0, ring: @escaping @Sendable () -> Void) {
        self.name = name
        self.ring = ring
        let thread = Thread { [self] in
            watch(on: EtcdSession(members, first: first))
            ended.signal()
        }
        thread.name = "rootgate doorbell"
        thread.start()
    }

    /// Returns when it rings no more.
    func close() {
        isOver.store(true, ordering: .relaxed)
        guard !wasClosed.exchange(true, ordering: .relaxed) else { return }
        ended.wait()
    }

    private func watch(on session: EtcdSession) {
        let log = OrderedLog(session, name: name)
        while !isOver.load(ordering: .relaxed) {
            if let watch = try? log.watch(on: session, milliseconds: Limits.clusterReadMilliseconds) {
                // What was appended before the watch has begun is told by nothing else.
                ring()
                hear(watch)
                watch.end()
            }
            usleep(UInt32(Limits.clusterWatchPauseMilliseconds) * 1000)
        }
    }

    /// Hears a watch until it ends, or has been silent for so long that the member may be gone.
    private func hear(_ watch: EtcdWatch) {
        var heard = System.millisecondsWithSleep
        while !isOver.load(ordering: .relaxed) {
            switch watch.next(milliseconds: Limits.clusterWatchPauseMilliseconds) {
            case .changed:
                heard = System.millisecondsWithSleep
                ring()
            case .silence:
                // The next watch is at another member.
                guard System.millisecondsWithSleep - heard < Limits.clusterSilenceMilliseconds else {
                    return watch.giveUp()
                }
            case .ended: return
            }
        }
    }
}
