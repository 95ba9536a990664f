extension Unicode.Scalar {
    /// Whether the scalar steers a terminal or the layout of a line, where a name or a message should only be shown:
    /// control characters (U+0000 to U+001F, U+007F to U+009F), the line separators U+2028 and U+2029, and the
    /// bidirectional controls U+202A to U+202E and U+2066 to U+2069.
    package var isControl: Bool {
        switch value {
        case 0...0x1f, 0x7f...0x9f, 0x2028...0x202e, 0x2066...0x2069: true
        default: false
        }
    }

    /// Four hexadecimal digits or more, as in U+202E.
    package var hexadecimalDigits: String {
        let digits = String(value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
