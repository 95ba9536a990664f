import Foundation
import Kernels
import Testing

@testable import rootgate_bench

@Suite struct ReadmeFiguresTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    @Test("README.md shows the figures of every kind of machine and no others")
    func readme() throws {
        let region = try ReadmeFigures.region(in: try text("README.md"))
        #expect(
            region == (try ReadmeFigures.region(from: MachineResults.all(in: Self.root))),
            "run rootgate-bench --report, edit neither by hand")
    }

    @Test("One kind of machine has every benchmark and every sweep, and each has those of the README")
    func results() throws {
        let all = MachineResults.all(in: Self.root)
        #expect(!all.isEmpty)
        // A benchmark that is new has not been measured on every kind of machine.
        for benchmark in commonBenchmarks {
            let values = all.compactMap { $0.document.row(benchmark.name)?["value"] }
            #expect(values.contains { !$0.isEmpty }, "\(benchmark.name)")
        }
        for machine in all {
            for name in ReadmeFigures.names {
                #expect(machine.document.row(name)?["value"]?.isEmpty == false, "\(machine.path): \(name)")
            }
            // A kernel that a machine could run has all of its rows.
            let names = machine.document.rows.compactMap { $0["name"]?.trimmingCharacters(in: ["`"]) }
            let kinds = ["signature.new.b8.", "signature.new.b256.", "signature.known.b256."]
            let kernels = kinds.map { kind in
                Set(names.filter { $0.hasPrefix(kind) }.map { $0.dropFirst(kind.count) })
            }
            #expect(Set(kernels).count == 1, "\(machine.path)")
            for fact in ["date", "processor", "cores"] { #expect(machine.document.fact(fact)?.isEmpty == false) }
        }
        // Nor has a sweep.
        for sweep in allSweeps {
            #expect(all.contains { $0.document.sections.contains { $0.title == sweep.title } }, "\(sweep.name)")
        }
        let titles = allSweeps.map(\.title) + [Sizing.title]
        for machine in all {
            let places = machine.document.sections.compactMap { titles.firstIndex(of: $0.title) }
            #expect(places.count == machine.document.sections.count && places == places.sorted(), "\(machine.path)")
        }
    }

    @Test("Machines are of the kind of the kernels that verify their signatures")
    func kinds() {
        let zen5 = "AMD EPYC (family 26, model 2)"
        #expect(MachineKind(kernels: ["p256-avx512ifma-x16", "sha256-avx512"], processor: zen5) == .avx512ifma)
        let zen4 = "AMD EPYC (family 25, model 17)"
        #expect(MachineKind(kernels: ["p256-avx512ifma-x16"], processor: zen4) == .avx512ifmaInHalves)
        #expect(MachineKind(kernels: ["p256-avx2-x4"], processor: zen4) == .avx2)
        #expect(MachineKind(kernels: ["p256-portable", "p256-avx512fma-x8", "sha256-avx512"]) == .avx512fma)
        #expect(MachineKind(kernels: ["p256-avx2-x4", "p256-portable"]) == .avx2)
        #expect(MachineKind(kernels: ["p256-neon-x2", "sha256-armsha2"]) == .neon)
        #expect(MachineKind(kernels: ["p256-portable"]) == .portable)
        #expect(MachineKind(kernels: ["sha256-avx512"]) == .openSSL)
        #expect(MachineKind(kernels: ["libcrypto"]) == .openSSL)
    }

    @Test("Every kernel that this machine can run has rows of its own")
    func kernelRows() {
        let names = Set(kernelBenchmarks.map(\.name))
        #expect(names.count == kernelBenchmarks.count)
        for kernel in Kernel.runnable(with: .permitted) {
            let prefixes =
                kernel.kind == .hashing
                ? ["sha256.node"] : ["signature.new.b8", "signature.new.b256", "signature.known.b256"]
            for prefix in prefixes { #expect(names.contains("\(prefix).\(kernel.shortName)"), "\(kernel.name)") }
        }
        #expect(Set(allBenchmarks.map(\.name)).isSuperset(of: names))
    }

    @Test("A document that is read and written again is the same")
    func roundTrip() {
        var document = ResultsDocument(facts: [("processor", "Abacus"), ("cores", "2")])
        document.set(measurement("b", 12_345), about: "second")
        document.set(measurement("a", 1), about: "first")
        document.setSection("A sweep", "Text.\n\n| x | y |\n| --- | --- |\n| 1 |  |")
        document.order(benchmarks: ["`a`", "`b`"], sections: ["A sweep"])
        let text = document.text()
        #expect(ResultsDocument(parsing: text).text() == text)
        #expect(document.rows.map { $0["name"] } == ["`a`", "`b`"])
        #expect(ResultsDocument(parsing: text).row("b")?["value"] == "12,300")
        // What is measured again replaces what was there.
        var again = ResultsDocument(parsing: text)
        again.set(measurement("b", 7), about: "second")
        again.setSection("A sweep", "New.")
        #expect(again.rows.count == 2 && again.sections.map(\.body) == ["New."])
        #expect(again.row("b")?["value"] == "7.00" && again.row("a")?["value"] == "1.00")
    }

    @Test("A README without its two marks in order is refused, and the rest of it stays as it is")
    func marks() throws {
        let (begin, end) = (ReadmeFigures.beginMark, ReadmeFigures.endMark)
        for text in ["", begin, end, "\(end)\n\(begin)", "\(begin)\n\(end)\n\(end)"] {
            #expect(throws: ReportError.self) { try ReadmeFigures.replace(in: text, with: "new") }
        }
        #expect(
            try ReadmeFigures.replace(in: "before\n\(begin)\nold\n\(end)\nafter", with: "new") == "before\nnew\nafter")
        #expect(throws: ReportError.self) { try ReadmeFigures.region(from: []) }
        let empty = MachineResults(kind: .openSSL, document: ResultsDocument(facts: []))
        #expect(throws: ReportError.self) { try ReadmeFigures.region(from: [empty]) }
    }

    private func measurement(_ name: String, _ value: Double) -> rootgate_bench.Measurement {
        rootgate_bench.Measurement(
            name, unit: "items/s", rounds: [(value, 2 * value)], against: "baseline", conditions: "one core")
    }
}
