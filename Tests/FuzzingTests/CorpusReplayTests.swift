import Core
import Foundation
import TestSupport
import Testing

/// What a fuzzer has found stays found: the corpora are run again, with the seeds and with random changes of both.
@Suite("Bytes from outside", .serialized)
struct CorpusReplayTests {
    private static let names = FuzzSubject.all.map(\.name)

    private func subject(_ name: String) throws -> FuzzSubject {
        try #require(FuzzSubject.all.first { $0.name == name })
    }

    /// The result of one input, for the report.
    private func check(_ subject: FuzzSubject, _ bytes: [UInt8], _ origin: String) {
        do {
            // A copy of its own, so that a reader beyond the end leaves memory that an AddressSanitizer knows.
            try [UInt8](bytes).withUnsafeBytes { try subject.run($0) }
        } catch {
            Issue.record("\(subject.name), \(origin), \(bytes.hexadecimal): \(error)")
        }
    }

    @Test("Seeds and corpora have every property of their subject", arguments: names)
    func replay(name: String) throws {
        let subject = try subject(name)
        let seeds = try subject.seeds()
        #expect(!seeds.isEmpty)
        for (index, seed) in seeds.enumerated() { check(subject, seed, "seed \(index)") }
        for (name, bytes) in try subject.corpus() { check(subject, bytes, name) }
        check(subject, [], "nothing")
    }

    @Test("Random changes of seeds and corpora have every property of their subject", arguments: names)
    func changes(name: String) throws {
        let subject = try subject(name)
        let inputs = try subject.seeds() + subject.corpus().map(\.bytes)
        var generator = SeededGenerator(seed: runSeed)
        for count in 0..<400 {
            var bytes = inputs.randomElement(using: &generator) ?? []
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                change(&bytes, with: inputs.randomElement(using: &generator) ?? [], &generator)
            }
            check(subject, Array(bytes.prefix(subject.bytesMax)), "change \(count) of seed \(runSeed)")
        }
    }

    /// Changes some bytes: flips a bit, removes, repeats or replaces bytes, or takes some of another input.
    private func change(_ bytes: inout [UInt8], with other: [UInt8], _ generator: inout SeededGenerator) {
        let start = Int.random(in: 0...bytes.count, using: &generator)
        let end = min(bytes.count, start + Int.random(in: 0...12, using: &generator))
        switch Int.random(in: 0..<6, using: &generator) {
        case 0 where start < bytes.count: bytes[start] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        case 1: bytes.removeSubrange(start..<end)
        case 2: bytes.insert(contentsOf: bytes[start..<end], at: start)
        case 3 where start < bytes.count:
            bytes[start] = [0, 1, 0x7f, 0x80, 0xff].randomElement(using: &generator) ?? 0
        case 4: bytes.replaceSubrange(start..<end, with: generator.bytes(Int.random(in: 0...4, using: &generator)))
        default: bytes.replaceSubrange(start..<end, with: other.dropFirst(start).prefix(12))
        }
    }

    @Test("Each subject has inputs that fuzzing has kept, none of them twice")
    func reached() throws {
        for subject in FuzzSubject.all {
            let inputs = try subject.corpus().filter { $0.name.hasPrefix(subject.reached) }.map(\.bytes)
            #expect(!inputs.isEmpty && Set(inputs).count == inputs.count, "\(subject.name)")
            #expect(inputs.allSatisfy { $0.count <= subject.bytesMax }, "\(subject.name)")
        }
    }

    @Test("Every subject has a folder of the corpora, nothing else has one, and subjects have names of their own")
    func folders() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: FuzzSubject.corpora.path)
        #expect(Set(folders) == Set(Self.names))
        #expect(Set(Self.names).count == Self.names.count)
    }
}
