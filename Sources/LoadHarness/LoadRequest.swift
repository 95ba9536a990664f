package import Core
import Identity
import RootgateClient
import Wire

/// A request frame, ready to be sent, and what its answer must say. `Workload` sets its request id.
package struct LoadRequest: Sendable {
    /// A proof, the position of its collaboration, and the verdict that it must get.
    package typealias Proof = (collaboration: Int, proof: SignedIdentityProof, expected: Verdict)

    package let kind: LoadKind
    package let frame: [UInt8]
    /// The verdicts or statuses of the answer; empty when it has none.
    let expected: [UInt8]

    private init(_ kind: LoadKind, _ operation: Operation, expected: [UInt8] = [], _ body: [UInt8]) {
        var frame: [UInt8] = []
        FrameWriter.append(.request, operation.rawValue, requestID: 0, to: &frame) { $0 += body }
        (self.kind, self.frame, self.expected) = (kind, frame, expected)
    }

    /// A request with proofs. `collaborations`: those that the positions are about. The request names those only that
    /// it has a proof for.
    ///
    /// Throws `limitExceeded`.
    init(_ proofs: [Proof], of collaborations: [CollaborationIdentifier], kind: LoadKind) throws(ServiceError) {
        var named = Named(collaborations)
        let entries = proofs.map { (named.position(of: $0.collaboration), $0.proof) }
        var body: [UInt8] = []
        try ProofBatch.append(entries, of: named.list, isSigned: kind != .inclusion, wantsRoots: false, to: &body)
        let operation: Operation =
            switch kind {
            case .open: .open
            case .inclusion: .verifyInclusion
            default: .verify
            }
        self.init(kind, operation, expected: proofs.map(\.expected.rawValue), body)
    }

    /// A check of grants, with the status that each must get. The positions of collaborations are as for proofs.
    ///
    /// Throws `limitExceeded`.
    init(
        _ grants: [GrantBatch.Entry], expected: [GrantStatus], of collaborations: [CollaborationIdentifier]
    ) throws(ServiceError) {
        var named = Named(collaborations)
        let entries = grants.map {
            GrantBatch.Entry(
                collaboration: named.position(of: $0.collaboration), deviceKey: $0.deviceKey, grant: $0.grant)
        }
        var body: [UInt8] = []
        try GrantBatch.append(entries, of: named.list, atLeast: 0, to: &body)
        self.init(.check, .checkGrants, expected: expected.map(\.rawValue), body)
    }

    /// Another request, whose answer must be no error.
    init(_ request: Request, kind: LoadKind) {
        var body: [UInt8] = []
        request.append(to: &body)
        self.init(kind, request.operation, body)
    }

    /// The collaborations that a request names, of all.
    private struct Named {
        private let all: [CollaborationIdentifier]
        private var positions: [Int: Int] = [:]
        private(set) var list: [CollaborationIdentifier] = []

        init(_ all: [CollaborationIdentifier]) {
            self.all = all
        }

        mutating func position(of collaboration: Int) -> Int {
            if let position = positions[collaboration] { return position }
            defer { list.append(all[collaboration]) }
            positions[collaboration] = list.count
            return list.count
        }
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
        try inParallel((challenges.count + batch - 1) / batch) { number throws(ServiceError) in
            var proofs: [LoadRequest.Proof] = []
            for index in number * batch..<min(challenges.count, (number + 1) * batch) {
                let (person, device) = devices[device(index) % devices.count]
                let proof = try people[person].proof(ofDevice: device, signing: challenges[index])
                let collaboration = collaboration(ofPerson: person)
                // Spread evenly: the quotient grows by one at exactly `invalidPercent` of 100 places.
                if (index + 1) * invalidPercent / 100 > index * invalidPercent / 100 {
                    let forgery = Forgery.allCases[(index * invalidPercent / 100) % Forgery.allCases.count]
                    proofs.append((collaboration, try forgery.spoil(proof, stranger: stranger), forgery.verdict))
                } else {
                    proofs.append((collaboration, proof, .granted))
                }
            }
            return try LoadRequest(proofs, of: collaborations, kind: .verify)
        }
    }

    /// `count` inclusion-only requests of `batch` proofs each; devices take turns.
    ///
    /// Throws `internalFault`.
    package func inclusionRequests(count: Int, batch: Int) throws(ServiceError) -> [LoadRequest] {
        try inParallel(count) { number throws(ServiceError) in
            var proofs: [LoadRequest.Proof] = []
            for index in number * batch..<(number + 1) * batch {
                let (person, device) = devices[index % devices.count]
                let proof = try inclusionProof(of: person, device: device)
                proofs.append((collaboration(ofPerson: person), proof, .included))
            }
            return try LoadRequest(proofs, of: collaborations, kind: .inclusion)
        }
    }

    /// A device's proof without a signature.
    ///
    /// Throws `internalFault` when there is no such device.
    func inclusionProof(of person: Int, device: Int) throws(ServiceError) -> SignedIdentityProof {
        guard let path = people[person].tree.proof(at: device) else {
            throw ServiceError(.internalFault, "there is no device \(device)")
        }
        return SignedIdentityProof(
            publicKey: people[person].publicKeys[device], publicKeyIndex: path.index, inclusionHashes: path.siblings,
            signature: [], signatureFormat: .der, data: [])
    }
}
