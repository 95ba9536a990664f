import LoadHarness
import Testing

@Suite struct WorkSharesTests {
    @Test("Parts of the work share it by what they take")
    func shares() {
        var shares = WorkShares(total: 10)
        #expect(shares.next(2) == 0...0.2)
        #expect(shares.next(8) == 0.2...1)
        // More than was expected stays within the whole.
        #expect(shares.next(1) == 1...1)
        #expect(shares.next(1) == 1...1)
    }
}
