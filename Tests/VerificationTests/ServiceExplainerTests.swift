import Core
import Foundation
import Hashing
import Identity
import TestSupport
import Testing

@testable import Verification

/// What a service says of a proof without changing anything.
@Suite struct ServiceExplainerTests {
    private func explain(
        _ fixture: Fixture, _ proof: SignedIdentityProof, in collaboration: String? = Fixture.challenged
    ) throws -> Explanation {
        try ServiceExplainer(fixture.resources).explain(
            proof, index: nil, in: collaboration.flatMap { CollaborationIdentifier($0) })
    }

    /// The outcome of every check is that of the verifier, and looking does not change what the verifier says.
    private func check(
        _ fixture: Fixture, _ proof: SignedIdentityProof, in collaboration: String = Fixture.challenged,
        _ expected: Verdict
    ) throws {
        for _ in 0..<2 {
            let explanation = try explain(fixture, proof, in: collaboration)
            #expect((explanation.failure?.verdict ?? .granted) == expected)
            #expect(explanation.unchecked == [.spending] || expected != .granted)
            #expect(explanation.findings.map(\.check) == Explanation.Check.allCases)
        }
        #expect(try fixture.verdict(proof, in: collaboration) == expected)
    }

    @Test("Every verdict about a challenge is told, and nothing is spent by looking")
    func challenges() throws {
        let fixture = try Fixture()
        let proof = try fixture.proof()
        try check(fixture, proof, .granted)
        try check(fixture, proof, .challengeReplayed)
        try check(fixture, try fixture.proof(signing: [UInt8](repeating: 7, count: 48)), .challengeForged)
        try check(fixture, try fixture.proof(signing: [1, 2, 3]), .challengeForged)
        let old = try fixture.proof()
        fixture.time.advance(1001)
        try check(fixture, old, .challengeExpired)
        let foreign = ChallengeBook(keys: freshKeys(), clock: fixture.time.clock).challenge()
        try check(fixture, try fixture.proof(signing: foreign), .challengeForged)
        let elsewhere = ChallengeBook(keys: fixture.keys, clock: fixture.time.clock).challenge()
        try check(fixture, try fixture.proof(signing: elsewhere), .challengeElsewhere)
        #expect(fixture.resources.nonces.count == 0)
    }

    @Test("Every verdict about a nonce is told, and none is remembered by looking")
    func nonces() throws {
        let fixture = try Fixture()
        let proof = try fixture.proof(in: Fixture.nonced, signing: [UInt8](repeating: 5, count: 16))
        try check(fixture, proof, in: Fixture.nonced, .granted)
        #expect(fixture.resources.nonces.count == 1)
        try check(fixture, proof, in: Fixture.nonced, .nonceReplayed)
        try check(fixture, try fixture.proof(in: Fixture.nonced, signing: [5]), in: Fixture.nonced, .badNonce)
    }

    @Test("Collaboration, membership and the signature are told as the verifier judges them")
    func others() throws {
        let fixture = try Fixture()
        try check(fixture, try fixture.proof(), in: "nobody", .unknownCollaboration)
        // A person of the other collaboration has another root hash.
        try check(fixture, try fixture.proof(in: Fixture.nonced, signing: fixture.challenge()), .notParticipant)
        var forged = try fixture.proof()
        forged.signature[forged.signature.count - 1] ^= 1
        try check(fixture, forged, .badSignature)
        forged.publicKeyIndex = .max
        try check(fixture, forged, .badIndex)
        let explanation = try explain(fixture, forged)
        #expect(explanation.finding(.membership)?.outcome == .unchecked && explanation.undecided.isEmpty)
    }

    @Test("Without a collaboration its checks are not made, and the challenge is told all the same")
    func unnamed() throws {
        let fixture = try Fixture()
        let explanation = try explain(fixture, try fixture.proof(), in: nil)
        #expect(explanation.failure == nil)
        #expect(explanation.unchecked == [.collaboration, .freshness, .membership, .spending])
        let reason = try #require(explanation.finding(.freshness)?.reason)
        #expect(reason.hasSuffix("this service has issued the challenge, in time, and it is not spent"))
        var forged = try fixture.proof()
        forged.signature[forged.signature.count - 1] ^= 1
        #expect(try explain(fixture, forged, in: nil).undecided == [.collaboration, .freshness, .membership])
    }
}
