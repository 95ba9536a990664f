import Foundation

/// Base64 with the alphabet for links and file names, without padding (RFC 4648, section 5).
package enum Base64URL {
    /// Whether the byte is one of the alphabet's 64 characters: a letter, a digit, - or _.
    package static func isDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    package static func text(_ bytes: [UInt8]) -> String {
        let standard = Data(bytes).base64EncodedData().prefix { $0 != UInt8(ascii: "=") }
        return String(
            decoding: standard.map { byte in
                switch byte {
                case UInt8(ascii: "+"): UInt8(ascii: "-")
                case UInt8(ascii: "/"): UInt8(ascii: "_")
                default: byte
                }
            }, as: UTF8.self)
    }

    /// `nil` unless `text` is exactly what `Base64URL.text` makes of some bytes.
    package static func bytes(_ text: String) -> [UInt8]? {
        let standard = text.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: byte
            }
        }
        let padding = repeatElement(UInt8(ascii: "="), count: (4 - standard.count % 4) % 4)
        guard let bytes = Data(base64Encoded: Data(standard + padding)).map(Array.init), Base64URL.text(bytes) == text
        else { return nil }
        return bytes
    }
}
