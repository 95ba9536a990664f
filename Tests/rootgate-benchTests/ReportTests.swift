import Core
import Foundation
import TestSupport
import Testing

@testable import rootgate_bench

@Suite struct ReportTests {
    private struct Failure: Error {}

    private func report(
        in directory: URL, _ benchmarks: [Benchmark], note: @escaping (String) -> Void = { _ in }
    ) -> Report {
        Report(
            directory: directory, readme: nil, isWhole: true,
            scale: SweepScale(scale: Scale(isTiny: true), isHuge: false), benchmarks: benchmarks, sweeps: [],
            note: note)
    }

    private func benchmark(_ name: String, _ value: Double) -> Benchmark {
        Benchmark(name, "a figure") { _ in Measurement(name, unit: "op/s", values: [value]) }
    }

    @Test("A report that ends early leaves what it has measured, and the earlier results as they were")
    func unfinished() throws {
        let folder = ScratchDirectory()
        defer { withExtendedLifetime(folder) {} }
        let directory = URL(fileURLWithPath: folder.path)
        let results = directory.appendingPathComponent("RESULTS.md")
        let unfinished = directory.appendingPathComponent("RESULTS.unfinished.md")
        let first = benchmark("first", 432)
        _ = try report(in: directory, [first]).write()
        let earlier = try String(contentsOf: results, encoding: .utf8)
        #expect(earlier.contains("432"))
        #expect(!FileManager.default.fileExists(atPath: unfinished.path))

        let failing = Benchmark("second", "a figure") { _ in throw Failure() }
        #expect(throws: Failure.self) {
            try report(in: directory, [benchmark("first", 876), failing, benchmark("third", 1)]).write()
        }
        #expect(try String(contentsOf: results, encoding: .utf8) == earlier)
        let kept = ResultsDocument(parsing: try String(contentsOf: unfinished, encoding: .utf8))
        #expect(kept.row("first")?["value"] == "876" && kept.row("second") == nil && kept.row("third") == nil)

        _ = try report(in: directory, [benchmark("first", 876), benchmark("second", 2)]).write()
        let whole = ResultsDocument(parsing: try String(contentsOf: results, encoding: .utf8))
        #expect(whole.row("first")?["value"] == "876" && whole.row("second")?["value"] == "2.00")
        #expect(!FileManager.default.fileExists(atPath: unfinished.path))
    }

    @Test("A benchmark whose program is missing is skipped, as a note says, and is no row; the others go on")
    func skipped() throws {
        let folder = ScratchDirectory()
        defer { withExtendedLifetime(folder) {} }
        let directory = URL(fileURLWithPath: folder.path)
        let lacking = Benchmark("first", "a figure") { _ in throw Skipped(reason: "there is no program xyz") }
        let notes = Lock<[String]>([])
        let leftOut = try report(in: directory, [lacking, benchmark("second", 2)]) { note in
            notes.withLock { $0.append(note) }
        }.write()
        #expect(leftOut.isEmpty)
        #expect(notes.withLock { $0 }.contains("skipped: first: there is no program xyz"))
        let text = try String(contentsOf: directory.appendingPathComponent("RESULTS.md"), encoding: .utf8)
        let document = ResultsDocument(parsing: text)
        #expect(document.row("first") == nil && document.row("second") != nil)
    }
}
