import Core
import Foundation
import Synchronization

/// The slowest requests of the last minutes, so many of each minute.
final class SlowestRequests: Sendable {
    private struct Entry: Sendable {
        let name: String
        let endedAt: Date
        let times: StageTimes
    }

    /// A window for each minute, the present one first.
    private let windows = Lock([[Entry]](repeating: [], count: Limits.slowestMinutes))
    /// Nanoseconds: what took no longer is not kept.
    private let threshold = Atomic<UInt64>(0)
    private let date: @Sendable () -> Date

    init(date: @escaping @Sendable () -> Date) {
        self.date = date
    }

    /// Keeps a request if it is one of the slowest of this minute. Otherwise it costs one load.
    func note(_ times: StageTimes, name: () -> String) {
        let busy = times.busy
        guard busy > threshold.load(ordering: .relaxed) else { return }
        let entry = Entry(name: name(), endedAt: date(), times: times)
        windows.withLock { windows in
            let place = windows[0].firstIndex { $0.times.busy < busy } ?? windows[0].count
            windows[0].insert(entry, at: place)
            if windows[0].count > Limits.slowestPerMinute { windows[0].removeLast() }
            guard windows[0].count == Limits.slowestPerMinute, let least = windows[0].last else { return }
            threshold.store(least.times.busy, ordering: .relaxed)
        }
    }

    /// Begins another minute. The oldest one is forgotten.
    func beginMinute() {
        windows.withLock { windows in
            windows.removeLast()
            windows.insert([], at: 0)
            threshold.store(0, ordering: .relaxed)
        }
    }

    /// A line for each of them, the slowest first.
    var page: HTTPResponse {
        let entries = windows.withLock { $0.flatMap { $0 } }.sorted { $0.times.busy > $1.times.busy }
        let lines = entries.map { entry in
            let stages = RequestStage.allCases.filter { entry.times[$0] > 0 }.map {
                "\($0.rawValue) \(entry.times[$0].asMilliseconds)"
            }
            let date = HTTPResponse.date(time_t(entry.endedAt.timeIntervalSince1970)) ?? "at an unknown time"
            return "\(date) \(entry.times.busy.asMilliseconds) ms \(entry.name): \(stages.joined(separator: ", "))\n"
        }
        return HTTPResponse(.ok, Array(lines.joined().utf8), contentType: "text/plain; charset=utf-8")
    }
}
