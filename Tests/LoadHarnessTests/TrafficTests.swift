import Core
import Foundation
import Identity
import TestSupport
import Testing

@testable import LoadHarness

@Suite("Mixes, recordings and who is chosen")
struct TrafficTests {
    // MARK: Mixes

    @Test("Each kind of a mix comes as often as its weight says, and evenly")
    func weights() throws {
        var mix = try #require(TrafficMix("verify=80,open=15,mutate=5"))
        #expect(mix.kinds == [.verify, .open, .mutate] && mix.part(of: .open) == 0.15 && mix.part(of: .post) == 0)
        var counts: [LoadKind: Double] = [:]
        for number in 1...10_000 {
            counts[mix.next(), default: 0] += 1
            for kind in mix.kinds {
                #expect(abs((counts[kind] ?? 0) - mix.part(of: kind) * Double(number)) < 2, "\(kind) of \(number)")
            }
        }
    }

    @Test(
        "What is no mix is refused",
        arguments: [
            "", "verify", "verify=", "verify=0", "verify=-1", "verify=nan", "verify=inf", "verify=1,verify=2",
            "verify=1,", "fetch=1", "verify=1=2", "verify=2000000", "Verify=1",
        ])
    func noMix(text: String) {
        #expect(TrafficMix(text) == nil)
    }

    @Test("A part of all calls says yes, evenly")
    func evenPart() {
        for part in [0, 0.1, 1.0 / 3, 0.5, 1] {
            var even = EvenPart(part)
            var count = 0.0
            for number in 1...1000 {
                if even.next() { count += 1 }
                #expect(abs(count - part * Double(number)) < 1.000_001, "\(part) of \(number)")
            }
        }
    }

    // MARK: Who is chosen

    @Test("By Zipf's law number i is chosen in proportion to 1 / (i + 1)^s")
    func zipf() {
        var generator = SeededGenerator(seed: runSeed)
        let (count, draws) = (50, 200_000)
        for exponent in [0, 0.8, 1.5] {
            let popularity = Popularity(count: count, exponent: exponent)
            var counts = [Int](repeating: 0, count: count)
            for _ in 0..<draws { counts[popularity.choice(.random(in: 0..<1, using: &generator))] += 1 }
            let whole = (1...count).reduce(0.0) { $0 + pow(Double($1), -exponent) }
            for number in 0..<count {
                let expected = pow(Double(number + 1), -exponent) / whole * Double(draws)
                // Six standard deviations.
                let bound = 6 * expected.squareRoot() + 1
                #expect(abs(Double(counts[number]) - expected) < bound, "seed \(runSeed), \(exponent), \(number)")
            }
            #expect(popularity.choice(0) == 0 && popularity.choice(1 - .ulpOfOne / 2) == count - 1)
        }
    }

    private func population(people: Int, collaborations: Int) throws -> Population {
        let names = (0..<collaborations).compactMap { CollaborationIdentifier("c\($0)") }
        return try Population(people: people, devices: 1...3, in: names)
    }

    @Test("People are divided among the collaborations")
    func members() throws {
        let population = try population(people: 11, collaborations: 4)
        #expect((0..<4).map { population.members(of: $0) } == [3, 3, 3, 2])
        var found: Set<Int> = []
        for collaboration in 0..<4 {
            for member in 0..<population.members(of: collaboration) {
                let person = population.person(member, of: collaboration)
                #expect(population.collaboration(ofPerson: person) == collaboration)
                found.insert(person)
            }
        }
        #expect(found == Set(0..<11))
        #expect(Set((0..<4).flatMap { population.rootHashes(of: $0) }) == Set(population.rootHashes))
    }

    @Test("Without a skew devices take turns; with one, the first people of the first collaborations come most often")
    func choice() throws {
        let population = try population(people: 11, collaborations: 4)
        var inTurn = DeviceChoice(population, skew: 0)
        for _ in 0..<2 {
            for device in population.devices {
                let next = inTurn.next()
                #expect(next == device)
            }
        }
        var skewed = DeviceChoice(population, skew: 1.2, random: SeededGenerator(seed: runSeed))
        var counts = [Int](repeating: 0, count: 11)
        for _ in 0..<20_000 {
            let (person, device) = skewed.next()
            #expect(population.people[person].keys.indices.contains(device))
            counts[person] += 1
        }
        #expect(counts.allSatisfy { $0 > 0 }, "seed \(runSeed), \(counts)")
        // Person 0 is the first of the first collaboration, 4 the second of it, 1 the first of the second one.
        #expect(counts[0] > 2 * counts[4] - 300 && counts[0] > 2 * counts[1] - 300, "seed \(runSeed), \(counts)")
        #expect(counts.max() == counts[0], "seed \(runSeed), \(counts)")
    }

    // MARK: Recordings

    private let periods = [
        TrafficShape.Period(seconds: 1, requests: ["verify": 10, "mutate": 3], proofs: 40, refused: 8, others: 2),
        TrafficShape.Period(seconds: 0.5, requests: [:]),
        TrafficShape.Period(seconds: 2.25, requests: ["check": 7, "open": 1], proofs: 1),
    ]

    private func text(_ periods: [TrafficShape.Period]) throws -> String {
        try TrafficShape.head() + periods.map { try TrafficShape.line(of: $0) }.joined()
    }

    @Test("A recording is read as it was written, and without its last line when that was cut")
    func recording() throws {
        let text = try text(periods)
        #expect(try TrafficShape(text: text).periods == periods)
        #expect(try TrafficShape(text: String(text.dropLast())).periods == Array(periods.dropLast()))
        #expect(try TrafficShape(text: text.replacing("\n", with: "\r\n")).periods == periods)
        #expect(TrafficShape.Period(seconds: 1, requests: ["verify": 5], proofs: 1e9).batch == 4096)
        #expect(periods[0].batch == 4 && periods[0].invalidPart == 0.2 && periods[1].batch == 1)
    }

    @Test(
        "What is no recording is refused with its line",
        arguments: [
            ("", 1), ("\n", 1), ("{}\n", 1), (#"{"format":"rootgate-traffic","version":2}"# + "\n", 1),
            ("HEAD{}\n", 2), ("HEADLINE\nLINE", 2),
            (#"HEAD{"seconds":0,"requests":{},"proofs":0,"refused":0,"others":0}"# + "\n", 2),
            (#"HEAD{"seconds":1,"requests":{},"proofs":0,"refused":1,"others":0}"# + "\n", 2),
            (#"HEAD{"seconds":1,"requests":{"verify":-1},"proofs":0,"refused":0,"others":0}"# + "\n", 2),
            (#"HEAD{"seconds":1,"requests":{"fetch":1},"proofs":0,"refused":0,"others":0}"# + "\n", 2),
            (#"HEAD{"seconds":1,"requests":{"verify":1e99},"proofs":0,"refused":0,"others":0}"# + "\n", 2),
        ])
    func noRecording(text: String, line: Int) throws {
        let text = text.replacing("HEAD", with: try TrafficShape.head())
        do {
            _ = try TrafficShape(text: text)
            Issue.record("\(text) was read")
        } catch {
            #expect("\(error)".hasPrefix("line \(line) "), "\(error)")
        }
    }

    @Test("Statistics become a period; a restart between them becomes none")
    func statistics() {
        let before: [String: UInt64] = [
            "uptime-milliseconds": 1000, "operation-verify": 5, "operation-ping": 9, "verdict-granted": 50,
            "verdict-bad-signature": 1, "connections": 70,
        ]
        let after: [String: UInt64] = [
            "uptime-milliseconds": 3000, "operation-verify": 9, "operation-verify-inclusion": 2, "operation-ping": 10,
            "operation-add-roots": 1, "operation-remove-roots": 2, "operation-collaborate": 4,
            "operation-statistics": 6, "verdict-granted": 80, "verdict-included": 5, "verdict-bad-signature": 8,
            "connections": 3,
        ]
        let period = TrafficShape.period(from: before, to: after)
        #expect(
            period
                == TrafficShape.Period(
                    seconds: 2, requests: ["verify": 4, "inclusion": 2, "mutate": 3], proofs: 42, refused: 7, others: 4)
        )
        #expect(TrafficShape.period(from: after, to: before) == nil)
        #expect(TrafficShape.period(from: after, to: after) == nil)
        #expect(TrafficShape.period(from: after, to: after.merging(["uptime-milliseconds": 4000]) { $1 }) != nil)
        #expect(
            TrafficShape.period(from: after, to: ["uptime-milliseconds": 4000, "operation-verify": 8]) == nil,
            "a counter went back")
    }

    @Test("A replay has every request of the recording, in portions that are not too large")
    func replay() {
        for (scale, itemsMax) in [(1.0, 1_000_000), (1, 25), (3.5, 9), (0.4, 3)] {
            var traffic = ReplayedTraffic(TrafficShape(periods), scale: scale, itemsMax: itemsMax)
            var (seconds, counts, portions): (Double, [LoadKind: Int], Int) = (0, [:], 0)
            while let slices = traffic.nextPortion() {
                portions += 1
                #expect(!slices.isEmpty)
                var items = 0.0
                for slice in slices {
                    seconds += slice.seconds
                    for kind in slice.kinds {
                        counts[kind, default: 0] += 1
                        items += kind.hasProofs ? slice.batch : 1
                    }
                    let moments = slice.moments()
                    #expect(moments.count == slice.kinds.count && moments == moments.sorted())
                    #expect(moments.allSatisfy { (0..<slice.seconds).contains($0) })
                }
                // Parts of requests that were owed come on top, for each kind and slice.
                #expect(items <= Double(itemsMax) + 5 * Double(slices.count), "\(items) of \(itemsMax)")
            }
            #expect(abs(seconds - 3.75) < 1e-9 && traffic.done == 1)
            for (kind, count) in [(LoadKind.verify, 10.0), (.mutate, 3), (.check, 7), (.open, 1)] {
                #expect(counts[kind, default: 0] == Int(count * scale + 1e-9), "\(kind), \(scale), \(itemsMax)")
            }
            #expect(itemsMax > 100 ? portions == 1 : portions > 1)
        }
    }

    // MARK: Reports

    @Test("Reports of one time are merged, and those of one after the other added")
    func reports() {
        func report(_ kind: LoadKind, seconds: Double) -> LoadReport {
            var report = LoadReport()
            (report.proofs, report.requests, report.seconds, report.wrong) = (8, 2, seconds, 1)
            report.verdicts = [.granted: 7, .badIndex: 1]
            report.errors = ["busy": 1]
            var latency = Histogram()
            latency.record(1000)
            report.latencies = [kind: latency]
            return report
        }
        var merged = report(.verify, seconds: 2)
        merged.merge(report(.open, seconds: 3))
        var added = report(.verify, seconds: 2)
        added.add(report(.open, seconds: 3))
        #expect(merged.seconds == 3 && added.seconds == 5)
        for both in [merged, added] {
            #expect(both.proofs == 16 && both.requests == 4 && both.wrong == 2 && both.errors == ["busy": 2])
            #expect(both.verdicts == [.granted: 14, .badIndex: 2])
            #expect(both.latencies.count == 2 && both.latency.count == 2)
        }
        #expect(merged.requestsPerSecond == 4.0 / 3)
    }
}
