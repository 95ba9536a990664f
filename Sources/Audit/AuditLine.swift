package import Core
import Foundation
package import Hashing

/// One line of an audit, which is JSON. Each line names the SHA-256 of the line before it, without its line feed, and
/// ends with a tag:
///
///     {"n":7,"at":"2026-11-22T09:00:00.000Z","kind":"mutation","who":"anonymous","peer":"127.0.0.1:40000",
///      "what":"addRoots","collaboration":"deck-42","sequence":12,"outcome":"done",
///      "key":"5d0e...","before":"9f86...","tag":"c1a5..."}
///
/// (in one line, without spaces between). The tag is HMAC-SHA256 of the bytes before `,"tag"`, cut to 16 bytes, under
/// the audit key of the generation of the root secret that `key` names. So a genuine tag vouches for its own line and,
/// through the hashes, for every line before it.
package struct AuditLine: Equatable, Sendable {
    /// The line's number, from 1, without gaps.
    package let number: UInt64
    /// The name of the generation of the secret.
    package let key: String
    /// The SHA-256 of the line before; zeros for the first line.
    package let before: Digest
    package let tag: [UInt8]
    /// What the line says about the change log, if anything.
    package let sequence: UInt64?
    package let operation: String
    /// The SHA-256 of this line.
    package let hash: Digest
    /// How many of the line's bytes the tag covers.
    let signedBytes: Int

    static let tagBytes = 16
    private static let numberHead = Array(#"{"n":"#.utf8)
    private static let keyHead = Array(#","key":""#.utf8)
    private static let beforeHead = Array(#"","before":""#.utf8)
    private static let tagHead = Array(#"","tag":""#.utf8)
    private static let end = Array(#""}"#.utf8)

    // MARK: Writing

    /// The bytes of a record's line, without a line feed.
    package static func bytes(
        of record: AuditRecord, number: UInt64, at milliseconds: UInt64, key: String, before: Digest,
        _ authenticator: MessageAuthenticator
    ) -> [UInt8] {
        var text = #"{"n":\#(number),"at":"\#(time(milliseconds))""#
        func add(_ name: String, _ value: String?) {
            guard let value else { return }
            text += #","\#(name)":"\#(escaped(value))""#
        }
        add("kind", record.kind.rawValue)
        add("who", record.principal)
        add("peer", record.peer)
        add("what", record.operation)
        add("collaboration", record.collaboration)
        if let sequence = record.sequence { text += #","sequence":\#(sequence)"# }
        add("outcome", record.outcome)
        add("detail", record.detail)
        add("key", key)
        add("before", before.description)
        var line = Array(text.utf8)
        let tag = line.withUnsafeBytes { authenticator.tag(of: $0) }
        line += Array(#","tag":"\#(tag.bytes.prefix(tagBytes).hexadecimal)"}"#.utf8)
        return line
    }

    /// The text as the inside of a JSON string. Every control character is escaped, also those beyond ASCII that steer
    /// a terminal or the direction of writing. A long text is cut.
    static func escaped(_ text: String) -> String {
        let text = text.prefix(bytesMax: Limits.auditTextBytesMax)
        guard text.unicodeScalars.contains(where: { $0.isControl || $0 == "\"" || $0 == "\\" }) else { return text }
        var escaped = ""
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" {
                escaped += "\\"
                escaped.unicodeScalars.append(scalar)
            } else if scalar.isControl {
                // Such scalars have four digits, so that no surrogates are needed.
                escaped += "\\u" + scalar.hexadecimalDigits
            } else {
                escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    /// ISO 8601 in UTC, with milliseconds.
    static func time(_ milliseconds: UInt64) -> String {
        var seconds = time_t(clamping: milliseconds / 1000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func digits(_ number: some BinaryInteger, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        let date = "\(digits(Int(parts.tm_year) + 1900, 4))-\(digits(parts.tm_mon + 1, 2))-\(digits(parts.tm_mday, 2))"
        let clock = "\(digits(parts.tm_hour, 2)):\(digits(parts.tm_min, 2)):\(digits(parts.tm_sec, 2))"
        return "\(date)T\(clock).\(digits(milliseconds % 1000, 3))Z"
    }

    // MARK: Reading

    /// Whether the bytes may be the beginning of a line.
    static func isBeginning(_ bytes: [UInt8]) -> Bool {
        bytes.starts(with: numberHead) || numberHead.starts(with: bytes)
    }

    /// Reads a line without its line feed; `nil` when it is none of an audit.
    package init?(_ line: UnsafeRawBufferPointer) {
        var end = line.count
        /// Takes hexadecimal digits behind `head` from the end of what is left: small ones, as the service writes them.
        func takeHexadecimal(_ bytes: Int, behind head: [UInt8]) -> [UInt8]? {
            let start = end - 2 * bytes
            guard start >= head.count, Array(line[(start - head.count)..<start]) == head else { return nil }
            let digits = String(decoding: line[start..<end], as: UTF8.self)
            end = start - head.count
            guard let value = [UInt8](hexadecimal: digits), value.hexadecimal == digits else { return nil }
            return value
        }
        guard end >= AuditLine.end.count, Array(line[(end - AuditLine.end.count)...]) == AuditLine.end else {
            return nil
        }
        end -= AuditLine.end.count
        guard let tag = takeHexadecimal(AuditLine.tagBytes, behind: AuditLine.tagHead) else { return nil }
        // The quotation mark before the comma belongs to the signed bytes.
        signedBytes = end + 1
        guard let before = takeHexadecimal(Digest.byteCount, behind: AuditLine.beforeHead).flatMap({ Digest($0) }),
            let key = takeHexadecimal(8, behind: AuditLine.keyHead),
            Array(line.prefix(AuditLine.numberHead.count)) == AuditLine.numberHead,
            let number = AuditLine.number(in: line, from: AuditLine.numberHead.count), number > 0
        else { return nil }
        self.tag = tag
        self.before = before
        self.key = key.hexadecimal
        self.number = number
        let body = Data(line[..<end])
        // A name in quotation marks can't be part of a value, whose quotation marks are escaped.
        sequence = body.range(of: Data(#","sequence":"#.utf8)).flatMap {
            AuditLine.number(in: line, from: $0.upperBound)
        }
        operation =
            body.range(of: Data(#","what":""#.utf8)).map {
                String(decoding: body[$0.upperBound...].prefix { $0 != UInt8(ascii: "\"") }, as: UTF8.self)
            } ?? ""
        hash = SHA256.hash(line)
    }

    /// The decimal number that begins at an offset.
    private static func number(in line: UnsafeRawBufferPointer, from offset: Int) -> UInt64? {
        UInt64(String(decoding: line[offset...].prefix { $0 >= 0x30 && $0 <= 0x39 }, as: UTF8.self))
    }

    /// Whether the line's tag is genuine. `line`: the bytes that this value was read from.
    func isGenuine(_ line: UnsafeRawBufferPointer, _ authenticator: MessageAuthenticator) -> Bool {
        authenticator.tag(of: UnsafeRawBufferPointer(rebasing: line[..<signedBytes])).withUnsafeBytes { expected in
            tag.withUnsafeBytes { tag in
                guard let expected = expected.baseAddress, let given = tag.baseAddress else { return false }
                return equalInConstantTime(given, expected, count: AuditLine.tagBytes)
            }
        }
    }
}
