import Core
import TestSupport
import Testing

@Suite("Rate limits") struct TokenBucketTests {
    @Test("A burst is there at once, and then tokens come at the rate")
    func rate() {
        var bucket = TokenBucket(tokensPerSecond: 10, burst: 5, at: 0)
        for number in 0..<5 { #expect(bucket.take(1, at: 0) == nil, "token \(number)") }
        #expect(bucket.take(1, at: 0) == 100)
        #expect(bucket.take(1, at: 99) == 1)
        #expect(bucket.take(1, at: 100) == nil)
        #expect(bucket.take(1, at: 100) == 100)
        // After a long time there is the burst and no more.
        for _ in 0..<5 { #expect(bucket.take(1, at: 1_000_000) == nil) }
        #expect(bucket.take(1, at: 1_000_000) == 100)
    }

    @Test("More than the burst is possible, and leaves a debt that is paid first")
    func debt() {
        var bucket = TokenBucket(tokensPerSecond: 10, burst: 10, at: 0)
        #expect(bucket.take(4096, at: 0) == nil)
        let wait = UInt64(4096 - 10 + 1) * 100
        #expect(bucket.wait(at: 0) == wait)
        #expect(bucket.take(1, at: wait - 1) == 1)
        #expect(bucket.take(1, at: wait) == nil)
    }

    @Test("Another rate keeps the debt, and no more than the new burst")
    func resized() {
        var bucket = TokenBucket(tokensPerSecond: 1000, burst: 1000, at: 0)
        var smaller = bucket.resized(tokensPerSecond: 2, burst: 2, at: 0)
        #expect(smaller.take(2, at: 0) == nil)
        #expect(smaller.take(1, at: 0) == 500)
        #expect(bucket.take(1100, at: 0) == nil)
        #expect(bucket.resized(tokensPerSecond: 1, burst: 1, at: 0).wait(at: 0) == 101_000)
        #expect(bucket.resized(tokensPerSecond: 1_000_000, burst: 1_000_000, at: 0).wait(at: 0) == 1)
    }

    @Test("The highest rates and the longest times overflow nothing")
    func extremes() {
        let most = Limits.principalLimitMax
        var bucket = TokenBucket(tokensPerSecond: most, burst: most, at: .max - 1)
        #expect(bucket.take(most, at: .max - 1) == nil)
        #expect(bucket.take(most, at: .max) == nil)
        var slow = TokenBucket(tokensPerSecond: 1, burst: 1, at: 0)
        #expect(slow.take(most, at: 0) == nil)
        #expect(slow.wait(at: 0) == UInt64(most) * 1000)
        #expect(slow.wait(at: .max) == nil)
        // A clock that is read by several threads may seem to go back.
        #expect(bucket.wait(at: 0) != nil)
    }

    @Test("In any stretch of time no more is taken than the rate, the burst and one request")
    func random() {
        var random = SeededGenerator(seed: runSeed)
        for _ in 0..<50 {
            let rate = Int.random(in: 1...2000, using: &random)
            let burst = Int.random(in: 1...2000, using: &random)
            var bucket = TokenBucket(tokensPerSecond: rate, burst: burst, at: 0)
            var (now, taken, largest) = (UInt64(0), 0, 0)
            for _ in 0..<500 {
                let count = Int.random(in: 1...50, using: &random)
                if bucket.take(count, at: now) == nil {
                    taken += count
                    largest = max(largest, count)
                } else if let wait = bucket.wait(at: now), wait > 1 {
                    #expect(bucket.wait(at: now + wait) == nil, "seed \(runSeed)")
                    #expect(bucket.wait(at: now + wait - 1) != nil, "seed \(runSeed)")
                }
                #expect(taken <= burst + largest + Int(now) * rate / 1000, "seed \(runSeed)")
                now += UInt64.random(in: 0...20, using: &random)
            }
        }
    }

    @Test("An error says how long to wait if it is busy and knows")
    func retryAfter() {
        #expect(ServiceError(.busy, detail: 250, "x").retryAfter == .milliseconds(250))
        #expect(ServiceError(.busy, "x").retryAfter == nil)
        #expect(ServiceError(.limitExceeded, detail: 250, "x").retryAfter == nil)
    }
}
