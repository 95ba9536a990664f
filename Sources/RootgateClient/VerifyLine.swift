import Core
import Wire

/// The single proofs of a connection that wait to be sent, and those in flight. Decides which leave together; it sends
/// nothing itself.
///
/// As long as few requests are in flight, a proof leaves at once and alone. Otherwise it waits until one of them is
/// answered. Then all that wait leave, packed into as few requests as possible. So nobody waits for a timer, and
/// requests grow with the load.
struct VerifyLine {
    /// What proofs have in common that can be in one request.
    struct Kind: Hashable {
        let isSigned: Bool
        let atLeast: UInt64

        var operation: Operation { isSigned ? .verify : .verifyInclusion }
    }

    /// One caller's proof.
    struct Call {
        /// Differs from every other call's and request's.
        let id: UInt64
        let kind: Kind
        let collaboration: CollaborationIdentifier
        /// What `ProofBatch.encoded` has made.
        let proof: [UInt8]

        /// The most bytes that it takes of a request.
        var byteCount: Int { proof.count + 1 + Limits.collaborationBytesMax }
    }

    /// A request that is to be sent.
    struct Package {
        let requestID: UInt64
        /// At least one, all of one kind.
        let calls: [Call]
    }

    private var queued: [Call] = []
    /// The calls of each request in flight.
    private var inFlight: [UInt64: [Call]] = [:]

    /// Adds a call. It leaves with `take`.
    mutating func append(_ call: Call) { queued.append(call) }

    /// What leaves now. The requests get identifiers from `nextID` on, which moves on.
    mutating func take(_ nextID: inout UInt64) -> [Package] {
        guard !queued.isEmpty, inFlight.count < Limits.verifiesInFlightBeforePacking else { return [] }
        var packages: [Package] = []
        var open: [Kind: [Call]] = [:]
        var bytes: [Kind: Int] = [:]
        func close(_ kind: Kind) {
            guard let calls = open.removeValue(forKey: kind) else { return }
            packages.append(Package(requestID: nextID, calls: calls))
            nextID += 1
            bytes[kind] = nil
        }
        for call in queued {
            let isFull =
                open[call.kind, default: []].count >= Limits.packedProofsMax
                || bytes[call.kind, default: BatchHead.byteCount] + call.byteCount > Limits.packedBytesMax
            if isFull { close(call.kind) }
            open[call.kind, default: []].append(call)
            bytes[call.kind, default: BatchHead.byteCount] += call.byteCount
        }
        for kind in Array(open.keys) { close(kind) }
        queued.removeAll(keepingCapacity: queued.capacity <= Limits.packedProofsMax)
        for package in packages { inFlight[package.requestID] = package.calls }
        return packages
    }

    /// Sends each call in a request of its own, because the request that they were in was refused as a whole.
    mutating func separate(_ calls: [Call], _ nextID: inout UInt64) -> [Package] {
        var packages: [Package] = []
        for call in calls {
            packages.append(Package(requestID: nextID, calls: [call]))
            inFlight[nextID] = [call]
            nextID += 1
        }
        return packages
    }

    /// Removes an answered request and returns its calls; `nil` when there is none.
    mutating func removeAnswered(_ requestID: UInt64) -> [Call]? { inFlight.removeValue(forKey: requestID) }

    /// Forgets calls for which nobody waits any more. A request without others counts as answered.
    mutating func forget(_ isForgotten: (Call) -> Bool) {
        queued.removeAll(where: isForgotten)
        for (requestID, calls) in inFlight where calls.allSatisfy(isForgotten) { inFlight[requestID] = nil }
    }

    mutating func removeAll() { self = VerifyLine() }
}

extension VerifyLine.Package {
    /// The request's frame.
    ///
    /// Throws `limitExceeded`, which `take` rules out.
    func frame() throws(ServiceError) -> [UInt8] {
        var body: [UInt8] = []
        body.reserveCapacity(calls.reduce(BatchHead.byteCount) { $0 + $1.byteCount })
        var named = RootgateClient.NamedCollaborations()
        let entries = calls.map { (named.position(of: $0.collaboration), $0.proof) }
        let kind = calls[0].kind
        try ProofBatch.append(encoded: entries, of: named.collaborations, atLeast: kind.atLeast, to: &body)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Limits.frameHeaderBytes + body.count)
        FrameWriter.append(.request, kind.operation.rawValue, requestID: requestID, to: &bytes) {
            $0.append(contentsOf: body)
        }
        return bytes
    }
}
