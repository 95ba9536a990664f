import Testing

@testable import rootgate_bench

@Suite struct NumbersTests {
    @Test(
        "Figures are rounded to three digits",
        arguments: [
            (0, "0"), (0.01234, "0.0123"), (1.5, "1.50"), (99.99, "100"), (123.4, "123"), (44_234, "44,200"),
            (1_234_567, "1,230,000"),
        ])
    func rounding(value: Double, text: String) {
        #expect(rounded(value) == text)
    }
}
