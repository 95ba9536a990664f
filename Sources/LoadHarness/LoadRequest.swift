package import Core
import Identity
import Wire

/// A request frame, ready to be sent, and the verdicts that it must get.
package struct LoadRequest: Sendable {
    package let frame: [UInt8]
    package let expected: [Verdict]

    /// A verify (or an inclusion-only verify) of `proofs` in `collaboration`. `Workload` sets its request id.
    ///
    /// Throws `limitExceeded`.
    package init(
        _ proofs: [(proof: SignedIdentityProof, expected: Verdict)],
        in collaboration: CollaborationIdentifier, isSigned: Bool
    ) throws(ServiceError) {
        var body: [UInt8] = []
        try ProofBatch.append(
            proofs.map { (0, $0.proof) }, of: [collaboration], isSigned: isSigned, wantsRoots: false, to: &body)
        var frame: [UInt8] = []
        let operation: Operation = isSigned ? .verify : .verifyInclusion
        FrameWriter.append(.request, operation.rawValue, requestID: 0, to: &frame) {
            $0.append(contentsOf: body)
        }
        self.frame = frame
        expected = proofs.map(\.expected)
    }
}

extension Population {
    /// Signed requests of `batch` proofs each, one proof for each challenge, made on all cores. Proof number i is
    /// signed by device number `device(i)`, modulo the number of devices. Of 100 proofs, `invalidPercent` are
    /// forgeries, of all kinds in turn.
    ///
    /// Throws `internalFault` when libcrypto can't sign.
    package func signedRequests(
        challenges: [[UInt8]], batch: Int, invalidPercent: Int = 0, device: @Sendable (Int) -> Int = { $0 }
    ) throws(ServiceError) -> [LoadRequest] {
        let devices = devices
        return try inParallel((challenges.count + batch - 1) / batch) { number throws(ServiceError) in
            var proofs: [(proof: SignedIdentityProof, expected: Verdict)] = []
            for index in number * batch..<min(challenges.count, (number + 1) * batch) {
                let (person, device) = devices[device(index) % devices.count]
                let proof = try people[person].proof(ofDevice: device, signing: challenges[index])
                // Spread evenly: the quotient grows by one at exactly `invalidPercent` of 100 places.
                if (index + 1) * invalidPercent / 100 > index * invalidPercent / 100 {
                    let forgery = Forgery.allCases[(index * invalidPercent / 100) % Forgery.allCases.count]
                    proofs.append((try forgery.spoil(proof, stranger: stranger), forgery.verdict))
                } else {
                    proofs.append((proof, .granted))
                }
            }
            return try LoadRequest(proofs, in: collaboration, isSigned: true)
        }
    }

    /// `count` inclusion-only requests of `batch` proofs each; devices take turns.
    ///
    /// Throws `internalFault`.
    package func inclusionRequests(count: Int, batch: Int) throws(ServiceError) -> [LoadRequest] {
        let devices = devices
        return try inParallel(count) { number throws(ServiceError) in
            var proofs: [(proof: SignedIdentityProof, expected: Verdict)] = []
            for index in number * batch..<(number + 1) * batch {
                let (person, device) = devices[index % devices.count]
                guard let path = people[person].tree.proof(at: device) else { continue }
                proofs.append(
                    (
                        SignedIdentityProof(
                            publicKey: people[person].publicKeys[device], publicKeyIndex: path.index,
                            inclusionHashes: path.siblings, signature: [], signatureFormat: .der, data: []),
                        .included
                    ))
            }
            return try LoadRequest(proofs, in: collaboration, isSigned: false)
        }
    }
}
