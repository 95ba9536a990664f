import Testing

@testable import rootgate_bench

@Suite("Gaps of processors")
struct ProcessorGapsTests {
    @Test("Work that meets a gap ends later by what is left of it")
    func work() {
        let processor = ProcessorGaps(gaps: [100..<150, 200..<1000])
        func end(_ work: UInt64, _ moment: UInt64) -> UInt64 {
            var runner = ProcessorGaps.Runner(processor)
            return runner.end(ofWork: work, from: moment)
        }
        #expect(end(100, 0) == 100)
        #expect(end(101, 0) == 151)
        #expect(end(0, 120) == 150)
        #expect(end(10, 120) == 160)
        #expect(end(51, 120) == 1001)
        #expect(end(160, 0) == 1010)
        #expect(end(5, 2000) == 2005)
    }

    @Test("A runner that has left a gap behind runs on as if it had begun there")
    func inOrder() {
        var runner = ProcessorGaps.Runner(ProcessorGaps(gaps: [100..<150, 200..<1000]))
        #expect(runner.end(ofWork: 20, from: 90) == 160)
        #expect(runner.end(ofWork: 20, from: 160) == 180)
        #expect(runner.end(ofWork: 20, from: 190) == 1010)
        #expect(runner.end(ofWork: 20, from: 1010) == 1030)
    }

    @Test("Without gaps requests wait for each other only, and gaps of either processor hold them back")
    func latencies() {
        func latencies(service: [Range<UInt64>] = [], generator: [Range<UInt64>] = []) -> (half: UInt64, late: UInt64) {
            let histogram = ProcessorGaps.latencies(
                service: ProcessorGaps(gaps: service), generator: ProcessorGaps(gaps: generator), seconds: 1,
                perSecond: 10_000, highest: 20_000)
            return (histogram.quantile(0.5), histogram.quantile(0.99))
        }
        let none = latencies()
        #expect((50_000...80_000).contains(none.half))
        #expect((100_000...400_000).contains(none.late))
        // A tenth of the time is one gap of 100 ms.
        let gap: [Range<UInt64>] = [500_000_000..<600_000_000]
        #expect(latencies(service: gap).late > 80_000_000)
        #expect(latencies(generator: gap).late > 80_000_000)
        #expect(latencies(service: gap).half < 100_000)
    }

    @Test("A recording tells where the clock has leapt, and nothing of steps that are short")
    func leaps() {
        // Steps of 1 us, and leaps at 1 ms and at the end.
        var time: UInt64 = 0
        let recorded = ProcessorGaps.record(from: 0, to: 3_000_000) {
            time += time == 1_000_000 ? 500_000 : time == 2_990_000 ? 100_000 : 1000
            return time
        }
        #expect(recorded.gaps == [1_000_000..<1_500_000, 2_990_000..<3_090_000])
        var slow: UInt64 = 0
        let short = ProcessorGaps.record(from: 0, to: 1_000_000) {
            slow += 20_000
            return slow
        }
        #expect(short.gaps == [])
    }

    @Test("A recording tells gaps in order, within its time")
    func recording() {
        let recorded = ProcessorGaps.record(processors: 2, seconds: 0.05)
        #expect(recorded.count == 2)
        for processor in recorded {
            #expect(zip(processor.gaps, processor.gaps.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound })
        }
    }
}
