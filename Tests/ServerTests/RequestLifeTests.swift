import Core
import Testing

@testable import Server

/// What the table of a request's transitions says, written down a second time.
private let expected: [RequestLife.State: [RequestLife.Event: RequestLife.State]] = [
    .admitted: [.suspend: .suspended, .answer: .answered, .drop: .gone],
    .suspended: [.resume: .admitted, .drop: .gone],
    .answered: [:],
    .gone: [:],
]

/// A request's life in each state, and the events that led to it.
private func life(in state: RequestLife.State) -> RequestLife {
    var life = RequestLife()
    let events: [RequestLife.Event] =
        switch state {
        case .admitted: []
        case .suspended: [.suspend]
        case .answered: [.answer]
        case .gone: [.drop]
        }
    for event in events { _ = life.apply(event) }
    return life
}

@Suite struct RequestLifeTests {
    @Test("Every event in every state leads to the state in the table, or is refused")
    func everyTransition() {
        for state in RequestLife.State.allCases {
            for event in RequestLife.Event.allCases {
                var life = life(in: state)
                #expect(life.state == state)
                let effect = life.apply(event)
                let target = expected[state]?[event]
                #expect((effect == nil) == (target == nil), "\(state) \(event)")
                #expect(life.state == target ?? state, "\(state) \(event)")
            }
        }
    }

    @Test("Every sequence of six events keeps the accounts of one request")
    func everySequence() {
        var sequences: [[RequestLife.Event]] = [[]]
        for _ in 0..<6 {
            sequences = sequences.flatMap { sequence in RequestLife.Event.allCases.map { sequence + [$0] } }
        }
        #expect(sequences.count == 4096)
        for sequence in sequences {
            var life = RequestLife()
            var (inFlight, suspended, ends, isReserved) = (1, 0, 0, true)
            for event in sequence {
                let wasAdmitted = life.state == .admitted
                guard let effect = life.apply(event) else { continue }
                inFlight += effect.inFlight
                suspended += effect.suspended
                if effect.isEnd { ends += 1 }
                // Memory is reserved for admitted requests alone.
                #expect(effect.releasesMemory == wasAdmitted)
                if effect.releasesMemory { isReserved = false }
                #expect(inFlight == (life.state == .admitted ? 1 : 0))
                #expect(suspended == (life.state == .suspended ? 1 : 0))
                #expect(ends == (life.state.isUnanswered ? 0 : 1))
            }
            if !life.state.isUnanswered { #expect(!isReserved) }
        }
    }

    @Test("A request that nobody answers stops a debug build")
    func unanswered() async {
        await #expect(processExitsWith: .failure) {
            let fixture = try await RequestFixture()
            _ = fixture.request()
        }
    }

    @Test("A request that is answered twice stops a debug build")
    func answeredTwice() async {
        await #expect(processExitsWith: .failure) {
            let fixture = try await RequestFixture()
            let request = fixture.request()
            request.answer { _ in }
            request.answer { _ in }
        }
    }

    @Test("Neither a request that is answered once nor one whose connection is closed stops a debug build")
    func answeredOrDropped() async throws {
        let fixture = try await RequestFixture()
        fixture.request().answer { _ in }
        #expect(fixture.admission.isIdle)
        let dropped = fixture.request()
        #expect(!fixture.admission.isIdle)
        fixture.end()
        _ = consume dropped
        #expect(fixture.admission.isIdle)
    }

    @Test("Reserved memory is free when the request is answered or suspended, and not before")
    func reservedMemory() async throws {
        let fixture = try await RequestFixture()
        let (answered, suspended) = (fixture.request(), fixture.request())
        try answered.reserve(1 << 19, isUrgent: false)
        try suspended.reserve(1 << 19, isUrgent: true)
        #expect(fixture.memory.heldBytes == 1 << 20)
        answered.answer { _ in }
        #expect(fixture.memory.heldBytes == 1 << 19)
        #expect(suspended.suspend {})
        #expect(fixture.memory.heldBytes == 0)
        #expect(suspended.resume())
        try suspended.reserveAgain()
        #expect(fixture.memory.heldBytes == Limits.requestOverheadBytes)
        suspended.answer { _ in }
        #expect(fixture.memory.heldBytes == 0)
        fixture.end()
    }

    @Test("A request beyond its connection's share gets busy, and an answer that grew beyond it is not sent")
    func share() async throws {
        let fixture = try await RequestFixture()
        let (first, second, third) = (fixture.request(), fixture.request(), fixture.request())
        try first.reserve(Limits.memoryPerRequestMax, isUrgent: false)
        #expect(throws: Admission.busy) { try second.reserve(1 << 20, isUrgent: false) }
        try second.reserve(1 << 20, isUrgent: true)
        #expect(throws: Admission.busy) { try third.reserve(1 << 20, isUrgent: true) }
        let before = fixture.admission.refusals.load(ordering: .relaxed)
        third.answer { $0 += [UInt8](repeating: 0, count: 1 << 20) }
        #expect(fixture.admission.refusals.load(ordering: .relaxed) == before + 1)
        for request in [first, second] { request.answer { _ in } }
        #expect(fixture.memory.heldBytes == 0)
        fixture.end()
    }

    @Test("The answer to a change that was made is sent without memory, too")
    func answeredChange() async throws {
        let fixture = try await RequestFixture()
        let (first, change) = (fixture.request(), fixture.request())
        try first.reserve(Limits.memoryPerRequestMax, isUrgent: false)
        try change.reserve(1 << 20, isUrgent: true)
        change.answerChange { $0 += [UInt8](repeating: 0, count: 2 << 20) }
        #expect(fixture.admission.refusals.load(ordering: .relaxed) == 0)
        first.answer { _ in }
        fixture.end()
        #expect(fixture.memory.heldBytes == 0)
    }

    @Test("During a shutdown no request is accepted")
    func draining() async throws {
        let fixture = try await RequestFixture()
        let request = fixture.request()
        fixture.admission.isDraining.store(true, ordering: .relaxed)
        #expect(throws: ServiceError(.shuttingDown, "")) { try request.reserve(1, isUrgent: true) }
        request.fail(Admission.busy)
        fixture.end()
    }

    @Test("A connection has as many suspended requests as the limit says, and one more is refused")
    func suspendedOfAConnection() async throws {
        let fixture = try await RequestFixture()
        let requests = (0..<Limits.followsPerConnectionMax).map { _ in fixture.request() }
        for request in requests { #expect(request.suspend {}) }
        let last = fixture.request()
        #expect(!last.suspend {})
        last.answer { _ in }
        #expect(requests[0].resume())
        requests[0].answer { _ in }
        fixture.end()
        #expect(!requests[1].resume(), "a dropped request does not come back")
        #expect(fixture.admission.isIdle)
    }
}
