import Core
import Foundation
import Platform
import RootgateClient
import Server

/// Reads proofs, one JSON object a line. A bad line is a value, not an error.
final class ProofLines {
    private let file: InputFile
    private var rest = Data()
    private var isAtEnd = false
    private var isEmpty = true
    private let path: String
    /// Bytes of a line that are kept, at most: a proof at all its limits takes under 16 KiB.
    private static let lineBytesMax = 1 << 20
    private var isSkipping = false

    /// Throws a `FileFailure` when the file can't be opened.
    init(path: String) throws {
        self.path = path
        file = try InputFile(path)
    }

    /// How much of the input was read, from 0 to 1; `nil` when its size is not known.
    var readShare: Double? { file.share(of: file.bytesRead) }

    /// Up to `count` lines; none at the end. Throws a `FileFailure` when the file can't be read, and a `UsageError`
    /// when it has no line: nobody should take that for proofs of which none was refused.
    func next(_ count: Int) throws -> [ProofLine] {
        var lines: [ProofLine] = []
        while lines.count < count, let line = try nextLine() { lines.append(line) }
        isEmpty = isEmpty && lines.isEmpty
        guard !isEmpty || count == 0 else {
            throw UsageError("\(path == "-" ? "standard input" : path) has no proof: one is expected on each line")
        }
        return lines
    }

    private func nextLine() throws -> ProofLine? {
        while true {
            if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                let line = rest[..<end]
                rest = rest[(end + 1)...]
                if isSkipping {
                    isSkipping = false
                    return .malformed("the line is longer than 1 MiB")
                }
                return ProofLine(line)
            }
            if rest.count > ProofLines.lineBytesMax {
                isSkipping = true
                rest = Data()
            }
            if isAtEnd {
                guard isSkipping || !rest.isEmpty else { return nil }
                defer {
                    rest = Data()
                    isSkipping = false
                }
                return isSkipping ? .malformed("the line is longer than 1 MiB") : ProofLine(rest)
            }
            let more = try file.next(bytesMax: 64 << 10)
            if !more.isEmpty {
                // A fresh copy releases the memory of what was read before.
                rest = Data(rest) + more
            } else {
                isAtEnd = true
            }
        }
    }
}
