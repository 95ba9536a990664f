import Core
import Testing

@testable import Verification

@Suite struct SlowPassLogTests {
    /// The lines that passes of one stage each with these lengths, in nanoseconds, leave in a log of two milliseconds.
    private func lines(of lengths: [UInt64]) -> [String] {
        let time = Lock<UInt64>(0)
        let lines = Lock<[String]>([])
        let log = SlowPassLog(
            milliseconds: 2, now: { time.withLock { $0 } }, log: Log { line in lines.withLock { $0.append(line.text) } }
        )
        var stopwatch = SlowPassLog.Stopwatch(log)
        for length in lengths {
            stopwatch.start()
            time.withLock { $0 += 1500 }
            stopwatch.lap(.shape)
            time.withLock { $0 += length - 1500 }
            stopwatch.lap(.signature)
            stopwatch.finish(256)
        }
        return lines.withLock { $0 }
    }

    @Test("A pass that takes longer is reported with its stages, one that takes as long is not")
    func threshold() {
        #expect(lines(of: [2_000_000]).isEmpty)
        let line = "slow: a pass of 256 proofs took 2.001 ms: shape 0.001, signature 1.999"
        #expect(lines(of: [1_000_000, 2_001_000, 2_000_000]) == [line])
    }

    @Test("A verifier reports the stages of both kinds of passes, and nothing without a log")
    func verifier() throws {
        let lines = Lock<[String]>([])
        let time = Lock<UInt64>(0)
        let log = SlowPassLog(
            milliseconds: 0,
            now: {
                time.withLock { time in
                    time += 1000
                    return time
                }
            }, log: Log { line in lines.withLock { $0.append(line.text) } })
        let fixture = try Fixture()
        let quiet = fixture.resources
        let loud = VerificationResources(
            rootSets: quiet.rootSets, challenges: quiet.challenges, nonces: quiet.nonces,
            signatures: quiet.signatures, slowPasses: log)
        for resources in [quiet, loud] {
            let verifier = try BatchVerifier(resources)
            let (nothing, verdicts, roots) = (
                UnsafeBufferPointer<BorrowedProof>(start: nil, count: 0),
                UnsafeMutableBufferPointer<Verdict>(start: nil, count: 0),
                UnsafeMutableBufferPointer<Digest>(start: nil, count: 0)
            )
            try verifier.verify(nothing, verdicts: verdicts, roots: roots)
            try verifier.verifyInclusion(nothing, verdicts: verdicts, roots: roots)
        }
        let stages = lines.withLock { $0 }.map { line in
            line.split(separator: ": ").last?.split(separator: ", ").map { $0.prefix { $0 != " " } } ?? []
        }
        #expect(
            stages == [
                ["shape", "collaboration", "challenge", "root", "membership", "signature", "spend"],
                ["shape", "collaboration", "root", "membership"],
            ])
    }
}
