import Core
import Testing

@testable import Server

@Suite struct LimitedLogTests {
    @Test("One line more than the limit of a second is left out, and the next second says so")
    func limit() {
        let time = Lock<UInt64>(5000)
        let lines = Lock<[String]>([])
        let log = LimitedLog(linesPerSecond: 3, clock: MonotonicClock { time.withLock { $0 } }) { line in
            lines.withLock { $0.append(line) }
        }
        for number in 0..<5 { log.write("line \(number)") }
        #expect(lines.withLock { $0 } == ["line 0", "line 1", "line 2"])
        time.withLock { $0 = 5999 }
        log.write("line 5")
        time.withLock { $0 = 6000 }
        log.write("line 6")
        log.write("line 7")
        let later = lines.withLock { Array($0.dropFirst(3)) }
        #expect(later == ["line 6 (3 lines like this were left out before it)", "line 7"])
    }
}
