/// The fields of a form or of a query, as browsers encode them (application/x-www-form-urlencoded).
struct FormFields: Equatable, Sendable {
    private let fields: [(name: String, value: String)]

    /// `nil` when a percent sign is not followed by two hexadecimal digits, or when a name or a value is not UTF-8.
    init?(_ bytes: some Collection<UInt8>) {
        var fields: [(name: String, value: String)] = []
        for part in bytes.split(separator: UInt8(ascii: "&")) {
            let halves = part.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = FormFields.decoded(halves[0]),
                let value = halves.count == 2 ? FormFields.decoded(halves[1]) : ""
            else { return nil }
            fields.append((name, value))
        }
        self.fields = fields
    }

    /// The first value of that name; `nil` when there is none.
    subscript(_ name: String) -> String? { fields.first { $0.name == name }?.value }

    static func == (a: FormFields, b: FormFields) -> Bool { a.fields.elementsEqual(b.fields, by: ==) }

    private static func decoded(_ bytes: some Collection<UInt8>) -> String? {
        var plain: [UInt8] = []
        plain.reserveCapacity(bytes.count)
        var rest = Array(bytes)[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): plain.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                    return nil
                }
                plain.append(high << 4 | low)
            default: plain.append(byte)
            }
        }
        return String(validating: plain, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
    }

    /// A text as a value in a query, or as a part of one.
    static func encoded(_ text: String) -> String {
        let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)
        let digits = Array("0123456789ABCDEF".utf8)
        let bytes = text.utf8.flatMap { byte in
            plain.contains(byte) ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
