import Foundation
import Platform

/// Enters a sandbox, attempts what the arguments name on several threads, and prints what came of it, a line each.
///
///     SandboxProbe kernel                      what the kernel has
///     SandboxProbe on|off ATTEMPT FOLDER       FOLDER/data may be written, FOLDER/keys/key may be read
///     SandboxProbe connecting ATTEMPT FOLDER   the same, and connections to one port
///
/// Ends with 2 when an argument is missing, wrong or too many.
@main
enum SandboxProbe {
    static func main() {
        let words = CommandLine.arguments.dropFirst()
        #if os(Linux)
        if words == ["kernel"] { return write(Attempt.kernel) }
        guard words.count == 3, ["on", "off", "connecting"].contains(words[1]),
            let attempt = Attempt(rawValue: words[2])
        else { refuse() }
        let folder = words[3]
        // A thread from before the sandbox, which waits meanwhile, and one of Dispatch, which waits as well.
        let (begin, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let earlyThread = Thread {
            begin.wait()
            say("early", attempt.perform(in: folder))
            done.signal()
        }
        earlyThread.start()
        let queue = DispatchQueue(label: "probe")
        queue.async {
            begin.wait()
            say("queue", attempt.perform(in: folder))
            done.signal()
        }
        // Both are there when they wait.
        while DispatchQueue.global().sync(execute: { threadCount() }) < 3 { usleep(1000) }
        if words[1] != "off" {
            let rules = SandboxRules(
                writableFolders: [folder + "/data"], readableFiles: [folder + "/keys/key"],
                connectionPorts: words[1] == "connecting" ? [Attempt.port] : [])
            write("\(System.enterSandbox(rules))")
        }
        for _ in 0..<2 {
            begin.signal()
            done.wait()
        }
        Thread {
            say("late", attempt.perform(in: folder))
            done.signal()
        }.start()
        done.wait()
        say("main", attempt.perform(in: folder))
        #else
        write("not available")
        #endif
    }

    #if os(Linux)
    /// Ends the program with a line that says how it is used.
    private static func refuse() -> Never {
        let usage = "usage: SandboxProbe kernel | on|off|connecting ATTEMPT FOLDER\n"
        FileHandle.standardError.write(Data(usage.utf8))
        exit(2)
    }

    private static func threadCount() -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0
    }

    private static func say(_ thread: String, _ number: CInt) {
        write("\(thread): \(number)")
    }
    #endif

    /// Prints a line at once: the process may be ended by the next attempt.
    private static func write(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}
