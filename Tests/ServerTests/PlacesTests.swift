import Core
import TestSupport
import Testing
import Transport

@testable import Server

private let near = Holder.address(UInt32(0x7f00_0001))
private let far = (1...9).map { Holder.address(UInt32($0)) }

@Suite struct PlacesTests {
    private func place(_ outcome: Places.Outcome) -> Place? {
        if case .seated(let place) = outcome { place } else { nil }
    }

    @Test("A peer alone gets half of the places, a newcomer always one, and connections of this machine a few more")
    func shares() throws {
        let places = Places(count: 160)
        var seated: [Place] = []
        // Nobody says what these connections do, so none of them can make room.
        while let place = place(places.take(far[0])) { seated.append(place) }
        #expect(seated.count == (160 - Limits.localConnectionsKept) / 2)
        for peer in far.dropFirst() { seated.append(try #require(place(places.take(peer)))) }
        while let place = place(places.take(far[1])) { seated.append(place) }
        var local = 0
        while let place = place(places.take(near)) {
            seated.append(place)
            local += 1
        }
        #expect(local > Limits.localConnectionsKept / 2)
        #expect(places.taken == seated.count && places.taken < 160)
        for place in seated { places.left(place) }
        #expect(places.taken == 0)
    }

    @Test("Refused connections take no places, and only some of them are told")
    func refused() throws {
        let places = Places(count: 2)
        let first = try #require(place(places.take(far[0])))
        var told = 0
        for _ in 0..<Limits.leavingConnectionsMax + 9 {
            if case .refused(isTold: true) = places.take(far[0]) { told += 1 }
        }
        #expect(told == Limits.leavingConnectionsMax && places.taken == 1)
        places.left(nil)
        guard case .refused(isTold: true) = places.take(far[0]) else {
            Issue.record("a connection that is closed still counts as leaving")
            return
        }
        places.left(first)
        #expect(place(places.take(far[0])) != nil)
    }

    @Test("Where fewer may be on their way out, fewer refused connections are told")
    func refusedWithFewDescriptors() throws {
        let places = Places(count: 2, leavingMax: 3)
        let first = try #require(place(places.take(far[0])))
        let outcomes = (0..<9).map { _ in places.take(far[0]) }
        let told = outcomes.count { if case .refused(isTold: true) = $0 { true } else { false } }
        #expect(told == 3 && places.taken == 1)
        places.left(first)
    }

    @Test("The idle connection of the peer with the most goes, before one that waits for a change; a busy one never")
    func victims() async throws {
        let places = Places(count: 6)
        let fixtures = [
            try await RequestFixture(), try await RequestFixture(), try await RequestFixture(),
            try await RequestFixture(),
        ]
        let busy = fixtures[0].request()
        let waiting = fixtures[1].request()
        #expect(waiting.suspend {})
        var seats: [Place] = []
        for (number, fixture) in fixtures.prefix(3).enumerated() {
            let seat = try #require(place(places.take(far[0])), "place \(number)")
            seat.seat(fixture.responder)
            seats.append(seat)
        }
        let single = try #require(place(places.take(far[1])))
        single.seat(fixtures[3].responder)
        #expect(place(places.take(far[0])) != nil)
        #expect(fixtures[2].responder.occupation == nil, "the idle connection was not asked to go")
        #expect(place(places.take(far[0])) != nil)
        #expect(fixtures[1].responder.occupation == nil, "the waiting connection was not asked to go")
        #expect(place(places.take(far[0])) == nil, "a busy connection, or one of another peer, had to go")
        #expect(fixtures[3].responder.occupation != nil)
        // Those that had to go took no place any more.
        #expect(places.taken == 4)
        places.left(seats[2])
        #expect(places.taken == 4)
        busy.answer { _ in }
        for fixture in fixtures { fixture.end() }
    }

    @Test("A connection that has to go is told so, unless many are on their way out", arguments: [true, false])
    func leaving(isTold: Bool) async throws {
        let places = Places(count: 2)
        let fixture = try await RequestFixture()
        let first = try #require(place(places.take(far[0])))
        for _ in 0..<Limits.leavingConnectionsMax - (isTold ? 1 : 0) {
            guard case .refused(isTold: true) = places.take(far[0]) else {
                Issue.record("a connection without a responder had to go, or was not told")
                return
            }
        }
        first.seat(fixture.responder)
        #expect(place(places.take(far[0])) != nil)
        #expect(fixture.bytesUntilEnd().isEmpty != isTold)
        fixture.end()
    }

    @Test("A connection whose peer turns out to be somebody else takes that one's place")
    func moved() async throws {
        let places = Places(count: 4)
        let fixture = try await RequestFixture()
        let known = try #require(place(places.take(far[0])))
        known.seat(fixture.responder)
        var seated = [try #require(place(places.take(far[0])))]
        places.move(known, to: .principal(1))
        #expect(places.taken == 2)
        // The address has its whole share again, and its newcomers don't put the principal out.
        for _ in 0..<9 { if let place = place(places.take(far[0])) { seated.append(place) } }
        #expect(seated.count == 2 && places.taken == 3)
        #expect(fixture.responder.occupation != nil, "a principal had to go for its address")
        // The principal has its share already: of what the address leaves it may have one.
        for place in seated { places.move(place, to: .principal(1)) }
        for _ in 0..<9 { if let place = place(places.take(far[0])) { seated.append(place) } }
        #expect(places.taken == 3, "turning out to be a principal brings places beyond its share")
        places.move(known, to: far[0])
        places.move(known, to: .principal(1))
        for place in seated + [known] { places.left(place) }
        #expect(places.taken == 0)
        fixture.end()
    }

    @Test("Random arrivals and ends leave as many places as in a plain list")
    func random() throws {
        var random = SeededGenerator(seed: runSeed)
        let places = Places(count: 40)
        var seated: [Place] = []
        for _ in 0..<5000 {
            if Int.random(in: 0..<4, using: &random) == 0, let place = seated.randomElement(using: &random) {
                places.move(place, to: far[Int.random(in: 0..<5, using: &random)])
            } else if Bool.random(using: &random), !seated.isEmpty {
                places.left(seated.remove(at: Int.random(in: 0..<seated.count, using: &random)))
            } else {
                switch places.take(far[Int.random(in: 0..<5, using: &random)]) {
                case .seated(let place): seated.append(place)
                case .refused(let isTold): if isTold { places.left(nil) }
                }
            }
            #expect(places.taken == seated.count, "seed \(runSeed)")
            #expect(places.taken <= 35, "seed \(runSeed)")
        }
    }
}
