import Foundation
import TestSupport
import Testing

@testable import LoadHarness

#if canImport(FoundationXML)
import FoundationXML
#endif

@Suite struct PlotTests {
    @Test("Chosen ticks enclose the values")
    func ticks() {
        var generator = SeededGenerator(seed: runSeed)
        for _ in 0..<1000 {
            let low = pow(10, Double.random(in: -3...9, using: &generator))
            let high = low * pow(10, Double.random(in: 0.01...6, using: &generator))
            let linear = Plot.Ruler.linearTicks(0, high)
            let logarithmic = Plot.Ruler.logarithmicTicks(low, high)
            #expect(linear.first == 0 && linear.last ?? 0 >= high * 0.999_999, "seed \(runSeed), \(high)")
            #expect((4...11).contains(linear.count), "seed \(runSeed), \(high)")
            #expect(logarithmic.first ?? 0 <= low * 1.000_001, "seed \(runSeed), \(low) to \(high)")
            #expect(logarithmic.last ?? 0 >= high * 0.999_999, "seed \(runSeed), \(low) to \(high)")
            #expect((2...11).contains(logarithmic.count), "seed \(runSeed), \(low) to \(high)")
        }
    }

    @Test("An axis keeps order and bounds")
    func axis() {
        for isLogarithmic in [false, true] {
            let axis = Plot.Axis(label: "", isLogarithmic: isLogarithmic, ticks: [1, 10, 100])
            let ruler = Plot.Ruler(axis, values: [3, 40], from: 200, to: 0)
            #expect(ruler.place(of: 1) == 200)
            #expect(abs(ruler.place(of: 10) - (isLogarithmic ? 100 : 200 - 200.0 / 11)) < 1e-9)
            #expect(ruler.place(of: 100) == 0)
        }
    }

    /// Of every element, only attributes that are finite numbers or words may come out.
    @Test("A plot is well-formed XML whatever its names and figures")
    func xml() {
        let odd = Plot.Series(name: "<a & b>", points: [.init(x: 1, y: 0, spread: 0...0), .init(x: 2, y: 5)])
        let plot = Plot(
            title: "\"1\" < 2 & 3", x: .init(label: "x<", isLogarithmic: true), y: .init(label: "y&"),
            series: [odd, Plot.Series(name: "nothing", points: [])])
        let empty = Plot(title: "", x: .init(label: ""), y: .init(label: "", isLogarithmic: true), series: [])
        for svg in [plot.svg, empty.svg] {
            #expect(XMLParser(data: Data(svg.utf8)).parse(), "\(svg)")
            #expect(!svg.contains("nan") && !svg.contains("inf"), "\(svg)")
        }
    }
}
