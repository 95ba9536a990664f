import Collaboration
import Core
import Dispatch
import Synchronization
import Verification

/// Requests that wait for news. Each is answered once: by news, by the end of its time, or by a shutdown.
final class Followers: Sendable {
    /// A request that waits.
    struct Follower: Sendable {
        let request: CollaborationTask
        let topics: Set<Topic>
        /// In milliseconds of the service's clock.
        let deadline: UInt64
        /// What is answered when nothing comes.
        let answer: [UInt8]
    }

    private struct State {
        var followers: [ObjectIdentifier: Follower] = [:]
        var byTopic: [Topic: Set<ObjectIdentifier>] = [:]
        var isClosed = false
        /// Of all followers together.
        var topicCount = 0
        var newsCount: UInt64 = 0
        /// No deadline is before this one.
        var earliest = UInt64.max

        mutating func take(_ key: ObjectIdentifier) -> Follower? {
            guard let follower = followers.removeValue(forKey: key) else { return nil }
            topicCount -= follower.topics.count
            for topic in follower.topics {
                byTopic[topic]?.remove(key)
                if byTopic[topic]?.isEmpty == true { byTopic[topic] = nil }
            }
            return follower
        }
    }

    private let clock: MonotonicClock
    private let followersMax: Int
    private let topicsMax: Int
    private let state = Mutex(State())
    /// Set in `init`, cancelled in `deinit`, not touched in between; Dispatch's sources may be used from any thread.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer

    /// `topicsMax`: of all followers together.
    init(clock: MonotonicClock, followersMax: Int, topicsMax: Int) {
        self.clock = clock
        self.followersMax = followersMax
        self.topicsMax = topicsMax
        timer = DispatchSource.makeTimerSource()
        timer.schedule(deadline: .now() + .milliseconds(50), repeating: .milliseconds(50), leeway: .milliseconds(10))
        timer.setEventHandler { [weak self] in self?.expire() }
        timer.resume()
    }

    deinit {
        timer.cancel()
    }

    /// Requests that wait.
    var count: Int { state.withLock { $0.followers.count } }

    /// How often there was news. A request that was decided on a snapshot from before this changed may have missed some;
    /// one that has waited since the same count has not.
    var newsCount: UInt64 { state.withLock { $0.newsCount } }

    /// Has the request wait. False when nothing waits any more.
    ///
    /// Throws `busy` when too many wait already.
    func add(_ follower: Follower) throws(ServiceError) -> Bool {
        let key = ObjectIdentifier(follower.request)
        let isTaken = state.withLock { state -> Bool? in
            guard !state.isClosed else { return false }
            guard state.followers.count < followersMax, state.topicCount + follower.topics.count <= topicsMax else {
                return nil
            }
            _ = state.take(key)
            state.topicCount += follower.topics.count
            state.followers[key] = follower
            state.earliest = min(state.earliest, follower.deadline)
            for topic in follower.topics { state.byTopic[topic, default: []].insert(key) }
            return true
        }
        guard let isTaken else { throw Admission.busy }
        return isTaken
    }

    /// Whether the request waited: then it doesn't any more, and whoever asked has to see to it.
    func take(_ request: CollaborationTask) -> Bool {
        state.withLock { $0.take(ObjectIdentifier(request)) } != nil
    }

    /// The requests that wait for one of the topics; they don't any more.
    func take(_ topics: [Topic]) -> [CollaborationTask] {
        state.withLock { state in
            state.newsCount += 1
            guard !state.followers.isEmpty else { return [] }
            var taken: [CollaborationTask] = []
            for topic in topics {
                for key in state.byTopic[topic] ?? [] {
                    if let follower = state.take(key) { taken.append(follower.request) }
                }
            }
            return taken
        }
    }

    private func expire() {
        let now = clock.milliseconds
        let expired = state.withLock { state -> [Follower] in
            guard state.earliest <= now else { return [] }
            let expired = state.followers.filter { $0.value.deadline <= now }.keys.compactMap { state.take($0) }
            state.earliest = state.followers.values.lazy.map(\.deadline).min() ?? .max
            return expired
        }
        for follower in expired { follower.request.ticket.answerParked(follower.answer) }
    }

    /// Drops what a connection that is closed was waiting for.
    func forget(_ source: WorkSource) {
        let gone = state.withLock { state in
            state.followers.filter { $0.value.request.ticket.source === source }.keys.compactMap { state.take($0) }
        }
        for follower in gone { follower.request.ticket.forgetParked() }
    }

    /// Answers everybody, and takes nobody any more.
    func close() {
        let all = state.withLock { state in
            defer { (state.followers, state.byTopic, state.topicCount) = ([:], [:], 0) }
            state.isClosed = true
            return state.followers.values.map { $0 }
        }
        for follower in all { follower.request.ticket.answerParked(follower.answer) }
    }
}
