import Foundation
import Hashing
import Signatures
import TestSupport
import Testing

@Suite("Threads that use libcrypto when the process ends")
struct ProcessEndTests {
    @Test("A process that keeps libcrypto ends well, and its threads can use it until then", arguments: 0..<5)
    func ending(number: Int) async {
        await #expect(processExitsWith: .success) {
            Libcrypto.stayUntilExit()
            // What is to be done at the end is done in reverse order: this after what libcrypto wants on its first use.
            atexit { usleep(50_000) }
            let begun = DispatchSemaphore(value: 0)
            for _ in 0..<3 {
                Thread {
                    while true {
                        guard (try? PrivateKey()) != nil else { _exit(1) }
                        begun.signal()
                    }
                }.start()
            }
            for _ in 0..<3 { begun.wait() }
            exit(0)
        }
    }
}
