import Core
@testable import RootSets
import TestSupport
import Testing

@Suite("Packed roots")
struct PackedRootsTests {
    /// A root whose first eight bytes, big-endian, are `prefix`.
    private func root(_ prefix: UInt64, _ rest: UInt8 = 0) throws -> Digest {
        let bytes = withUnsafeBytes(of: prefix.bigEndian) { Array($0) } + [UInt8](repeating: rest, count: 24)
        return try #require(Digest(bytes))
    }

    @Test("From every guess, the search finds what a walk from the beginning finds")
    func guesses() throws {
        var random = SeededGenerator(seed: runSeed)
        for count in 0...66 {
            // Few different prefixes, so that some are equal and the rest of the root decides.
            let roots = try (0..<count).map { _ in
                try root(.random(in: 1...40, using: &random), .random(in: 0...3, using: &random))
            }.sorted()
            try roots.flatMap(\.bytes).withRawBytes { bytes in
                let packed = PackedRoots(bytes)
                for prefix in UInt64(0)...41 {
                    let wanted = try root(prefix, .random(in: 0...3, using: &random))
                    let expected = roots.firstIndex { $0 >= wanted } ?? count
                    #expect(packed.lowerBound(of: wanted) == expected, "seed \(runSeed), \(count) roots")
                    for guess in 0...count {
                        #expect(
                            packed.lowerBound(of: wanted, near: guess) == expected,
                            "seed \(runSeed), \(count) roots, from \(guess)")
                    }
                    #expect(
                        packed.contains(wanted, near: 0) == roots.contains(wanted), "seed \(runSeed), \(count) roots")
                }
            }
        }
    }

    @Test("A guess at a neighbourhood stays inside the bucket, wherever the root is between its bounds")
    func neighbourhoods() throws {
        let roots = try (0..<50).map { try root(1000 + 20 * $0) }.flatMap(\.bytes)
        try roots.withRawBytes { bytes in
            let buckets: [(bound: UInt64, value: UnsafeRawBufferPointer)] = [
                (1999, bytes), (2000, UnsafeRawBufferPointer(rebasing: bytes[..<32])),
                (.max, UnsafeRawBufferPointer(rebasing: bytes[..<0])),
            ]
            let directory = try #require(BucketDirectory(buckets, version: .initial))
            for (prefix, count) in [(0, 50), (1000, 50), (1500, 50), (1999, 50), (2000, 1), (2001, 0), (.max, 0)]
                as [(UInt64, Int)]
            {
                let place = try #require(directory.neighbourhood(of: prefix))
                #expect(place.roots.count == count, "\(prefix)")
                #expect((0...max(0, count - 1)).contains(place.position), "\(prefix)")
                #expect(!place.roots.contains(try root(prefix, 9), near: place.position))
            }
            #expect(directory.neighbourhood(of: 1500).map { $0.position } == 37)
        }
    }
}
