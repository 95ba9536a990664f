import Core
import TestSupport
import Testing

@testable import Transport

@Suite("Lines of peers by time")
struct FairLinesTests {
    private func peer(_ number: Int) -> Holder { .address(UInt32(number)) }

    @Test("Without times peers take turns, and each peer's elements keep their order")
    func turns() {
        var lines = FairLines<String>()
        for name in ["a1", "a2", "a3"] { lines.append(name, of: peer(1)) }
        for name in ["b1", "b2"] { lines.append(name, of: peer(2)) }
        lines.append("c1", of: peer(3))
        var taken: [String] = []
        while let next = lines.popFirst() {
            taken.append(next)
            lines.endService(after: 0)
        }
        #expect(taken == ["a1", "b1", "c1", "a2", "b2", "a3"])
        #expect(lines.isEmpty)
    }

    @Test("A peer whose elements are short is served before a hundred whose elements are long")
    func short() {
        var lines = FairLines<Int>()
        for number in 1...100 { for _ in 0..<10 { lines.append(number, of: peer(number)) } }
        // The hundred have had a turn each.
        for _ in 0..<100 {
            _ = lines.popFirst()
            lines.endService(after: 1000)
        }
        for _ in 0..<99 {
            lines.append(0, of: peer(0))
            let first = lines.popFirst()
            #expect(first == 0)
            lines.endService(after: 10)
            let second = lines.popFirst()
            #expect(second != nil && second != 0)
            lines.endService(after: 1000)
        }
    }

    @Test("A peer that has had its time waits for the others, also when it comes back each time")
    func share() {
        var lines = FairLines<Int>()
        for _ in 0..<40 { lines.append(1, of: peer(1)) }
        var taken: [Int] = []
        for _ in 0..<40 {
            lines.append(2, of: peer(2))
            while let next = lines.popFirst() {
                taken.append(next)
                lines.endService(after: 100)
                if next == 2 { break }
            }
        }
        // Equal times give equal turns, within one.
        for end in 1...taken.count {
            let ones = taken[..<end].count { $0 == 1 }
            #expect(abs(2 * ones - end) <= 2, "\(taken[..<end])")
        }
    }

    @Test("A peer that was away has no time saved up")
    func away() {
        var lines = FairLines<Int>()
        for _ in 0..<100 { lines.append(1, of: peer(1)) }
        for _ in 0..<50 {
            _ = lines.popFirst()
            lines.endService(after: 1000)
        }
        for _ in 0..<50 { lines.append(2, of: peer(2)) }
        var taken: [Int] = []
        for _ in 0..<20 {
            if let next = lines.popFirst() { taken.append(next) }
            lines.endService(after: 1000)
        }
        #expect((9...11).contains(taken.count { $0 == 2 }))
    }

    @Test("A peer that had one long turn goes on after the time that the others then have had")
    func outlier() {
        var lines = FairLines<Int>()
        for number in 1...100 { for _ in 0..<300 { lines.append(number, of: peer(number)) } }
        /// How many are served until an element of the peer 0 is, which takes so long.
        func place(time: UInt64) -> Int {
            lines.append(0, of: peer(0))
            var served = 0
            while let next = lines.popFirst() {
                served += 1
                lines.endService(after: next == 0 ? time : 10)
                if next == 0 { break }
            }
            return served
        }
        for _ in 0..<3 { #expect(place(time: 1) <= 101) }
        #expect(place(time: 200) <= 101)
        // The hundred have 20 turns each meanwhile. Then short ones are expected again.
        #expect((1_500...2_500).contains(place(time: 1)))
        for _ in 0..<10 { #expect(place(time: 1) <= 101) }
    }

    @Test("Peers that come without end do not go before one that waits for longer than its own time")
    func newcomers() throws {
        var lines = FairLines<Int>()
        // It is known to take long.
        for _ in 0..<2 {
            lines.append(0, of: peer(0))
            _ = lines.popFirst()
            lines.endService(after: 1000)
        }
        lines.append(0, of: peer(0))
        var place: Int?
        for number in 1...100_000 {
            lines.append(number, of: peer(number))
            let next = lines.popFirst()
            lines.endService(after: next == 0 ? 1000 : 10)
            if next == 0 { place = number }
            if place != nil { break }
        }
        #expect(try #require(place) <= 250)
    }

    @Test("Of a hundred thousand peers that were served no more than some thousand are remembered")
    func remembered() throws {
        var lines = FairLines<Int>()
        for number in 0..<100_000 {
            // A hundred wait all the time.
            while lines.count < 100 { lines.append(number, of: peer(number * 100 + lines.count)) }
            _ = lines.popFirst()
            lines.endService(after: 10)
            try #require(lines.knownCount <= 2048, "after \(number)")
        }
    }

    @Test("After nobody has waited, the peers begin anew, and are still expected to take as long as before")
    func emptied() {
        var lines = FairLines<Int>()
        for _ in 0..<3 {
            for number in 1...20 { lines.append(number, of: peer(number)) }
            lines.append(0, of: peer(0))
            while !lines.isEmpty {
                let next = lines.popFirst()
                lines.endService(after: next == 0 ? 1 : 1000)
            }
        }
        for number in 1...20 { lines.append(number, of: peer(number)) }
        lines.append(0, of: peer(0))
        let first = lines.popFirst()
        #expect(first == 0)
    }

    @Test("An element that comes while its peer is served waits for the peer's next turn")
    func whileServed() {
        var lines = FairLines<String>()
        lines.append("a1", of: peer(1))
        lines.append("b1", of: peer(2))
        func take() -> String? { lines.popFirst() }
        #expect(take() == "a1")
        lines.append("a2", of: peer(1))
        #expect(lines.count == 2)
        lines.endService(after: 5)
        #expect(take() == "b1")
        lines.endService(after: 5)
        #expect(take() == "a2")
        lines.endService(after: 5)
        #expect(lines.isEmpty)
    }

    @Test("Of random elements those of a peer keep their order, and peers that wait all the time get equal time")
    func random() throws {
        var random = SeededGenerator(seed: runSeed)
        var lines = FairLines<(peer: Int, number: Int)>()
        var waiting: [Int: [Int]] = [:]
        var number = 0
        func append(_ peer: Int) {
            lines.append((peer, number), of: self.peer(peer))
            waiting[peer, default: []].append(number)
            number += 1
        }
        // Peers 0 to 3 wait all the time; many others come and go.
        var time = [Int](repeating: 0, count: 4)
        for _ in 0..<20_000 {
            for peer in 0..<4 where waiting[peer]?.isEmpty ?? true { append(peer) }
            if Int.random(in: 0..<3, using: &random) == 0 { append(Int.random(in: 4..<3000, using: &random)) }
            let next = lines.popFirst()
            let taken = try #require(next, "seed \(runSeed)")
            try #require(waiting[taken.peer]?.first == taken.number, "seed \(runSeed)")
            if taken.peer < 4 { append(taken.peer) }
            waiting[taken.peer]?.removeFirst()
            let cost = Int.random(in: 0...200, using: &random)
            lines.endService(after: UInt64(cost))
            if taken.peer < 4 { time[taken.peer] += max(1, cost) }
            try #require((time.max() ?? 0) - (time.min() ?? 0) <= 400, "seed \(runSeed): \(time)")
            try #require(lines.count == waiting.values.reduce(0) { $0 + $1.count }, "seed \(runSeed)")
        }
    }
}
