import Core
import Foundation
import Identity
import RootgateClient
import Secrets
import ServiceTestSupport
import Signatures
import TestSupport
import Testing
import Wire

@testable import Server

/// Requests whose proofs all get one verdict, which refuses them, as often as they are sent.
struct RefusedFlood {
    private static let proofsPerRequest = 64
    private static let requestsCount = 8
    private static let noncesMax = 64
    private static let windowSeconds: UInt32 = 3600

    private let verdict: Verdict
    private let scratch = ScratchDirectory()
    /// A secret that another service has, too, whose challenges are genuine then.
    private var secretPath: String { scratch.path + "/secret" }

    init(_ verdict: Verdict) throws {
        self.verdict = verdict
        if verdict == .challengeElsewhere { _ = try SecretFile(path: secretPath).rotate(at: 1_800_000_000_000) }
    }

    /// What the service needs for it. A challenge outlives the flood, unless it is to expire.
    var options: [String] {
        switch verdict {
        case .challengeExpired: ["--challenge-seconds", "1"]
        case .replayMemoryFull: ["--nonces-max", "\(RefusedFlood.noncesMax)"]
        case .challengeElsewhere: ["--secret-file", secretPath, "--challenge-seconds", "3600"]
        default: ["--challenge-seconds", "3600"]
        }
    }

    /// Makes the requests, with proofs for a collaboration of their own. Checks that they get the verdict. Returns them
    /// as bytes, and what one of them asks.
    func requests(_ client: RootgateClient) async throws -> (bytes: [UInt8], one: [AccessRequest]) {
        let takesNonces = [.badNonce, .nonceReplayed, .replayMemoryFull].contains(verdict)
        let small = try await SmallCollaboration(
            client, named: "flooded",
            policy: takesNonces ? .deviceNonce(windowSeconds: RefusedFlood.windowSeconds) : .challenge)
        let proofs = try await refused(small, client)
        let collaboration =
            verdict == .unknownCollaboration
            ? try #require(CollaborationIdentifier("nowhere")) : small.collaboration
        let entries = (0..<RefusedFlood.proofsPerRequest).map { (collaboration: 0, proof: proofs[$0 % proofs.count]) }
        let one = entries.map { AccessRequest(collaboration: collaboration, proof: $0.proof) }
        let verdicts = try await client.verify(one)
        #expect(verdicts.allSatisfy { $0.verdict == verdict }, "\(verdict): \(verdicts.map(\.verdict))")
        var body: [UInt8] = []
        try ProofBatch.append(entries, of: [collaboration], isSigned: true, wantsRoots: false, to: &body)
        var bytes: [UInt8] = []
        for number in 0..<RefusedFlood.requestsCount {
            FrameWriter.append(.request, Operation.verify.rawValue, requestID: UInt64(number), to: &bytes) {
                $0 += body
            }
        }
        return (bytes, one)
    }

    /// One proof for each way in which one gets the verdict.
    private func refused(_ small: SmallCollaboration, _ client: RootgateClient) async throws -> [SignedIdentityProof] {
        func nonce(_ number: Int, count: Int = 16) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: $0 == 0 ? number : $0 == 1 ? number >> 8 : 7) }
        }
        func signed(_ data: [UInt8]) throws -> SignedIdentityProof {
            try small.person.proof(ofDevice: 0, signing: data)
        }
        switch verdict {
        case .badNonce: return [try signed(nonce(0, count: 15))]
        case .nonceReplayed:
            let proof = try signed(nonce(0))
            #expect(try await client.verify(proof, in: small.collaboration) == .granted)
            return [proof]
        case .replayMemoryFull:
            for number in 0...RefusedFlood.noncesMax {
                let proof = try signed(nonce(number))
                if try await client.verify(proof, in: small.collaboration) == verdict { return [proof] }
            }
            Issue.record("the memory of nonces does not become full")
            return [try signed(nonce(0))]
        default: break
        }
        let genuine = try await small.proof()
        switch verdict {
        case .unknownCollaboration: return [genuine]
        case .challengeReplayed:
            #expect(try await client.verify(genuine, in: small.collaboration) == .granted)
            return [genuine]
        case .challengeElsewhere:
            let other = try TestService { $0.secretPath = secretPath }
            return [try signed(try await other.client().challenge())]
        case .challengeExpired:
            try await Task.sleep(for: .milliseconds(1500))
            return [genuine]
        default:
            let stranger = try PrivateKey()
            return try Forgery.allCases.filter { $0.verdict == verdict }.map {
                try $0.spoil(genuine, stranger: stranger)
            }
        }
    }
}
