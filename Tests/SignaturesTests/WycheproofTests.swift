import Core
import Foundation
import Signatures
import TestSupport
import Testing

/// Project Wycheproof's file of ECDSA verifications, as far as it is needed.
private struct VectorFile: Decodable {
    struct Group: Decodable {
        struct Key: Decodable {
            let uncompressed: String
        }
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

struct WycheproofTests {
    // ROOTGATE_TEST_VECTORS names the folder with ecdsa_secp256r1_sha256_test.json; without it this is skipped.
    @Test(
        "All 484 cases of Wycheproof's secp256r1 with SHA-256 have its result under both encodings of the key",
        .enabled(if: vectorsDirectory != nil, "ROOTGATE_TEST_VECTORS is not set"), arguments: [true, false])
    func allCases(usesKernels: Bool) throws {
        let path = try #require(vectorsDirectory) + "/ecdsa_secp256r1_sha256_test.json"
        let file = try JSONDecoder().decode(VectorFile.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        var configuration = SignatureEngine.Configuration()
        configuration.usesKernels = usesKernels
        let verifier = try SignatureVerifier(testedEngine(configuration))
        var results: [String: Int] = [:]
        for group in file.testGroups {
            let point = try #require([UInt8](hexadecimal: group.publicKey.uncompressed))
            let info = try #require([UInt8](hexadecimal: group.publicKeyDer))
            for vector in group.tests {
                let name: Comment = "case \(vector.tcId): \(vector.comment)"
                let message = try #require([UInt8](hexadecimal: vector.msg), name)
                let signature = try #require([UInt8](hexadecimal: vector.sig), name)
                results[vector.result, default: 0] += 1
                for key in [point, info] {
                    let outcome = try verify(key: key, signature: signature, message: message, by: verifier)
                    // "acceptable" would leave the answer open; the counts below say that no case has it.
                    #expect((outcome == .valid) == (vector.result == "valid"), name)
                    #expect(outcome != .badKey, name)
                }
            }
        }
        #expect(file.numberOfTests == 484)
        #expect(results.values.reduce(0, +) == 484)
        #expect(results == ["valid": 174, "invalid": 310])
    }
}
