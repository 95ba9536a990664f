import Collaboration
package import Core
package import Foundation

/// A signed proof as a line of JSON has it, which devices and their simulation write. A bad line is a value, not an
/// error.
package enum ProofLine: Sendable {
    /// A proof, and its index as it is written. An index that no tree can have is replaced by the greatest number,
    /// which is refused as well.
    case proof(SignedIdentityProof, index: String)
    case malformed(String)

    /// The proof, unless the line is none, or the proof is too long for a request.
    package var proofForService: SignedIdentityProof? {
        guard case .proof(let proof, _) = self, proof.verdictWithoutService == nil else { return nil }
        return proof
    }

    /// What is wrong with the line, for people; `nil` when the verdict says it all.
    package func reason(for verdict: Verdict) -> String? {
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

    /// Reads a line, without its end.
    package init(_ line: Data) {
        let fields: Fields
        do throws(ServiceError) {
            fields = try JSON.decodeStrictly(Fields.self, from: Array(line))
        } catch {
            self = .malformed(error.reason)
            return
        }
        var siblings: [Digest] = []
        for (index, hash) in fields.inclusionHashes.enumerated() {
            guard let digest = Digest(hash) else {
                self = .malformed("inclusionHashes[\(index)] has \(hash.count) bytes, not 32")
                return
            }
            siblings.append(digest)
        }
        var format: SignatureFormat = fields.signature.count == 64 ? .raw : .der
        if let name = fields.signatureFormat {
            guard let named = SignatureFormat(name: name) else {
                self = .malformed("signatureFormat is \"der\" or \"raw\"")
                return
            }
            format = named
        }
        let index = fields.publicKeyIndex.text
        self = .proof(
            SignedIdentityProof(
                publicKey: Array(fields.publicKey), publicKeyIndex: UInt64(index) ?? .max, inclusionHashes: siblings,
                signature: Array(fields.signature), signatureFormat: format, data: Array(fields.data)),
            index: index)
    }
}

extension SignedIdentityProof {
    /// The verdict on a proof that is too long for a request, by the service's rules; `nil` when it is not.
    package var verdictWithoutService: Verdict? {
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
