/// The life of one request, as a value: which events are possible in which state, and what each transition changes.
///
///                    suspend
///     admitted  <-------------->  suspended
///      |    \        resume          |
///      |     \                       |
///    answer   drop                  drop
///      v       v                     v
///     answered  gone  <--------------'
///
/// A request is answered exactly once, or it is dropped because its connection was closed first.
struct RequestLife: Equatable, Sendable {
    enum State: CaseIterable, Sendable {
        /// A thread works on the request or will work on it. It counts as in flight, and memory may be reserved for it.
        case admitted
        /// The request is a query that waits until one of its topics changes. It holds no reserved memory.
        case suspended
        case answered
        /// The connection was closed before there was an answer.
        case gone

        /// Whether an answer is still owed.
        var isUnanswered: Bool { self == .admitted || self == .suspended }
    }

    enum Event: CaseIterable, Sendable {
        /// The rules decided that the query waits for a change.
        case suspend
        /// A topic changed, or the time is over.
        case resume
        /// The answer is sent.
        case answer
        /// The connection is closed, and no thread works on the request.
        case drop
    }

    /// What a transition changes in the counters of the connection and the service.
    struct Effect: Equatable, Sendable {
        /// The change of the number of requests in flight.
        var inFlight: Int
        /// The change of the number of suspended requests.
        var suspended: Int
        /// Whether the transition releases the memory that is reserved for the request.
        var releasesMemory: Bool

        /// Whether this is the request's last transition.
        var isEnd: Bool { inFlight + suspended < 0 }
    }

    private(set) var state = State.admitted

    /// Changes to the state that `event` leads to. Returns `nil`, and changes nothing, when the event is impossible in
    /// this state.
    mutating func apply(_ event: Event) -> Effect? {
        let effect: Effect
        switch (state, event) {
        case (.admitted, .suspend):
            state = .suspended
            effect = Effect(inFlight: -1, suspended: 1, releasesMemory: true)
        case (.admitted, .answer):
            state = .answered
            effect = Effect(inFlight: -1, suspended: 0, releasesMemory: true)
        case (.admitted, .drop):
            state = .gone
            effect = Effect(inFlight: -1, suspended: 0, releasesMemory: true)
        case (.suspended, .resume):
            state = .admitted
            effect = Effect(inFlight: 1, suspended: -1, releasesMemory: false)
        case (.suspended, .drop):
            state = .gone
            effect = Effect(inFlight: 0, suspended: -1, releasesMemory: false)
        case (.admitted, .resume), (.suspended, .suspend), (.suspended, .answer), (.answered, _), (.gone, _):
            return nil
        }
        return effect
    }
}
