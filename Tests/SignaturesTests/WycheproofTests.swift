import Core
import Foundation
import Hashing
import Signatures
import TestSupport
import Testing

@Suite struct WycheproofTests {
    private struct Vectors: Decodable {
        struct Group: Decodable {
            struct Key: Decodable { let uncompressed: String }
            struct Case: Decodable {
                let tcId: Int
                let comment: String
                let msg: String
                let sig: String
                let result: String
            }
            let publicKey: Key
            let publicKeyDer: String
            let tests: [Case]
        }
        let numberOfTests: Int
        let testGroups: [Group]
    }

    @Test(.enabled(if: vectorsDirectory != nil, "ROOTGATE_TEST_VECTORS names no folder with Wycheproof's vectors"))
    func everyOneOfThe484CasesAgreesForBothKeyEncodings() throws {
        let path = try #require(vectorsDirectory) + "/ecdsa_secp256r1_sha256_test.json"
        let vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        let verifier = try SignatureVerifier()
        var count = 0
        var valid = 0
        for group in vectors.testGroups {
            for encoding in [group.publicKey.uncompressed, group.publicKeyDer] {
                let key = try #require([UInt8](hexadecimal: encoding))
                for test in group.tests {
                    let message = try #require([UInt8](hexadecimal: test.msg))
                    let signature = try #require([UInt8](hexadecimal: test.sig))
                    let accepted = try verify(key, signature, .der, SHA256.hash(message), verifier) == .valid
                    #expect(accepted == (test.result == "valid"), "case \(test.tcId): \(test.comment)")
                    count += 1
                    valid += accepted ? 1 : 0
                }
            }
        }
        #expect(count == 2 * 484)
        #expect(valid == 2 * 174)
    }
}

/// What the parsers and the verifier say together: `nil` when an encoding is refused.
func verify(
    _ key: [UInt8], _ signature: [UInt8], _ format: SignatureFormat, _ digest: Digest, _ verifier: SignatureVerifier
) throws -> SignatureOutcome? {
    try key.withUnsafeBytes { key in
        guard let point = PublicKeyEncoding.point(in: key),
            let scalars = signature.withUnsafeBytes({ SignatureEncoding.scalars(in: $0, format: format) })
        else { return nil }
        return try verifier.verify(SignatureCheck(point: point, scalars: scalars, digest: digest))
    }
}
