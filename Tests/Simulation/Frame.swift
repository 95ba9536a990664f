/// Bytes of a request, as PROTOCOL.md writes them.
struct RequestBytes {
    private(set) var bytes: [UInt8] = []

    mutating func add(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func add(bytes more: [UInt8]) { bytes += more }

    /// A length byte and the bytes.
    mutating func add(short text: [UInt8]) {
        bytes.append(UInt8(text.count))
        bytes += text
    }

    static func frame(_ operation: UInt16, _ identifier: UInt64, _ body: [UInt8]) -> [UInt8] {
        var frame = RequestBytes()
        frame.add(UInt32(body.count))
        frame.bytes += [1, 1]
        frame.add(operation)
        frame.add(identifier)
        return frame.bytes + body
    }
}

/// Reads an answer's body.
struct AnswerBytes {
    private let bytes: ArraySlice<UInt8>
    private var place: Int

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        place = bytes.startIndex
    }

    var rest: Int { bytes.endIndex - place }

    mutating func number<N: FixedWidthInteger>(_: N.Type = N.self) throws -> N {
        let taken = try take(MemoryLayout<N>.size)
        return taken.reversed().reduce(N(0)) { $0 << 8 | N(truncatingIfNeeded: $1) }
    }

    mutating func take(_ count: Int) throws -> ArraySlice<UInt8> {
        guard count <= rest else { throw Violation("an answer is too short") }
        defer { place += count }
        return bytes[place..<place + count]
    }

    mutating func short() throws -> ArraySlice<UInt8> { try take(Int(number(UInt8.self))) }
}

/// The operations of PROTOCOL.md.
enum Code {
    static let hello: UInt16 = 0x01
    static let ping: UInt16 = 0x02
    static let challenges: UInt16 = 0x03
    static let verify: UInt16 = 0x10
    static let inclusion: UInt16 = 0x11
    static let add: UInt16 = 0x20
    static let remove: UInt16 = 0x21
    static let test: UInt16 = 0x22
    static let list: UInt16 = 0x23
    static let count: UInt16 = 0x24
    static let create: UInt16 = 0x30
    static let drop: UInt16 = 0x31
    static let collaborations: UInt16 = 0x32
    static let statistics: UInt16 = 0x40
    static let changes: UInt16 = 0x41
    static let collaborate: UInt16 = 0x80
    static let open: UInt16 = 0x81
    static let check: UInt16 = 0x82

    /// The role that an operation needs; `nil`: none, or that depends on the request.
    static func role(of operation: UInt16) -> Role? {
        switch operation {
        case challenges, verify, inclusion, open, check: .verify
        case add, remove, create, drop: .enrol
        case test, list, count, collaborations, statistics, changes: .observe
        default: nil
        }
    }
}
