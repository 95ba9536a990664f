import Core
import Foundation
import Server
import ServiceTestSupport
import TestSupport
import Testing

@testable import rootgate

@Suite("The live view of a service")
struct TopTests {
    private func sample(_ uptime: UInt64, _ figures: [String: UInt64]) -> ServiceSample {
        ServiceSample(figures: figures.merging(["uptime-milliseconds": uptime]) { $1 })
    }

    @Test("Rates are the growth between two samples by the service's clock, and shares are parts of that growth")
    func rates() {
        let first = sample(
            10_000, ["requests": 100, "verdict-granted": 900, "verdict-bad-key": 100, "roots": 7, "limited-proofs": 3])
        let start = ServiceView(first, after: nil)
        #expect(start.base == .start && start.seconds == 10)
        #expect(start.rates["requests"] == 10 && start.proofRate == 100 && start.shares["granted"] == 0.9)
        // The roots are no counter.
        #expect(start.rates["roots"] == nil && start.rates["limited-proofs"] == 0.3)
        let second = sample(
            12_500,
            ["requests": 105, "verdict-granted": 901, "verdict-bad-key": 109, "verdict-bad-index": 0, "mutations": 5])
        let later = ServiceView(second, after: first)
        #expect(later.base == .lastSample && later.seconds == 2.5)
        #expect(later.rates["requests"] == 2 && later.proofRate == 4)
        #expect(later.shares["granted"] == 0.1 && later.shares["bad-key"] == 0.9)
        // Nobody knows what these were before.
        #expect(later.rates["mutations"] == nil && later.rates["verdict-bad-index"] == nil)
        let atOnce = ServiceView(second, after: second)
        #expect(atOnce.rates.isEmpty && atOnce.proofRate == nil && atOnce.shares.isEmpty)
        #expect(atOnce.lines("s", columns: 80).joined().contains("proofs -/s"))
    }

    @Test("After a restart no rate is negative: the rates are those since the start")
    func restarts() {
        let before = sample(60_000, ["requests": 100, "verdict-granted": 5000])
        for after in [
            sample(2000, ["requests": 4, "verdict-granted": 10]),
            // Up for longer than before it went away: fewer requests tell.
            sample(80_000, ["requests": 4, "verdict-granted": 10]), sample(2000, ["requests": 200]),
        ] {
            let view = ServiceView(after, after: before)
            #expect(view.base == .restart)
            #expect(view.rates.values.allSatisfy { $0 >= 0 })
            #expect(view.rates["requests"] == Double(after["requests"]) / (Double(after["uptime-milliseconds"]) / 1000))
            #expect(view.lines("s", columns: 80)[0].hasSuffix("it was started again"))
        }
    }

    @Test("Random samples give rates that are neither negative nor above what was counted")
    func randomSamples() {
        var generator = SeededGenerator(seed: runSeed)
        let names = ["requests", "verdict-granted", "verdict-bad-key", "limited-bytes", "roots", "uptime-milliseconds"]
        for iteration in 0..<500 {
            func random() -> ServiceSample {
                var figures: [String: UInt64] = [:]
                for name in names where Int.random(in: 0..<5, using: &generator) > 0 {
                    figures[name] = Bool.random(using: &generator) ? .random(in: 0...100, using: &generator) : .max
                }
                return ServiceSample(figures: figures)
            }
            let (first, second) = (random(), random())
            let view = ServiceView(second, after: Bool.random(using: &generator) ? first : nil)
            let context: Comment = "seed \(runSeed), iteration \(iteration): \(first) \(second)"
            for (name, rate) in view.rates {
                #expect(rate >= 0 && rate * view.seconds <= Double(second[name]) * 1.001, context)
            }
            #expect(view.shares.values.allSatisfy { (0...1).contains($0) }, context)
            #expect(!view.lines("s", columns: 40).isEmpty, context)
        }
    }

    @Test("Lists wrap at the width, and what the terminal has no room for is cut and counted")
    func sizes() {
        let figures = Dictionary(
            uniqueKeysWithValues: [
                "storage-bytes", "storage-used-bytes", "log-bytes", "sequence", "roots", "collaborations",
            ].map { ($0, UInt64(123_456_789)) })
        let view = ServiceView(sample(1000, figures), after: nil)
        let (wide, narrow) = (view.lines("s", columns: 200), view.lines("s", columns: 60))
        #expect(narrow.count > wide.count)
        #expect(narrow.dropFirst().allSatisfy { $0.count <= 60 }, "\(narrow)")
        #expect(wide.contains { $0.hasPrefix("storage ") && $0.contains("root hashes 123,456,789") })
        #expect(wide.contains { $0.contains("used 117 MiB") })
        #expect(TerminalScreen.fitted(["abcdef", "x"], (4, 2)) == ["abc…", "x"])
        #expect(TerminalScreen.fitted(["a", "b", "c", "d"], (20, 3)) == ["a", "b", "… 2 more lines"])
        #expect(TerminalScreen.fitted(["a", "b"], (1, 1)) == ["…"])
        #expect(ServiceView.grouped(0) == "0" && ServiceView.grouped(999) == "999")
        #expect(ServiceView.grouped(1000) == "1,000" && ServiceView.grouped(1_234_567) == "1,234,567")
    }

    @Test("Alarms, refusals and names that a service sends are shown, and names steer no terminal")
    func texts() {
        let figures: [String: UInt64] = [
            "storage-failed": 1, "limited-proofs": 4, "limited-bytes": 0, "verdict-\u{1b}[2J": 3, "requests-busy": 0,
        ]
        let lines = ServiceView(sample(1000, figures), after: nil).lines("s", columns: 80)
        #expect(lines.contains("ALARM: the storage has failed"))
        #expect(lines.contains { $0.hasPrefix("refused ") && $0.hasSuffix("limited-proofs 4.0/s (4)") })
        #expect(lines.contains { $0.hasPrefix("\\u001B[2J ") })
        #expect(!lines.joined().unicodeScalars.contains { $0.value < 0x20 })
        let calm = ServiceView(sample(1000, [:]), after: nil).lines("s", columns: 80)
        #expect(!calm.joined().contains("ALARM"))
        #expect(
            calm.contains { $0.hasSuffix(" nothing since its start") } && calm.last == "no verdicts since its start")
    }

    private func views(_ output: String) throws -> [[String: Any]] {
        try output.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }

    @Test("Standard output that is no terminal gets a block or a line of JSON for each view, and no escape sequence")
    func blocks() throws {
        let service = try TestService()
        let server = ["--server", service.endpoint.description]
        let made = try runProgram(programPath, ["simulate", "--collaboration", "c", "--register"] + server)
        #expect(made.code == 0, "\(made.errors)")
        let verified = try runProgram(programPath, ["verify", "--collaboration", "c"] + server, input: made.output)
        #expect(verified.code == 0, "\(verified.errors)")
        let text = try runProgram(programPath, ["top", "--count", "3", "--interval", "0.05"] + server)
        #expect(text.code == 0 && text.errors.isEmpty, "\(text.errors)")
        #expect(!text.output.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" })
        let blocks = text.output.components(separatedBy: "\n\n")
        #expect(blocks.count == 3)
        for (number, block) in blocks.enumerated() {
            #expect(block.hasPrefix("\(service.endpoint), up "))
            #expect(block.contains(number == 0 ? ", rates since its start\n" : ", rates of the last "))
            #expect(block.contains("root hashes 1,") && block.contains("\ngranted "), "\(block)")
        }
        let lines = try runProgram(programPath, ["top", "--json", "--count", "2", "--interval", "0.05"] + server)
        let views = try views(lines.output)
        #expect(lines.code == 0 && views.map { $0["ratesSince"] as? String } == ["start", "last-view"])
        let figures = try #require(views[1]["figures"] as? [String: Any])
        #expect(figures["verdict-granted"] as? Int == 2)
        #expect((views[0]["shares"] as? [String: Double])?["granted"] == 1)
        #expect((views[0]["rates"] as? [String: Double])?["proofs"] ?? 0 > 0)
        // Between the views there was nothing but the question.
        let rates = try #require(views[1]["rates"] as? [String: Double])
        #expect(rates["proofs"] == 0 && rates["requests"] ?? 0 > 0)
    }

    @Test("A service that goes away is said to be away, and shown again when it is back")
    func outage() throws {
        let service = try TestService()
        let client = try service.client()
        let folder = ScratchDirectory()
        let path = folder.path + "/views"
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: programPath)
        process.arguments = [
            "top", "--json", "--interval", "0.05", "--timeout", "0.3", "--server", service.endpoint.description,
        ]
        process.standardOutput = FileHandle(forWritingAtPath: path)
        try process.run()
        defer {
            process.terminate()
            process.waitUntilExit()
        }
        func views() -> [[String: Any]] {
            let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
            // The last line may be half written.
            return text.components(separatedBy: "\n").dropLast().compactMap {
                try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
            }
        }
        func answered(_ view: [String: Any]) -> Bool { view["answered"] as? Bool ?? false }
        #expect(becomesTrue { views().count > 3 })
        service.stop()
        #expect(becomesTrue { views().contains { !answered($0) } })
        let away = try #require(views().first { !answered($0) })
        #expect((away["reason"] as? String)?.isEmpty == false && away["awaySeconds"] as? Double ?? -1 >= 0)
        try service.start()
        #expect(becomesTrue { views().last.map(answered) ?? false })
        let all = views()
        #expect(all.filter { $0["ratesSince"] as? String == "restart" }.count == 1, "\(all)")
        for view in all {
            #expect((view["rates"] as? [String: Double] ?? [:]).values.allSatisfy { $0 >= 0 }, "\(view)")
        }
        #expect(process.isRunning)
        client.close()
    }

    @Test("A service that was never there, and options out of range, are errors of one line")
    func usage() throws {
        for (words, told) in [
            (["--server", "127.0.0.1:1", "--timeout", "0.2"], "127.0.0.1:1"),
            (["--interval", "0"], "--interval takes"),
            (["--count", "0"], "--count takes"),
        ] {
            let result = try runProgram(programPath, ["top"] + words)
            #expect(result.code == 2 && result.output.isEmpty && result.errors.contains(told), "\(result)")
            #expect(result.errors.split(separator: "\n").count == 1)
        }
    }

    // MARK: A terminal

    /// `rootgate top` on a terminal of the test's own, whose output a thread collects.
    private final class OnTerminal {
        #if os(Linux)
        static let isPossible = true
        #else
        static let isPossible = false
        #endif

        let process = Process()
        private let master: CInt
        private let collected = Shared<[UInt8]>([])
        private let isClosed = Shared(false)

        init(_ words: [String], columns: UInt16, lines: UInt16) throws {
            master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
            // TIOCSPTLCK and TIOCGPTN, as Linux has them.
            var (isLocked, number): (CInt, CInt) = (0, -1)
            try #require(master >= 0 && ioctl(master, 0x4004_5431, &isLocked) == 0)
            try #require(ioctl(master, 0x8004_5430, &number) == 0)
            let name = "/dev/pts/\(number)"
            let slave = open(name, O_RDWR | O_NOCTTY)
            try #require(slave >= 0)
            let terminal = FileHandle(fileDescriptor: slave, closeOnDealloc: true)
            resize(columns: columns, lines: lines)
            process.executableURL = URL(fileURLWithPath: programPath)
            process.arguments = words
            process.environment = ProcessInfo.processInfo.environment.merging(["TERM": "xterm"]) { $1 }
            (process.standardInput, process.standardOutput) = (FileHandle.nullDevice, terminal)
            process.standardError = FileHandle.nullDevice
            try process.run()
            try terminal.close()
            Thread { [master, collected, isClosed] in
                var bytes = [UInt8](repeating: 0, count: 4096)
                // Ends with an error when nobody has the other side any more.
                while case let count = read(master, &bytes, bytes.count), count > 0 {
                    let more = Array(bytes[..<count])
                    collected.with { $0 += more }
                }
                isClosed.with { $0 = true }
            }.start()
        }

        func resize(columns: UInt16, lines: UInt16) {
            var size = winsize(ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
            #expect(ioctl(master, UInt(TIOCSWINSZ), &size) == 0)
        }

        var output: String { String(decoding: collected.value, as: UTF8.self) }

        /// The end of the program, by a signal or by itself: its exit code, when all of its output has been read.
        func end(_ signal: CInt?) -> CInt {
            if let signal { kill(process.processIdentifier, signal) }
            process.waitUntilExit()
            #expect(becomesTrue { isClosed.value })
            close(master)
            return process.terminationReason == .exit ? process.terminationStatus : -1
        }
    }

    private static let enter = "\u{1b}[?1049h\u{1b}[?25l"
    private static let leave = "\u{1b}[?25h\u{1b}[?1049l"

    /// The lines of each drawing, without the sequences that erase the rest of a line or screen.
    private func drawings(_ output: String) -> [[String]] {
        output.components(separatedBy: "\u{1b}[H").dropFirst().map { drawing in
            let text = drawing.components(separatedBy: "\u{1b}[J")[0]
            // The terminal puts a carriage return before each line feed.
            return text.replacingOccurrences(of: "\r", with: "").components(separatedBy: "\n")
                .map { $0.replacingOccurrences(of: "\u{1b}[K", with: "") }
        }
    }

    @Test(
        "On a terminal the view is drawn in place within its size, and every end gives the first screen back",
        .enabled(if: OnTerminal.isPossible, "this system has no /dev/ptmx as Linux has it"))
    func terminal() throws {
        let service = try TestService()
        let words = ["top", "--interval", "0.05", "--server", service.endpoint.description]
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let top = try OnTerminal(words, columns: 50, lines: 9)
            #expect(becomesTrue { drawings(top.output).count > 3 }, "\(top.output)")
            #expect(top.end(signal) == 0)
            #expect(top.output.hasPrefix(Self.enter) && top.output.hasSuffix(Self.leave))
            for drawing in drawings(top.output) {
                #expect(drawing.count == 9 && drawing.allSatisfy { $0.count <= 50 }, "\(drawing)")
                #expect(drawing[8].hasPrefix("… ") && drawing[8].hasSuffix(" more lines"))
                #expect(!drawing.joined().unicodeScalars.contains { $0.value < 0x20 })
            }
        }
    }

    @Test(
        "A terminal that changes its size gets a view of that size, and one that stops the view its own screen",
        .enabled(if: OnTerminal.isPossible, "this system has no /dev/ptmx as Linux has it"))
    func changes() throws {
        let service = try TestService()
        // The views are far apart: only the change of the size draws again.
        let words = ["top", "--interval", "600", "--server", service.endpoint.description]
        let top = try OnTerminal(words, columns: 50, lines: 9)
        #expect(becomesTrue { drawings(top.output).count == 1 })
        top.resize(columns: 30, lines: 4)
        kill(top.process.processIdentifier, SIGWINCH)
        #expect(becomesTrue { drawings(top.output).count == 2 })
        #expect(drawings(top.output)[1].count == 4 && drawings(top.output)[1].allSatisfy { $0.count <= 30 })
        kill(top.process.processIdentifier, SIGTSTP)
        #expect(becomesTrue { top.output.hasSuffix(Self.leave) })
        kill(top.process.processIdentifier, SIGCONT)
        #expect(becomesTrue { drawings(top.output).count == 3 })
        #expect(top.end(SIGINT) == 0 && top.output.hasSuffix(Self.leave))
        #expect(top.output.components(separatedBy: Self.enter).count == 3)
        let ended = try OnTerminal(words + ["--count", "1"], columns: 80, lines: 24)
        #expect(ended.end(nil) == 0 && ended.output.hasSuffix(Self.leave))
    }
}
