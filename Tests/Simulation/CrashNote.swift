import Foundation

/// Says which seed was running when the service ends the process, as a failed assertion does.
enum CrashNote {
    /// What the handler of signals writes. It changes between runs only.
    private nonisolated(unsafe) static let text = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 200)
    private nonisolated(unsafe) static var count = 0
    /// What each signal did before `install`, by its number.
    private nonisolated(unsafe) static let former = UnsafeMutablePointer<sigaction>.allocate(capacity: 65)

    /// Names the run that begins.
    static func begin(seed: UInt64, steps: UInt64) {
        let note = "FAILED: seed \(seed): the process ends\nreplay: \(replay(seed: seed, steps: steps))\n"
        count = text.update(fromContentsOf: note.utf8.prefix(text.count))
    }

    /// The command that repeats a run.
    static func replay(seed: UInt64, steps: UInt64) -> String {
        "Simulation --seed \(seed) --count 1 --steps \(steps)"
    }

    /// From now on a signal that ends the process writes the note first. Then it does what it did before: with
    /// SWIFT_BACKTRACE=enable=yes in the environment, Swift's library tells where the process was.
    static func install() {
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE] {
            sigaction(number, nil, former + Int(number))
            signal(number) { number in
                _ = write(STDOUT_FILENO, CrashNote.text.baseAddress, CrashNote.count)
                // What has raised the signal raises it again when this function returns.
                sigaction(number, CrashNote.former + Int(number), nil)
            }
        }
    }
}
