import Core
import Foundation
import RootgateClient
import Verification

let verifyCommand = Command(
    "verify", operands: "[FILE|-]", operandsMax: 1,
    "verify proofs from JSON Lines, here or by a service",
    options: [
        Option("roots", "FILE", "known root hashes, one in hexadecimal a line; without it they are only computed"),
        Option("server", "HOST:PORT", "let a service verify them"),
        Option("collaboration", "ID", "with --server: the collaboration"),
        Option("at-least", "SEQUENCE", standard: "0", "with --server: a change that must have been applied"),
        .timeout, .quiet,
        Option(switch: "json", "accepted for consistency: the output is JSON Lines always"),
    ]
) { arguments in
    let input = try ProofLines(path: arguments.operands.first ?? "-")
    let judge: ([ProofLine]) async throws -> [LineVerdict]
    if arguments.text("server") != nil {
        guard arguments.text("roots") == nil else { throw UsageError("--roots and --server exclude each other") }
        let client = try connect(arguments)
        let collaboration = try collaborationOption(arguments)
        let atLeast = UInt64(try arguments.number("at-least", in: 0...Int.max))
        judge = { lines in try await judgeByService(lines, client, collaboration, atLeast: atLeast) }
    } else {
        guard arguments.text("collaboration") == nil else {
            throw UsageError("--collaboration needs --server: without a service no collaboration is known")
        }
        let verifier = try StandaloneVerifier(roots: arguments.text("roots").map { try readRoots($0) }.map(Set.init))
        judge = { lines in
            try lines.map { line in
                switch line {
                case .malformed(let reason): return LineVerdict(.malformed, reason: reason)
                case .proof(let proof):
                    let (verdict, root) = try verifier.verify(proof)
                    return LineVerdict(verdict, root: root)
                }
            }
        }
    }
    var number = 0
    var refused = false
    let progress = progressMeter(arguments)
    defer { progress.end() }
    progress.begin("verifying", share: 0...1)
    while case let lines = try input.next(256), !lines.isEmpty {
        var output = ""
        for verdict in try await judge(lines) {
            number += 1
            refused = refused || verdict.verdict.isRefusal
            output += try verdict.json(line: number) + "\n"
        }
        progress.printAside(output, terminator: "")
        progress.show("\(number) proofs", done: input.readShare)
    }
    return refused ? .refused : .success
}

/// What is printed for one line.
struct LineVerdict {
    let verdict: Verdict
    let root: Digest?
    let reason: String?

    init(_ verdict: Verdict, root: Digest? = nil, reason: String? = nil) {
        self.verdict = verdict
        self.root = root
        self.reason = reason
    }

    func json(line: Int) throws -> String {
        var object: [String: Any] = ["line": line, "verdict": verdict.name]
        object["rootHash"] = root?.description
        object["reason"] = reason
        return try rootgate.json(object)
    }
}

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

/// Verdicts of a service. A proof that does not fit into a request gets its verdict here, by the same rules.
private func judgeByService(
    _ lines: [ProofLine], _ client: RootgateClient, _ collaboration: CollaborationIdentifier, atLeast: UInt64
) async throws -> [LineVerdict] {
    var verdicts = [LineVerdict?](repeating: nil, count: lines.count)
    var requests: [AccessRequest] = []
    var positions: [Int] = []
    for (position, line) in lines.enumerated() {
        switch line {
        case .malformed(let reason): verdicts[position] = LineVerdict(.malformed, reason: reason)
        case .proof(let proof):
            if proof.inclusionHashes.count > Limits.inclusionHashesMax || proof.data.count > Limits.signedDataBytesMax {
                verdicts[position] = LineVerdict(.malformed)
            } else if proof.publicKey.count > Limits.publicKeyBytesMax {
                verdicts[position] = LineVerdict(.badKey)
            } else if proof.signature.count > Limits.signatureBytesMax {
                verdicts[position] = LineVerdict(.badSignatureEncoding)
            } else {
                requests.append(AccessRequest(collaboration: collaboration, proof: proof))
                positions.append(position)
            }
        }
    }
    if !requests.isEmpty {
        let decisions = try await client.verify(requests, wantsRoots: true, atLeast: atLeast)
        for (position, decision) in zip(positions, decisions) {
            verdicts[position] = LineVerdict(decision.verdict, root: decision.rootHash)
        }
    }
    return verdicts.compactMap { $0 }
}
