import Foundation
import Synchronization

/// Threads that take processor time and do nothing with it.
package final class ProcessorLoad: Sendable {
    /// How much processor time had been taken at a time, both in seconds since the beginning. The last one is the end.
    package typealias Profile = [(time: Double, taken: Double)]

    private static let pauseMicroseconds: UInt32 = 5000
    private let isStopped = Atomic<Bool>(false)
    private let ended = DispatchSemaphore(value: 0)
    private let threads: Int

    /// Begins. Each thread takes processor time as its profile says, again and again until `stop`.
    package init(_ profiles: [[(time: Double, taken: Double)]]) {
        threads = profiles.count
        for profile in profiles {
            Thread { [self] in
                let (start, begun) = (ContinuousClock.now, processorSecondsOfThread())
                while !isStopped.load(ordering: .relaxed) {
                    let due = ProcessorLoad.taken(profile, at: (ContinuousClock.now - start) / .seconds(1))
                    while processorSecondsOfThread() - begun < due, !isStopped.load(ordering: .relaxed) {}
                    usleep(ProcessorLoad.pauseMicroseconds)
                }
                ended.signal()
            }.start()
        }
    }

    private static func taken(_ profile: Profile, at time: Double) -> Double {
        guard let last = profile.last, last.time > 0 else { return 0 }
        let rounds = (time / last.time).rounded(.down)
        let rest = time - rounds * last.time
        return rounds * last.taken + (profile.first { $0.time >= rest }?.taken ?? 0)
    }

    package func stop() {
        isStopped.store(true, ordering: .relaxed)
        for _ in 0..<threads { ended.wait() }
    }
}

/// Seconds for which the calling thread has had a processor.
package func processorSecondsOfThread() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
