/// A JSON text that was read: its values in their order, each of an object's values behind its name.
struct JSONTree {
    /// What a node is. Texts and names with escape sequences are kinds of their own, because they are read differently.
    enum Kind: UInt8 {
        case null, `true`, `false`
        /// A number without a fraction and an exponent.
        case integer
        /// Any other number.
        case fraction
        case text, escapedText
        /// The name of the value that follows.
        case name, escapedName
        case array, object
    }

    /// A value or a name.
    struct Node {
        let kind: Kind
        /// Whether a name was asked for.
        var isAsked = false
        /// The first byte, for texts behind the quotation mark.
        let start: UInt32
        /// Behind the last byte, for texts before the quotation mark.
        var end: UInt32
        /// The node behind this one and everything in it; 0 while it is being read.
        var next: UInt32 = 0
        /// Elements or members.
        var count: UInt32 = 0
        /// For an object: where the next search for a name begins.
        var cursor: UInt32 = 0
    }

    let bytes: [UInt8]
    var nodes: [Node] = []

    /// The node behind a value, which may not have been read to its end.
    func end(of node: Int) -> Int {
        let next = nodes[node].next
        return next == 0 ? .max : Int(next)
    }

    /// The text of a text or a name.
    func text(_ node: Int) -> String {
        let node = nodes[node]
        let raw = bytes[Int(node.start)..<Int(node.end)]
        guard node.kind == .escapedText || node.kind == .escapedName else {
            return String(decoding: raw, as: UTF8.self)
        }
        return String(decoding: JSONTree.unescaped(raw), as: UTF8.self)
    }

    /// The bytes of a name.
    func nameBytes(_ node: Int) -> ArraySlice<UInt8> {
        let raw = bytes[Int(nodes[node].start)..<Int(nodes[node].end)]
        return nodes[node].kind == .escapedName ? JSONTree.unescaped(raw)[...] : raw
    }

    /// Whether a name is this one, byte by byte.
    func isName(_ node: Int, _ name: String) -> Bool {
        let count = Int(nodes[node].end - nodes[node].start)
        if nodes[node].kind == .name, count != name.utf8.count { return false }
        return name.utf8.elementsEqual(nameBytes(node))
    }

    /// The value of an integer; `nil` when the type does not have it.
    func integer<Value: FixedWidthInteger>(_ node: Int) -> Value? {
        var digits = bytes[Int(nodes[node].start)..<Int(nodes[node].end)]
        let isNegative = digits.first == UInt8(ascii: "-")
        if isNegative { digits.removeFirst() }
        var value: Value = 0
        for digit in digits {
            let (product, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            guard !isTooLarge, let digit = Value(exactly: digit - UInt8(ascii: "0")) else { return nil }
            let (sum, isOver) =
                isNegative ? product.subtractingReportingOverflow(digit) : product.addingReportingOverflow(digit)
            guard !isOver else { return nil }
            value = sum
        }
        return value
    }

    /// What a text with escape sequences says. The sequences were checked.
    private static func unescaped(_ raw: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(raw.count)
        var rest = raw
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let kind = rest.popFirst() else {
                result.append(byte)
                continue
            }
            switch kind {
            case UInt8(ascii: "b"): result.append(0x08)
            case UInt8(ascii: "f"): result.append(0x0c)
            case UInt8(ascii: "n"): result.append(0x0a)
            case UInt8(ascii: "r"): result.append(0x0d)
            case UInt8(ascii: "t"): result.append(0x09)
            case UInt8(ascii: "u"):
                var code = hexadecimal(rest.prefix(4))
                rest.removeFirst(4)
                if 0xd800...0xdbff ~= code {
                    code = 0x10000 + (code - 0xd800) << 10 + (hexadecimal(rest.dropFirst(2).prefix(4)) - 0xdc00)
                    rest.removeFirst(6)
                }
                if let scalar = Unicode.Scalar(code) {
                    result += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
                }
            default: result.append(kind)
            }
        }
        return result
    }

    private static func hexadecimal(_ digits: ArraySlice<UInt8>) -> UInt32 {
        digits.reduce(0) { $0 << 4 | UInt32($1 & 15) + ($1 > UInt8(ascii: "9") ? 9 : 0) }
    }
}
