import Core
import Wire

/// The single proofs of a connection that wait to be sent, and those in flight. Decides which leave together; it sends
/// nothing itself.
///
/// All proofs that wait leave when they are at least as many as those in flight, packed into as few requests as
/// possible. So a lone proof leaves at once, and so does the next one. Nobody waits for a timer, requests grow with the
/// load, and the service has work while the client packs.
///
/// A service that is busy may limit the requests in flight. Then fewer are in flight than it has refused, and one more
/// after so many answers again.
struct VerifyLine {
    typealias Kind = VerifyCall.Kind

    /// A request that is to be sent.
    struct Package {
        let requestID: UInt64
        /// At least one, all of one kind.
        let calls: [VerifyCall]
    }

    /// A request that calls of one kind are put in until it is sent.
    private struct Open {
        let requestID: UInt64
        let kind: Kind
        var calls: [VerifyCall] = []
        /// The most bytes of its body.
        var byteCount = BatchHead.byteCount

        func hasRoom(for call: VerifyCall) -> Bool {
            calls.count < Limits.packedProofsMax && byteCount + call.byteCount <= Limits.packedBytesMax
        }
    }

    /// A request in flight.
    private struct Flight {
        let calls: [VerifyCall]
        /// Callers who still wait.
        var left: Int
        /// What is sent, one after the other, when the request is answered.
        let followers: [[VerifyCall]]
    }

    /// What leaves together, in the order in which it began.
    private var open: [Open] = []
    /// Where in `open` the last one of each kind is.
    private var places: [Kind: Int] = [:]
    /// Where the last call was put.
    private var lastPlace = 0
    /// Calls in `open`.
    private var queuedCount = 0
    /// At least as many as those among them for which nobody waits any more.
    private var absent = 0
    private var inFlight: [UInt64: Flight] = [:]
    /// Calls in `inFlight` for which somebody waits.
    private var inFlightCount = 0
    /// What leaves next, however many calls are in flight. The parts of each element are requests that are sent one
    /// after the other, each when the one before is answered.
    private var due: [[[VerifyCall]]] = []
    /// The most requests in flight.
    private var requestsMax = Int.max
    /// Answers since `requestsMax` was changed last.
    private var answers = 0
    private static let answersPerRequest = 64

    /// Adds a call. It leaves with `take`. A request gets its identifier from `nextID`, which moves on.
    mutating func append(_ call: VerifyCall, _ nextID: inout UInt64) {
        let place = openPlace(for: call, &nextID)
        call.request = open[place].requestID
        open[place].byteCount += call.byteCount
        open[place].calls.append(call)
        lastPlace = place
        queuedCount += 1
    }

    /// Where in `open` the call has room.
    private mutating func openPlace(for call: VerifyCall, _ nextID: inout UInt64) -> Int {
        let isLast = lastPlace < open.count && open[lastPlace].kind == call.kind
        if let place = isLast ? lastPlace : places[call.kind], open[place].hasRoom(for: call) { return place }
        defer { nextID += 1 }
        places[call.kind] = open.count
        open.append(Open(requestID: nextID, kind: call.kind))
        return open.count - 1
    }

    /// What leaves now. Requests that are not known yet get identifiers from `nextID`, which moves on. Calls that are
    /// not awaited any more are left out.
    mutating func take(_ nextID: inout UInt64) -> [Package] {
        var packages = due.isEmpty ? [] : takeDue(&nextID)
        let leaves = queuedCount > 0 && queuedCount >= inFlightCount && inFlight.count < requestsMax
        if absent > 0, leaves || 2 * absent > queuedCount { removeAbsent() }
        guard leaves else { return packages }
        for request in open { packages.append(send(request.calls, as: request.requestID)) }
        open.removeAll(keepingCapacity: open.count == 1)
        places.removeAll(keepingCapacity: places.count == 1)
        queuedCount = 0
        return packages
    }

    private mutating func removeAbsent() {
        places.removeAll()
        for place in open.indices { open[place].calls.removeAll(where: VerifyLine.forget) }
        open.removeAll { $0.calls.isEmpty }
        for place in open.indices {
            open[place].byteCount = open[place].calls.reduce(BatchHead.byteCount) { $0 + $1.byteCount }
            places[open[place].kind] = place
        }
        (absent, queuedCount) = (0, open.reduce(0) { $0 + $1.calls.count })
    }

    /// Whether nobody waits for the call any more. Then it is in no request, which `leave` has to know: the caller may
    /// have ended the call already, and leave only after this.
    private static func forget(_ call: VerifyCall) -> Bool {
        guard !call.isAwaited else { return false }
        call.request = 0
        return true
    }

    private mutating func takeDue(_ nextID: inout UInt64) -> [Package] {
        var packages: [Package] = []
        var later: [[[VerifyCall]]] = []
        for parts in due {
            guard inFlight.count < requestsMax else {
                later.append(parts)
                continue
            }
            for (position, part) in parts.enumerated() {
                let calls = part.filter { !VerifyLine.forget($0) }
                guard !calls.isEmpty else { continue }
                for call in calls { call.request = nextID }
                packages.append(send(calls, as: nextID, followedBy: Array(parts[(position + 1)...])))
                nextID += 1
                break
            }
        }
        due = later
        return packages
    }

    private mutating func send(
        _ calls: [VerifyCall], as requestID: UInt64, followedBy followers: [[VerifyCall]] = []
    ) -> Package {
        inFlight[requestID] = Flight(calls: calls, left: calls.count, followers: followers)
        inFlightCount += calls.count
        return Package(requestID: requestID, calls: calls)
    }

    /// Removes an answered request and returns its calls; `nil` when there is none. `take` follows.
    mutating func removeAnswered(_ requestID: UInt64) -> [VerifyCall]? {
        guard let flight = inFlight.removeValue(forKey: requestID) else { return nil }
        inFlightCount -= flight.left
        if !flight.followers.isEmpty { due.append(flight.followers) }
        if requestsMax < Int.max {
            answers += 1
            if answers >= VerifyLine.answersPerRequest * requestsMax { (requestsMax, answers) = (requestsMax + 1, 0) }
        }
        return flight.calls
    }

    /// Sends a request again when another one is answered, because the service is busy. Returns false, and does
    /// nothing, when there is no such request, or when no other one is in flight. `take` follows.
    mutating func postpone(_ requestID: UInt64) -> Bool {
        guard inFlight.count > 1, let flight = inFlight.removeValue(forKey: requestID) else { return false }
        inFlightCount -= flight.left
        (requestsMax, answers) = (inFlight.count, 0)
        due.append([flight.calls] + flight.followers)
        return true
    }

    /// Sends the calls of a request again in two halves, because it was refused as a whole. So one call that is refused
    /// whatever it is sent with costs two requests for each halving. `inTurn`: the second half leaves when the first is
    /// answered, because the service has asked for time. Returns false, and does nothing, when there is no such
    /// request, or when it has only one call. `take` follows.
    mutating func split(_ requestID: UInt64, inTurn: Bool) -> Bool {
        guard let flight = inFlight[requestID], flight.calls.count > 1 else { return false }
        inFlight[requestID] = nil
        inFlightCount -= flight.left
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

    /// The caller of a call that was added waits no more: the call has ended without an answer. A request for which
    /// nobody waits counts as answered. `take` follows.
    mutating func leave(_ call: VerifyCall) {
        if let left = inFlight[call.request]?.left {
            inFlight[call.request]?.left = left - 1
            inFlightCount -= 1
            if left == 1 { _ = removeAnswered(call.request) }
        } else if queuedCount > 0, call.request != 0 {
            absent += 1
        }
    }

    /// All calls, and perhaps some that have ended.
    var calls: [VerifyCall] {
        open.flatMap(\.calls) + inFlight.values.flatMap { $0.calls + $0.followers.flatMap { $0 } }
            + due.flatMap { $0.flatMap { $0 } }
    }

    var isEmpty: Bool { open.isEmpty && inFlight.isEmpty && due.isEmpty }

    mutating func removeAll() { self = VerifyLine() }
}

extension VerifyLine.Package {
    /// The request's frame.
    ///
    /// Throws `limitExceeded`, which `take` rules out.
    func frame() throws(ServiceError) -> [UInt8] {
        var named = RootgateClient.NamedCollaborations()
        let positions = calls.map { named.position(of: $0.collaboration) }
        let names = named.collaborations.reduce(0) { $0 + 1 + $1.utf8.count }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(
            calls.reduce(Limits.frameHeaderBytes + BatchHead.byteCount + names) { $0 + $1.proof.count })
        let kind = calls[0].kind
        let start = FrameWriter.begin(.request, kind.operation.rawValue, requestID: requestID, to: &bytes)
        try ProofBatch.appendHead(
            ofEncoded: calls.count, of: named.collaborations, atLeast: kind.atLeast, to: &bytes)
        for (position, call) in zip(positions, calls) {
            ProofBatch.append(encoded: call.proof, at: position, to: &bytes)
        }
        FrameWriter.end(start, &bytes)
        return bytes
    }
}
