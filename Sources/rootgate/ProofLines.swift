import Core
import Foundation
import Platform
import RootgateClient

/// One line of input.
enum ProofLine {
    /// A proof, and its index as it is written. An index that no tree can have is replaced by the greatest number,
    /// which is refused as well.
    case proof(SignedIdentityProof, index: String)
    case malformed(String)

    /// The proof, unless the line is none, or the proof is too long for a request.
    var proofForService: SignedIdentityProof? {
        guard case .proof(let proof, _) = self, proof.verdictWithoutService == nil else { return nil }
        return proof
    }

    /// What is wrong with the line, for people; `nil` when the verdict says it all.
    func reason(for verdict: Verdict) -> String? {
        switch self {
        case .malformed(let reason): return reason
        case .proof(let proof, let index):
            guard verdict == .badIndex else { return nil }
            let depth = min(proof.inclusionHashes.count, Limits.inclusionHashesMax)
            let last = (UInt64(1) << UInt64(depth)) - 1
            return "publicKeyIndex is \(index.prefix(40)), not a whole number from 0 to \(last), "
                + "as it is with \(depth) inclusion hashes"
        }
    }
}

extension SignedIdentityProof {
    /// The verdict on a proof that is too long for a request, by the service's rules; `nil` when it is not.
    var verdictWithoutService: Verdict? {
        if inclusionHashes.count > Limits.inclusionHashesMax || data.count > Limits.signedDataBytesMax {
            .malformed
        } else if publicKey.count > Limits.publicKeyBytesMax {
            .badKey
        } else if signature.count > Limits.signatureBytesMax {
            .badSignatureEncoding
        } else {
            nil
        }
    }
}

/// Reads proofs, one JSON object a line. A bad line is a value, not an error.
final class ProofLines {
    private let file: InputFile
    private var rest = Data()
    private var isAtEnd = false
    /// Bytes of a line that are kept, at most: a proof at all its limits takes under 16 KiB.
    private static let lineBytesMax = 1 << 20
    private var isSkipping = false

    /// Throws a `FileFailure` when the file can't be opened.
    init(path: String) throws { file = try InputFile(path) }

    /// How much of the input was read, from 0 to 1; `nil` when its size is not known.
    var readShare: Double? { file.share(of: file.bytesRead) }

    /// Up to `count` lines; none at the end. Throws a `FileFailure` when the file can't be read.
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
            let more = try file.next(bytesMax: 64 << 10)
            if !more.isEmpty {
                // A fresh copy releases the memory of what was read before.
                rest = Data(rest) + more
            } else {
                isAtEnd = true
            }
        }
    }

    private struct Fields: Decodable {
        let publicKey: Data
        let publicKeyIndex: JSONNumber
        let inclusionHashes: [Data]
        let signature: Data
        let data: Data
        let signatureFormat: String?
        /// Written by `simulate` for whoever adds it to a set. The verifier computes its own.
        let rootHash: Digest?
    }

    static func parse(_ line: Data) -> ProofLine {
        let fields: Fields
        do throws(ServiceError) {
            fields = try JSON.decodeStrictly(Fields.self, from: Array(line))
        } catch {
            return .malformed(error.reason)
        }
        var siblings: [Digest] = []
        for (index, hash) in fields.inclusionHashes.enumerated() {
            guard let digest = Digest(hash) else {
                return .malformed("inclusionHashes[\(index)] has \(hash.count) bytes, not 32")
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
        let index = fields.publicKeyIndex.text
        return .proof(
            SignedIdentityProof(
                publicKey: Array(fields.publicKey), publicKeyIndex: UInt64(index) ?? .max, inclusionHashes: siblings,
                signature: Array(fields.signature), signatureFormat: format, data: Array(fields.data)),
            index: index)
    }
}
