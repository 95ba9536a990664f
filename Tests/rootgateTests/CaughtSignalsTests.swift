import Core
import Dispatch
import Foundation
import TestSupport
import Testing

@testable import rootgate

@Suite("Signals that call a function")
struct CaughtSignalsTests {
    @Test("A signal that comes as soon as it may is told, once", .timeLimit(.minutes(1)))
    func atOnce() {
        let numbers = [SIGUSR1, SIGUSR2, SIGWINCH]
        let told = Lock<[CInt]>([])
        CaughtSignals.begin(numbers, on: DispatchQueue(label: "test signals")) { number in
            told.withLock { $0.append(number) }
        }
        for number in numbers { kill(getpid(), number) }
        #expect(becomesTrue { told.withLock { $0.sorted() } == numbers.sorted() })
    }
}
