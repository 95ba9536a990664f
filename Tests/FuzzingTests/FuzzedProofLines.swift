import Core
import Foundation
import Wire

@testable import Server

/// Lines of proofs, as `rootgate verify` reads them.
enum FuzzedProofLines {
    static let subject = FuzzSubject("proof-lines", bytesMax: 1024, seeds: seeds) { input in
        switch ProofLine(Data(input)) {
        case .malformed(let reason):
            try demand(!reason.isEmpty && !reason.contains("\n"), "the reason is “\(reason)”")
        case .proof(let proof, let index):
            try demand(UInt64(index) ?? .max == proof.publicKeyIndex, "the index \(index) became another one")
            for verdict in [Verdict.badIndex, .granted] {
                let line = ProofLine.proof(proof, index: index)
                try demand((line.reason(for: verdict) != nil) == (verdict == .badIndex), "a reason is missing")
            }
            // Proofs that are not judged here fit into a request.
            guard proof.verdictWithoutService == nil else { return }
            let body = try ProofBatch.encoded(proof, isSigned: true)
            try demand(body.count <= Limits.frameBodyBytesMax / 2, "a proof has \(body.count) bytes")
        }
    }

    private static func seeds() -> [[UInt8]] {
        func line(_ index: String, _ more: String = "") -> [UInt8] {
            let hash = Data(repeating: 7, count: 32).base64EncodedString()
            return Array(
                (#"{"publicKey":"AqGh","publicKeyIndex":\#(index),"inclusionHashes":["\#(hash)"],"#
                    + #""signature":"MAYCAQECAQE=","data":"AQIDBA=="\#(more)}"#).utf8)
        }
        let root = String(repeating: "0a", count: 32)
        return [
            line("1"), line("1e3"), line("18446744073709551616"), line("-1"),
            line("0", #","signatureFormat":"raw","rootHash":"\#(root)""#), Array("{}".utf8),
        ]
    }
}
