extension Collection<UInt8> {
    /// Lower-case hexadecimal, two characters a byte.
    public var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(unsafeUninitializedCapacity: count * 2) { buffer in
            var end = 0
            for byte in self {
                buffer[end] = digits[Int(byte >> 4)]
                buffer[end + 1] = digits[Int(byte & 15)]
                end += 2
            }
            return end
        }
    }
}

extension [UInt8] {
    /// Reads hexadecimal of either case without separators; `nil` for anything else.
    public init?(hexadecimal text: some StringProtocol) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count / 2)
        var high: UInt8?
        for character in text.utf8 {
            let digit: UInt8
            switch character {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = character - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = character - UInt8(ascii: "A") + 10
            default: return nil
            }
            if let upper = high {
                bytes.append(upper << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        guard high == nil else { return nil }
        self = bytes
    }
}
