extension UInt64 {
    /// Nanoseconds as milliseconds, with three digits behind the point.
    package var asMilliseconds: String {
        let digits = String(self / 1000 % 1000)
        return "\(self / 1_000_000)." + String(repeating: "0", count: 3 - digits.count) + digits
    }
}
