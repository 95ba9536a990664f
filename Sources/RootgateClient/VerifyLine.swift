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

    /// A request in flight.
    private struct Flight {
        let calls: [Call]
        /// Callers who still wait.
        var left: Int
        /// What is sent, one after the other, when the request is answered.
        let followers: [[Call]]
    }

    private var queued: [Call] = []
    /// Calls among them for which nobody waits any more.
    private var absent = 0
    private var inFlight: [UInt64: Flight] = [:]
    /// What leaves next, however much is in flight. The parts of each element are requests that are sent one after the
    /// other, each when the one before is answered.
    private var due: [[[Call]]] = []

    /// Adds a call. It leaves with `take`.
    mutating func append(_ call: Call) { queued.append(call) }

    /// What leaves now. The requests get identifiers from `nextID` on, which moves on. Calls that are not awaited any
    /// more are left out.
    mutating func take(_ nextID: inout UInt64, _ isAwaited: (Call) -> Bool) -> [Package] {
        var packages = takeDue(&nextID, isAwaited)
        let leaves = !queued.isEmpty && inFlight.count < Limits.verifiesInFlightBeforePacking
        if absent > 0, leaves || 2 * absent > queued.count {
            queued.removeAll { !isAwaited($0) }
            absent = 0
        }
        if leaves { packages += takeQueued(&nextID) }
        return packages
    }

    private mutating func takeDue(_ nextID: inout UInt64, _ isAwaited: (Call) -> Bool) -> [Package] {
        var packages: [Package] = []
        for parts in due {
            for (position, part) in parts.enumerated() {
                let calls = part.filter(isAwaited)
                guard !calls.isEmpty else { continue }
                packages.append(send(calls, followedBy: Array(parts[(position + 1)...]), &nextID))
                break
            }
        }
        due = []
        return packages
    }

    private mutating func takeQueued(_ nextID: inout UInt64) -> [Package] {
        var packages: [Package] = []
        var open: [Kind: [Call]] = [:]
        var bytes: [Kind: Int] = [:]
        func close(_ kind: Kind) {
            guard let calls = open.removeValue(forKey: kind) else { return }
            packages.append(send(calls, &nextID))
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
        return packages
    }

    private mutating func send(
        _ calls: [Call], followedBy followers: [[Call]] = [], _ nextID: inout UInt64
    ) -> Package {
        defer { nextID += 1 }
        inFlight[nextID] = Flight(calls: calls, left: calls.count, followers: followers)
        return Package(requestID: nextID, calls: calls)
    }

    /// Removes an answered request and returns its calls; `nil` when there is none. `take` follows.
    mutating func removeAnswered(_ requestID: UInt64) -> [Call]? {
        guard let flight = inFlight.removeValue(forKey: requestID) else { return nil }
        if !flight.followers.isEmpty { due.append(flight.followers) }
        return flight.calls
    }

    /// Sends the calls of a request again in two halves, because it was refused as a whole. So one call that is refused
    /// whatever it is sent with costs two requests for each halving. `inTurn`: the second half leaves when the first is
    /// answered, because the service has asked for time. Returns false, and does nothing, when there is no such
    /// request, or when it has only one call. `take` follows.
    mutating func split(_ requestID: UInt64, inTurn: Bool) -> Bool {
        guard let flight = inFlight[requestID], flight.calls.count > 1 else { return false }
        inFlight[requestID] = nil
        let first = Array(flight.calls[..<(flight.calls.count / 2)])
        let second = Array(flight.calls[(flight.calls.count / 2)...])
        if inTurn {
            due.append([first, second] + flight.followers)
        } else {
            due.append([first] + flight.followers)
            due.append([second])
        }
        return true
    }

    /// A caller waits no more. `requestID`: the request that the call was last sent in; `nil`: it was not sent. A
    /// request for which nobody waits counts as answered. `take` follows.
    mutating func leave(_ requestID: UInt64?) {
        guard let requestID else {
            absent += 1
            return
        }
        inFlight[requestID]?.left -= 1
        if inFlight[requestID]?.left == 0 { _ = removeAnswered(requestID) }
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
