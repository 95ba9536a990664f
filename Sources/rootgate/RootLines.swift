import Core
import Foundation
import Hashing
import RootgateClient

/// Reads root hashes, one a line: in hexadecimal, or as JSON, `{"rootHash":"..."}`. Blank lines and lines that begin
/// with # are skipped.
///
/// Sendable without the compiler's proof: one task at a time uses it.
final class RootLines: @unchecked Sendable {
    /// How far the input was read.
    struct Position: Equatable, Sendable {
        var lines = 0
        var bytes: UInt64 = 0
        /// SHA-256 of the bytes; `nil` when nobody wants it.
        var hash: Digest?
    }

    /// Some root hashes of the input, and where it is read up to.
    struct Portion: Sendable {
        let roots: [Digest]
        let end: Position
    }

    private let file: InputFile
    /// What was read of the file, from `start` on. It ends with a line feed once the file has ended.
    private var buffer: [UInt8] = []
    private var start = 0
    private var isAtEnd = false
    private var position = Position()
    /// Has hashed what is in front of `position`; `nil` when nobody wants to know it.
    private var hash: SHA256.Stream?

    private static let pieceBytes = 1 << 20
    /// Bytes of a line, at most.
    private static let lineBytesMax = 1 << 20

    /// `path`: `-` is standard input. `hashes`: whether positions have hashes. Throws when the file can't be opened.
    init(_ path: String, hashes: Bool = false) throws {
        file = try InputFile(path)
        hash = hashes ? SHA256.Stream() : nil
    }

    /// The part of the file that its first bytes are; `nil` when its size is not known.
    func share(of bytes: UInt64) -> Double? { file.share(of: bytes) }

    /// The next root hashes, at most `count`; `nil` at the end. Throws when the file can't be read, or when a line is
    /// no root hash.
    func next(_ count: Int) throws -> Portion? {
        var roots: [Digest] = []
        while roots.count < count {
            if try take(count, &roots) == false, try !fill() { break }
        }
        return roots.isEmpty ? nil : Portion(roots: roots, end: reached)
    }

    /// Skips what is in front of a position. False when the file does not begin with the same bytes.
    func skip(to end: Position) throws -> Bool {
        while position.bytes < end.bytes {
            if start == buffer.count, try !fill() { return false }
            let count = min(UInt64(buffer.count - start), end.bytes - position.bytes)
            pass(Int(count))
        }
        position.lines = end.lines
        return position.bytes == end.bytes && reached.hash == end.hash
    }

    private var reached: Position {
        var copy = hash
        var position = position
        position.hash = copy?.finish()
        return position
    }

    /// Goes on behind so many bytes of the buffer.
    private func pass(_ count: Int) {
        // A line feed that the file does not have ends its last line.
        let own = min(count, Int(file.bytesRead - position.bytes))
        buffer.withUnsafeBytes { hash?.update(UnsafeRawBufferPointer(rebasing: $0[start..<start + own])) }
        start += count
        position.bytes += UInt64(own)
    }

    /// Reads more of the file; false at its end.
    private func fill() throws -> Bool {
        guard !isAtEnd else { return false }
        guard buffer.count - start <= RootLines.lineBytesMax else {
            throw UsageError(ofFile: "line \(position.lines + 1) of \(file.path) is longer than 1 MiB")
        }
        buffer.removeFirst(start)
        start = 0
        let more = try file.next(bytesMax: RootLines.pieceBytes)
        buffer += more
        isAtEnd = more.isEmpty
        if isAtEnd, let last = buffer.last, last != UInt8(ascii: "\n") { buffer.append(UInt8(ascii: "\n")) }
        return !isAtEnd || !buffer.isEmpty
    }

    /// Takes root hashes from the whole lines of the buffer until there are `count`. False when there is no whole line
    /// left.
    private func take(_ count: Int, _ roots: inout [Digest]) throws -> Bool {
        let (taken, lines, wrong) = buffer.withUnsafeBytes { buffer -> (Int, Int, String?) in
            var (offset, lines) = (start, 0)
            while roots.count < count {
                let rest = UnsafeRawBufferPointer(rebasing: buffer[offset...])
                guard let begin = rest.baseAddress, let end = memchr(begin, 10, rest.count) else { break }
                let line = UnsafeRawBufferPointer(rebasing: rest[..<(UnsafeRawPointer(end) - begin)])
                lines += 1
                offset += line.count + 1
                switch RootLine(line) {
                case .root(let root): roots.append(root)
                case .nothing: continue
                case .wrong(let reason): return (offset - start, lines, reason)
                }
            }
            return (offset - start, lines, nil)
        }
        pass(taken)
        position.lines += lines
        if let wrong {
            throw UsageError(ofFile: "line \(position.lines) of \(file.path) \(wrong)")
        }
        return taken > 0
    }
}

/// What one line says.
private enum RootLine {
    case root(Digest)
    case nothing
    /// What is wrong with it, behind the words "line N of FILE".
    case wrong(String)

    private struct Fields: Decodable {
        let rootHash: Digest
    }

    private static let jsonBegin = Array(#"{"rootHash":""#.utf8)
    private static let jsonEnd = Array(#""}"#.utf8)

    init(_ line: UnsafeRawBufferPointer) {
        let isSpace: (UInt8) -> Bool = { $0 == 32 || $0 == 9 || $0 == 13 }
        var text = line
        while let last = text.last, isSpace(last) { text = UnsafeRawBufferPointer(rebasing: text.dropLast()) }
        while let first = text.first, isSpace(first) { text = UnsafeRawBufferPointer(rebasing: text.dropFirst()) }
        guard let first = text.first, first != UInt8(ascii: "#") else {
            self = .nothing
            return
        }
        guard first == UInt8(ascii: "{") else {
            self = Digest(hexadecimal: text).map { .root($0) } ?? .wrong("is not a root hash in hexadecimal")
            return
        }
        // As `roots export --json` writes it.
        let (begin, end) = (RootLine.jsonBegin, RootLine.jsonEnd)
        if text.starts(with: begin), text.suffix(end.count).elementsEqual(end),
            let root = Digest(
                hexadecimal: UnsafeRawBufferPointer(rebasing: text.dropFirst(begin.count).dropLast(end.count)))
        {
            self = .root(root)
            return
        }
        do throws(ServiceError) {
            self = .root(try JSON.decodeStrictly(Fields.self, from: Array(text)).rootHash)
        } catch {
            self = .wrong("is no JSON with a rootHash: \(error.reason)")
        }
    }
}

extension Digest {
    /// Reads 64 hexadecimal characters of either case; `nil` for anything else.
    fileprivate init?(hexadecimal text: UnsafeRawBufferPointer) {
        guard text.count == 2 * Digest.byteCount else { return nil }
        let root = withUnsafeTemporaryAllocation(byteCount: Digest.byteCount, alignment: 8) { bytes -> Digest? in
            var wrong: UInt8 = 0
            for place in 0..<Digest.byteCount {
                let (high, low) = (hexadecimalValues[Int(text[2 * place])], hexadecimalValues[Int(text[2 * place + 1])])
                wrong |= high | low
                bytes[place] = high << 4 | low & 15
            }
            return wrong < 16 ? bytes.baseAddress.map { Digest(at: $0) } : nil
        }
        guard let root else { return nil }
        self = root
    }
}

/// The value of each hexadecimal digit; 255 for every other byte.
private let hexadecimalValues: [UInt8] = (0...255).map { byte in
    UInt8(Character(Unicode.Scalar(UInt8(byte))).hexDigitValue ?? 255)
}
