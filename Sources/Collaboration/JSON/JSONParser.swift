import Core

/// Reads a JSON text by the grammar of RFC 8259 and nothing else: UTF-8 without a byte-order mark, no trailing commas,
/// no comments. A name that stands twice in an object and half of a surrogate pair are refused too.
struct JSONParser {
    private var tree: JSONTree
    private var position = 0
    private var depth = 0
    private var bytes: [UInt8] { tree.bytes }

    /// Members of an object up to which a new name is compared with each one before it.
    private static let comparedMembersMax = 16

    /// Throws `malformedRequest`, or `limitExceeded` when values are nested too deeply. The reason says where.
    static func parse(_ bytes: [UInt8]) throws(ServiceError) -> JSONTree {
        try checkLimit(bytes.count, Int(Int32.max), "bytes of JSON")
        var parser = JSONParser(tree: JSONTree(bytes: bytes))
        parser.tree.nodes.reserveCapacity(bytes.count / 8 + 1)
        parser.skipSpace()
        try parser.value()
        parser.skipSpace()
        guard parser.position == bytes.count else { throw parser.failure("something follows the value") }
        return parser.tree
    }

    private init(tree: JSONTree) {
        self.tree = tree
    }

    private var byte: UInt8? {
        @inline(__always) get { position < tree.bytes.count ? tree.bytes[position] : nil }
    }

    private func failure(_ what: String) -> ServiceError {
        ServiceError(.malformedRequest, "the JSON can't be read: at byte \(position) \(what)")
    }

    private mutating func skipSpace() {
        while let byte, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 { position += 1 }
    }

    /// Reads a character that has to be here.
    private mutating func expect(_ character: Unicode.Scalar) throws(ServiceError) {
        guard byte == UInt8(ascii: character) else {
            throw failure(byte == nil ? "the text ends, where “\(character)” is missing" : "“\(character)” is missing")
        }
        position += 1
    }

    private mutating func value() throws(ServiceError) {
        guard let first = byte else { throw failure("the text ends, where a value is missing") }
        switch first {
        case UInt8(ascii: "{"): try object()
        case UInt8(ascii: "["): try array()
        case UInt8(ascii: "\""): try text(.text, escaped: .escapedText)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try number()
        case UInt8(ascii: "t"): try word("true", .true)
        case UInt8(ascii: "f"): try word("false", .false)
        case UInt8(ascii: "n"): try word("null", .null)
        case 0xef where bytes[position...].starts(with: [0xef, 0xbb, 0xbf]):
            throw failure("there is a byte-order mark")
        default: throw failure("a value is missing")
        }
    }

    private mutating func append(_ kind: JSONTree.Kind, from start: Int) {
        tree.nodes.append(
            JSONTree.Node(
                kind: kind, start: UInt32(start), end: UInt32(position), next: UInt32(tree.nodes.count + 1)))
    }

    private mutating func word(_ word: StaticString, _ kind: JSONTree.Kind) throws(ServiceError) {
        let count = word.utf8CodeUnitCount
        let isThere = word.withUTF8Buffer { bytes[position...].starts(with: $0) }
        guard isThere else { throw failure("a value is missing") }
        position += count
        append(kind, from: position - count)
    }

    // MARK: Numbers

    private mutating func digits() throws(ServiceError) {
        let start = position
        while let byte, 0x30...0x39 ~= byte { position += 1 }
        guard position > start else { throw failure("a digit is missing") }
    }

    private mutating func number() throws(ServiceError) {
        let start = position
        if byte == UInt8(ascii: "-") { position += 1 }
        if byte == UInt8(ascii: "0") {
            position += 1
            if let byte, 0x30...0x39 ~= byte { throw failure("a digit follows a zero that begins a number") }
        } else {
            try digits()
        }
        var kind = JSONTree.Kind.integer
        if byte == UInt8(ascii: ".") {
            kind = .fraction
            position += 1
            try digits()
        }
        if byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E") {
            kind = .fraction
            position += 1
            if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
        append(kind, from: start)
    }

    // MARK: Texts

    private mutating func text(_ plain: JSONTree.Kind, escaped: JSONTree.Kind) throws(ServiceError) {
        position += 1
        let start = position
        var kind = plain
        while let next = byte {
            switch next {
            case UInt8(ascii: "\""):
                append(kind, from: start)
                position += 1
                return
            case UInt8(ascii: "\\"):
                kind = escaped
                try escape()
            case 0..<0x20: throw failure("a control character in a text is not escaped")
            case 0x20..<0x80: position += 1
            default: position += try sequenceLength()
            }
        }
        throw failure("the text ends inside of quotation marks")
    }

    private mutating func escape() throws(ServiceError) {
        let start = position
        position += 1
        switch byte {
        case UInt8(ascii: "u"):
            let unit = try codeUnit()
            guard 0xd800...0xdfff ~= unit else { return }
            if unit < 0xdc00, byte == UInt8(ascii: "\\") {
                position += 1
                if byte == UInt8(ascii: "u"), 0xdc00...0xdfff ~= (try codeUnit()) { return }
            }
            position = start
            throw failure("an escape sequence is half of a surrogate pair")
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 1
        default:
            position = start
            throw failure("there is an escape sequence that JSON does not have")
        }
    }

    /// The number behind `\`: `u` and four hexadecimal digits.
    private mutating func codeUnit() throws(ServiceError) -> UInt32 {
        position += 1
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let byte, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw failure("a hexadecimal digit is missing")
            }
            unit = unit << 4 | UInt32(digit)
            position += 1
        }
        return unit
    }

    /// Bytes of the character of several bytes that begins here (RFC 3629, section 4).
    private func sequenceLength() throws(ServiceError) -> Int {
        let tail: Int
        var second: ClosedRange<UInt8> = 0x80...0xbf
        switch bytes[position] {
        case 0xc2...0xdf: tail = 1
        case 0xe0: (tail, second) = (2, 0xa0...0xbf)
        case 0xed: (tail, second) = (2, 0x80...0x9f)
        case 0xe1...0xef: tail = 2
        case 0xf0: (tail, second) = (3, 0x90...0xbf)
        case 0xf1...0xf3: tail = 3
        case 0xf4: (tail, second) = (3, 0x80...0x8f)
        default: throw failure("a text is not UTF-8")
        }
        guard bytes.count - position > tail, second ~= bytes[position + 1],
            bytes[position + 1...position + tail].allSatisfy({ 0x80...0xbf ~= $0 })
        else { throw failure("a text is not UTF-8") }
        return 1 + tail
    }

    // MARK: Arrays and objects

    /// Begins an array or an object.
    private mutating func beginContainer(_ kind: JSONTree.Kind) throws(ServiceError) -> Int {
        depth += 1
        guard depth <= Limits.jsonDepthMax else {
            throw ServiceError(
                .limitExceeded, detail: UInt32(Limits.jsonDepthMax),
                "the JSON can't be read: at byte \(position) values are nested more than \(Limits.jsonDepthMax) deep")
        }
        let node = tree.nodes.count
        tree.nodes.append(JSONTree.Node(kind: kind, start: UInt32(position), end: 0))
        position += 1
        skipSpace()
        return node
    }

    private mutating func endContainer(_ node: Int, count: Int) {
        position += 1
        depth -= 1
        tree.nodes[node].end = UInt32(position)
        tree.nodes[node].next = UInt32(tree.nodes.count)
        tree.nodes[node].count = UInt32(count)
        tree.nodes[node].cursor = UInt32(node + 1)
    }

    /// Whether a comma follows, which is read with the white space around it.
    private mutating func takeComma() -> Bool {
        skipSpace()
        guard byte == UInt8(ascii: ",") else { return false }
        position += 1
        skipSpace()
        return true
    }

    private mutating func array() throws(ServiceError) {
        let node = try beginContainer(.array)
        var count = 0
        if byte != UInt8(ascii: "]") {
            repeat {
                try value()
                count += 1
            } while takeComma()
            guard byte == UInt8(ascii: "]") else { throw failure("“,” or “]” is missing") }
        }
        endContainer(node, count: count)
    }

    private mutating func object() throws(ServiceError) {
        let node = try beginContainer(.object)
        var count = 0
        if byte != UInt8(ascii: "}") {
            repeat {
                guard byte == UInt8(ascii: "\"") else { throw failure("a name in quotation marks is missing") }
                let name = tree.nodes.count
                try text(.name, escaped: .escapedName)
                if count < JSONParser.comparedMembersMax { try compare(name, in: node, count) }
                skipSpace()
                try expect(":")
                skipSpace()
                try value()
                count += 1
            } while takeComma()
            guard byte == UInt8(ascii: "}") else { throw failure("“,” or “}” is missing") }
            if count > JSONParser.comparedMembersMax { try compareAll(in: node, count) }
        }
        endContainer(node, count: count)
    }

    /// Compares a name with those before it in the object.
    private func compare(_ name: Int, in object: Int, _ count: Int) throws(ServiceError) {
        guard count > 0 else { return }
        let bytes = tree.nameBytes(name)
        var other = object + 1
        for _ in 0..<count {
            if tree.nameBytes(other) == bytes { throw repeated(name) }
            other = tree.end(of: other + 1)
        }
    }

    /// Compares all names of an object with each other.
    private func compareAll(in object: Int, _ count: Int) throws(ServiceError) {
        var names: [(bytes: ArraySlice<UInt8>, node: Int)] = []
        names.reserveCapacity(count)
        var name = object + 1
        for _ in 0..<count {
            names.append((tree.nameBytes(name), name))
            name = tree.end(of: name + 1)
        }
        names.sort { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        for (one, other) in zip(names, names.dropFirst()) where one.bytes == other.bytes {
            throw repeated(max(one.node, other.node))
        }
    }

    private func repeated(_ name: Int) -> ServiceError {
        let path = tree.path(to: name).map { $0 as any CodingKey }.shown
        return ServiceError(
            .malformedRequest,
            "the JSON can't be read: \(path) is given twice, again at byte \(tree.nodes[name].start)")
    }
}
