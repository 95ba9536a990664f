extension Int {
    /// With the thousands apart: 1,234,567.
    package var inThousands: String {
        let digits = Array(String(magnitude))
        let text = digits.enumerated().map { index, digit in
            index > 0 && (digits.count - index) % 3 == 0 ? ",\(digit)" : "\(digit)"
        }.joined()
        return self < 0 ? "-\(text)" : text
    }
}
