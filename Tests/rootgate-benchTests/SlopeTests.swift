import TestSupport
import Testing

@testable import rootgate_bench

@Suite("Slopes of figures over time")
struct SlopeTests {
    private typealias Point = (time: Double, figure: Double)

    private func line(_ times: Range<Int>, rise: Double, height: Double) -> [Point] {
        times.map { (Double($0), height + rise * Double($0)) }
    }

    @Test("The rise of a straight line is found exactly, also when it is at another height behind a gap")
    func exact() throws {
        let slope = try #require(Slope([line(0..<20, rise: 3, height: 5), line(30..<60, rise: 3, height: -400)]))
        #expect(abs(slope.value - 3) < 1e-9 && slope.margin < 1e-6, "\(slope)")
    }

    @Test("Level figures at two heights do not rise")
    func level() throws {
        let slope = try #require(Slope([line(0..<20, rise: 0, height: 5), line(20..<40, rise: 0, height: 9)]))
        #expect(slope.value == 0 && slope.margin == 0)
        let joined = try #require(Slope([line(0..<20, rise: 0, height: 5) + line(20..<40, rise: 0, height: 9)]))
        #expect(joined.value > 0.1)
    }

    @Test("The true rise of figures with noise is within the margin in most cases, also when neighbours are alike")
    func margin() {
        var random = SeededGenerator(seed: runSeed)
        for persistence in [0.0, 0.7] {
            var (hits, widest) = (0, 0.0)
            for _ in 0..<200 {
                var noise = 0.0
                let points = (0..<100).map { time -> Point in
                    noise = persistence * noise + Double.random(in: -1...1, using: &random)
                    return (Double(time), 0.05 * Double(time) + noise)
                }
                guard let slope = Slope([points]) else { continue }
                if abs(slope.value - 0.05) <= slope.margin { hits += 1 }
                widest = max(widest, slope.margin)
            }
            #expect(hits >= 170, "\(hits) of 200, \(persistence), ROOTGATE_TEST_SEED=\(runSeed)")
            #expect(widest < 0.05, "the margin is so wide that it says nothing: \(widest), \(persistence)")
        }
    }

    @Test("A few figures that are far from the others change neither the rise nor the margin much")
    func outliers() throws {
        var random = SeededGenerator(seed: runSeed)
        var points = (0..<300).map { time -> Point in
            (Double(time), 0.01 * Double(time) + Double.random(in: -1...1, using: &random))
        }
        let slope = try #require(Slope([points]))
        for _ in 0..<15 { points[Int.random(in: 0..<300, using: &random)].figure += 1000 }
        let other = try #require(Slope([points]))
        #expect(abs(slope.value - other.value) < 0.002, "\(slope) \(other), ROOTGATE_TEST_SEED=\(runSeed)")
        #expect(other.margin < 2 * slope.margin && slope.margin < 0.01)
    }

    @Test("Too few figures, or figures of one moment, have no slope")
    func tooFew() {
        #expect(Slope([line(0..<9, rise: 1, height: 0)]) == nil)
        #expect(Slope([line(0..<10, rise: 1, height: 0)]) != nil)
        #expect(Slope([(0..<20).map { _ in (1.0, 2.0) }]) == nil)
        #expect(Slope([]) == nil)
    }
}
