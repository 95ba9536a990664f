import Core
import Foundation
import RootgateClient

/// One line of input.
enum ProofLine {
    case proof(SignedIdentityProof)
    case malformed(String)
}

/// Reads proofs, one JSON object a line. A bad line is a value, not an error.
final class ProofLines {
    private let file: FileHandle
    /// Of the file; 0 when it is not known, as for a pipe.
    private let bytes: UInt64
    private var bytesRead: UInt64 = 0
    private var rest = Data()
    private var isAtEnd = false
    /// Bytes of a line that are kept, at most: a proof at all its limits takes under 16 KiB.
    private static let lineBytesMax = 1 << 20
    private var isSkipping = false

    /// Throws a `FileFailure` when the file can't be opened.
    init(path: String) throws {
        if path == "-" {
            file = .standardInput
        } else {
            do {
                file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            } catch {
                throw FileFailure("read", path, error)
            }
        }
        var status = stat()
        let isFile = fstat(file.fileDescriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        bytes = isFile ? UInt64(max(0, status.st_size)) : 0
    }

    /// How much of the input was read, from 0 to 1; `nil` when its size is not known.
    var readShare: Double? { bytes > 0 ? Double(bytesRead) / Double(bytes) : nil }

    /// Up to `count` lines; none at the end.
    func next(_ count: Int) throws -> [ProofLine] {
        var lines: [ProofLine] = []
        while lines.count < count, let line = try nextLine() { lines.append(line) }
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
                return ProofLines.parse(line)
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
                return isSkipping ? .malformed("the line is longer than 1 MiB") : ProofLines.parse(rest)
            }
            if let more = try file.read(upToCount: 64 << 10), !more.isEmpty {
                bytesRead += UInt64(more.count)
                // A fresh copy releases the memory of what was read before.
                rest = Data(rest) + more
            } else {
                isAtEnd = true
            }
        }
    }

    private struct Fields: Decodable {
        let publicKey: Data
        let publicKeyIndex: UInt64
        let inclusionHashes: [Data]
        let signature: Data
        let data: Data
        let signatureFormat: String?
    }

    static func parse(_ line: Data) -> ProofLine {
        let fields: Fields
        do {
            fields = try JSONDecoder().decode(Fields.self, from: line)
        } catch let error as DecodingError {
            return .malformed(reason(error))
        } catch {
            return .malformed("not a JSON object with the fields of a proof")
        }
        var siblings: [Digest] = []
        for hash in fields.inclusionHashes {
            guard let digest = Digest(hash) else {
                return .malformed("an inclusion hash has \(hash.count) bytes, not 32")
            }
            siblings.append(digest)
        }
        var format: SignatureFormat = fields.signature.count == 64 ? .raw : .der
        if let name = fields.signatureFormat {
            guard let named = SignatureFormat(name: name) else {
                return .malformed("signatureFormat is \"der\" or \"raw\"")
            }
            format = named
        }
        return .proof(
            SignedIdentityProof(
                publicKey: Array(fields.publicKey), publicKeyIndex: fields.publicKeyIndex, inclusionHashes: siblings,
                signature: Array(fields.signature), signatureFormat: format, data: Array(fields.data)))
    }

    private static func reason(_ error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, _): "\(key.stringValue) is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            if let field = context.codingPath.first?.stringValue {
                "\(field) is not what it must be (binary in standard base64, the index a whole number)"
            } else {
                "not a JSON object"
            }
        @unknown default: "not a JSON object with the fields of a proof"
        }
    }
}
