import Core
import Dispatch
import Foundation
import TestSupport
import Testing
import Transport
import Wire

@testable import RootgateClient

/// A service that answers when the test says so. It serves one connection.
private final class SlowService: Sendable {
    /// A request with proofs.
    struct Asked: Sendable {
        let requestID: UInt64
        let operation: UInt16
        let atLeast: UInt64
        /// The index of each proof's key, and the collaboration that it is in.
        let keys: [UInt64]
        let collaborations: [String]
    }

    let endpoint: Endpoint
    private let listener: CInt
    private let peer = Shared<RawPeer?>(nil)

    init() throws {
        let listener = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        // Accepting waits.
        _ = fcntl(listener.descriptor, F_SETFL, fcntl(listener.descriptor, F_GETFL) & ~O_NONBLOCK)
        self.listener = listener.descriptor
        endpoint = listener.endpoint
    }

    deinit { close(listener) }

    /// The next request.
    func next() async throws -> Asked {
        let asked: Asked? = await withCheckedContinuation { done in
            // Reading waits, so it has a thread of its own.
            DispatchQueue.global().async { [self] in done.resume(returning: try? read()) }
        }
        return try #require(asked, "no request has come")
    }

    private func read() throws -> Asked {
        if peer.value == nil {
            let descriptor = accept(listener, nil, nil)
            try #require(descriptor >= 0)
            peer.with { $0 = RawPeer(descriptor: descriptor) }
        }
        let peer = try #require(peer.value)
        let header = peer.receive(Limits.frameHeaderBytes)
        try #require(header.count == Limits.frameHeaderBytes)
        let length = header.withUnsafeBytes { Int($0.loadUnaligned(as: UInt32.self).littleEndian) }
        let bytes = header + peer.receive(length)
        return try bytes.withUnsafeBytes { received in
            var frames = FrameReader(received, expecting: [.request])
            let next = frames.next()
            let frame = try #require(next)
            let batch = try ProofBatch(frame.body, isSigned: frame.header.operation == Wire.Operation.verify.rawValue)
            let proofs = (0..<batch.count).map { batch.proof(at: $0, in: frame.body) }
            return Asked(
                requestID: frame.header.requestID, operation: frame.header.operation, atLeast: batch.atLeast,
                keys: proofs.map(\.publicKeyIndex),
                collaborations: proofs.map { String(decoding: $0.collaboration, as: UTF8.self) })
        }
    }

    /// The verdict on the proof of a key.
    static func verdict(_ key: UInt64) -> Verdict { key % 3 == 0 ? .badSignature : .granted }

    /// The bytes that come until the connection ends, at most one.
    func rest() async -> [UInt8] {
        await withCheckedContinuation { done in
            DispatchQueue.global().async { [self] in done.resume(returning: peer.value?.receive(1) ?? []) }
        }
    }

    /// Answers with the verdicts on the proofs. `more`: sent with it.
    func answer(_ asked: Asked, followedBy more: [UInt8] = []) {
        var bytes: [UInt8] = []
        FrameWriter.append(.answer, asked.operation, requestID: asked.requestID, to: &bytes) { body in
            asked.keys.map(SlowService.verdict).withUnsafeBufferPointer {
                VerdictList.append($0, roots: nil, to: &body)
            }
        }
        peer.value?.send(bytes + more)
    }

    /// Answers with these bytes as verdicts.
    func answer(_ asked: Asked, bytes: [UInt8]) {
        var frame: [UInt8] = []
        FrameWriter.append(.answer, asked.operation, requestID: asked.requestID, to: &frame) { body in
            body.appendInteger(UInt32(bytes.count))
            body += [0, 0, 0, 0] + bytes
        }
        peer.value?.send(frame)
    }

    func answer(_ asked: Asked, with error: ServiceError) {
        var bytes: [UInt8] = []
        FrameWriter.appendError(error, operation: asked.operation, requestID: asked.requestID, to: &bytes)
        peer.value?.send(bytes)
    }
}

@Suite("Single proofs of many tasks")
struct PackingTests {
    private let service: SlowService
    private let client: RootgateClient
    private let deck: CollaborationIdentifier

    init() throws {
        service = try SlowService()
        client = try RootgateClient(service.endpoint, configuration: .init(requestTimeout: patience))
        deck = try #require(CollaborationIdentifier("deck"))
    }

    private static func proof(_ key: UInt64, data: Int = 8) -> SignedIdentityProof {
        SignedIdentityProof(
            publicKey: [4], publicKeyIndex: key, inclusionHashes: [], signature: [1], signatureFormat: .der,
            data: [UInt8](repeating: 7, count: data))
    }

    /// What a call came to.
    private typealias Outcome = Result<Verdict, ServiceError>

    private func call(
        _ key: UInt64, atLeast: UInt64 = 0, by other: RootgateClient? = nil
    ) -> Task<Outcome, Never> {
        Task { [client = other ?? client, deck] in
            do throws(ServiceError) {
                return .success(try await client.verify(PackingTests.proof(key), in: deck, atLeast: atLeast))
            } catch {
                return .failure(error)
            }
        }
    }

    /// Calls in flight, so many that up to 31 further ones wait. Their requests are not answered yet.
    private func occupy() async throws -> (calls: [Task<Outcome, Never>], asked: [SlowService.Asked]) {
        var calls: [Task<Outcome, Never>] = []
        var asked: [SlowService.Asked] = []
        for count in [1, 1, 2, 4, 8, 16] {
            calls += (0..<count).map { call(UInt64(1000 + $0)) }
            asked.append(try await service.next())
            try #require(asked[asked.count - 1].keys.count == count)
        }
        return (calls, asked)
    }

    /// Returns when the calls wait to be sent: a request that would have been sent has been by then.
    private func settle() async throws { try await Task.sleep(for: .milliseconds(200)) }

    @Test("Calls that come while others are in flight leave in one request, and each gets its own verdict")
    func packed() async throws {
        let (first, asked) = try await occupy()
        let calls = (0..<20).map { call(UInt64($0)) }
        try await settle()
        for request in asked { service.answer(request) }
        let packed = try await service.next()
        #expect(packed.keys.sorted() == Array(0..<20))
        #expect(Set(packed.collaborations) == ["deck"])
        service.answer(packed)
        for (key, call) in calls.enumerated() {
            #expect(await call.value == .success(SlowService.verdict(UInt64(key))))
        }
        var granted = 0
        for call in first where await call.value == .success(.granted) { granted += 1 }
        #expect(granted == asked.flatMap(\.keys).filter { SlowService.verdict($0) == .granted }.count)
    }

    @Test("Calls that demand different sequences, or are of different kinds, share no request")
    func kinds() async throws {
        let (_, asked) = try await occupy()
        let calls = (0..<12).map { call(UInt64($0), atLeast: UInt64($0 % 3)) }
        let inclusion = Task { [client, deck] in
            try await client.verifyInclusion([AccessRequest(collaboration: deck, proof: PackingTests.proof(50))])
        }
        try await settle()
        for request in asked { service.answer(request) }
        var kinds: Set<String> = []
        for _ in 0..<4 {
            let request = try await service.next()
            kinds.insert("\(request.operation) \(request.atLeast)")
            let isInclusion = request.operation == Wire.Operation.verifyInclusion.rawValue
            #expect(isInclusion ? request.keys == [50] : request.keys.allSatisfy { $0 % 3 == request.atLeast })
            #expect(isInclusion || request.keys.count == 4)
            service.answer(request)
        }
        #expect(kinds.count == 4)
        for (key, call) in calls.enumerated() {
            #expect(await call.value == .success(SlowService.verdict(UInt64(key))))
        }
        #expect(try await inclusion.value.map(\.verdict) == [SlowService.verdict(50)])
    }

    /// Calls that have left in one request, and that request.
    private func pack(
        _ count: Int
    ) async throws -> (calls: [Task<Outcome, Never>], packed: SlowService.Asked) {
        let (_, asked) = try await occupy()
        let calls = (0..<count).map { call(UInt64($0)) }
        try await settle()
        for request in asked { service.answer(request) }
        let packed = try await service.next()
        try #require(packed.keys.sorted() == Array(0..<UInt64(count)))
        return (calls, packed)
    }

    @Test(
        "A request that is refused as a whole is sent again in halves, and a proof that is refused harms no other",
        arguments: [ServiceError.Code.busy, .limitExceeded, .roleMissing, .malformedRequest])
    func refusedWhole(code: ServiceError.Code) async throws {
        let (calls, packed) = try await pack(16)
        service.answer(packed, with: ServiceError(code, "all of it"))
        var done = 0
        var requests = 0
        while done < 16 {
            let part = try await service.next()
            requests += 1
            if part.keys == [11] {
                service.answer(part, with: ServiceError(.roleMissing, "only this"))
            } else if part.keys.contains(11) {
                service.answer(part, with: ServiceError(code, "a part"))
                continue
            } else {
                service.answer(part)
            }
            done += part.keys.count
        }
        // Two for each halving of 16.
        #expect(requests == 8)
        for (key, call) in calls.enumerated() {
            let outcome = await call.value
            if key == 11 {
                #expect(throws: ServiceError(.roleMissing, "")) { try outcome.get() }
            } else {
                #expect(outcome == .success(SlowService.verdict(UInt64(key))))
            }
        }
    }

    @Test("When the service asks for time, a half is sent when the one before is answered")
    func refusedForSomeTime() async throws {
        let (calls, packed) = try await pack(8)
        let busy = ServiceError(.busy, detail: 50, "for some time")
        service.answer(packed, with: busy)
        let half = try await service.next()
        #expect(half.keys == Array(packed.keys[..<4]))
        service.answer(half, with: busy)
        for keys in [packed.keys[..<2], packed.keys[2..<4], packed.keys[4...]] {
            let part = try await service.next()
            #expect(part.keys == Array(keys))
            service.answer(part)
        }
        for (key, call) in calls.enumerated() {
            #expect(await call.value == .success(SlowService.verdict(UInt64(key))))
        }
    }

    @Test("Halves that wait leave out calls that are cancelled, and don't wait for callers who are gone")
    func cancelledHalves() async throws {
        let (calls, packed) = try await pack(6)
        service.answer(packed, with: ServiceError(.busy, detail: 50, "for some time"))
        let half = try await service.next()
        #expect(half.keys == Array(packed.keys[..<3]))
        for key in [packed.keys[4]] + half.keys {
            calls[Int(key)].cancel()
            let outcome = await calls[Int(key)].value
            #expect(throws: ServiceError(.cancelled, "")) { try outcome.get() }
        }
        let rest = try await service.next()
        #expect(rest.keys == [packed.keys[3], packed.keys[5]])
        service.answer(rest)
        for key in rest.keys {
            #expect(await calls[Int(key)].value == .success(SlowService.verdict(key)))
        }
        service.answer(half)
    }

    @Test("Calls that wait are not sent after bytes that are no frame")
    func violation() async throws {
        let (first, asked) = try await occupy()
        let calls = (0..<3).map { call(UInt64($0)) }
        try await settle()
        for request in asked.dropLast() { service.answer(request) }
        let last = try #require(asked.last)
        service.answer(last, followedBy: [UInt8](repeating: 0xff, count: Limits.frameHeaderBytes))
        for call in first {
            guard case .success = await call.value else { Issue.record("an answered call fails"); continue }
        }
        for call in calls {
            let outcome = await call.value
            #expect(throws: malformedAnswer) { try outcome.get() }
        }
        #expect(await service.rest().isEmpty)
    }

    @Test("An error after which proofs may have been spent is not followed by another attempt")
    func notRepeated() async throws {
        let (_, asked) = try await occupy()
        let calls = (0..<3).map { call(UInt64($0)) }
        try await settle()
        for request in asked { service.answer(request) }
        let packed = try await service.next()
        service.answer(packed, with: ServiceError(.storageFailed, "the disk"))
        for call in calls {
            let outcome = await call.value
            #expect(throws: ServiceError(.storageFailed, "")) { try outcome.get() }
        }
        let last = call(7)
        #expect(try await service.next().keys == [7])
        last.cancel()
    }

    @Test("A call that is cancelled while it waits is not sent, and one in flight leaves the others their verdicts")
    func cancelled() async throws {
        let (_, asked) = try await occupy()
        let waiting = call(1)
        let others = [call(2), call(3)]
        try await settle()
        waiting.cancel()
        let outcome = await waiting.value
        #expect(throws: ServiceError(.cancelled, "")) { try outcome.get() }
        for request in asked { service.answer(request) }
        let packed = try await service.next()
        #expect(packed.keys.sorted() == [2, 3])
        others[0].cancel()
        let second = await others[0].value
        #expect(throws: ServiceError(.cancelled, "")) { try second.get() }
        service.answer(packed)
        #expect(await others[1].value == .success(SlowService.verdict(3)))
    }

    @Test("A call of a cancelled task is not sent")
    func cancelledBefore() async throws {
        let ahead = call(1)
        service.answer(try await service.next())
        _ = await ahead.value
        let thrown = await Task { [client, deck] in
            withUnsafeCurrentTask { $0?.cancel() }
            return await code { () throws(ServiceError) in
                _ = try await client.verify(PackingTests.proof(2), in: deck)
            }
        }.value
        #expect(thrown == .cancelled)
        let next = call(3)
        let asked = try await service.next()
        #expect(asked.keys == [3])
        service.answer(asked)
        #expect(await next.value == .success(SlowService.verdict(3)))
    }

    @Test("Calls in flight and calls that wait end at their deadlines, and keep no further ones waiting")
    func late() async throws {
        let hasty = try RootgateClient(service.endpoint, configuration: .init(requestTimeout: .milliseconds(600)))
        var calls = [call(0, by: hasty)]
        _ = try await service.next()
        calls.append(call(1, by: hasty))
        _ = try await service.next()
        calls += (2..<9).map { call($0, by: hasty) }
        for call in calls {
            let outcome = await call.value
            #expect(throws: ServiceError(.deadlineExceeded, "")) { try outcome.get() }
        }
        let next = call(10, by: hasty)
        var asked = try await service.next()
        // Those before it have left, too, two by two and so on.
        while asked.keys != [10] { asked = try await service.next() }
        service.answer(asked)
        #expect(await next.value == .success(SlowService.verdict(10)))
    }

    @Test("Of those who end a call at once, one does, and its caller is resumed with that outcome")
    func endedOnce() async throws {
        for round in 0..<200 {
            let call = try newCall(PackingTests.proof(1), in: deck, VerifyCall.Kind(isSigned: true, atLeast: 0))
            let ends = Shared<[Int]>([])
            DispatchQueue.global().async {
                DispatchQueue.concurrentPerform(iterations: 4) { number in
                    if call.end(.failure(ServiceError(.busy, detail: UInt32(number), ""))) {
                        ends.with { $0.append(number) }
                    }
                }
                ends.with { $0.append(-1) }
            }
            if round % 2 == 0 { await Task.yield() }
            await withUnsafeContinuation { _ = call.wait($0) }
            #expect(!call.isAwaited)
            while ends.value.last != -1 { await Task.yield() }
            #expect(ends.value.count == 2)
            // Nothing was told to a caller who had not begun to wait.
            guard case .failure(let error)? = call.outcome else { continue }
            #expect(error.detail == UInt32(ends.value[0]))
        }
    }

    @Test("Calls whose requests were given up keep no further ones waiting")
    func givenUp() async throws {
        let (first, _) = try await occupy()
        for call in first { call.cancel() }
        for call in first { _ = await call.value }
        let next = call(5)
        let asked = try await service.next()
        #expect(asked.keys == [5])
        service.answer(asked)
        #expect(await next.value == .success(SlowService.verdict(5)))
    }

    @Test(
        "A verdict that the client does not know refuses its proof and no other", arguments: [0, 4, 15, 30, 254, 255])
    func unknownVerdict(byte: UInt8) async throws {
        let (calls, packed) = try await pack(3)
        service.answer(packed, bytes: [1, byte, 28])
        let outcomes: [Verdict] = [.granted, .unknown, .badSignature]
        for (key, verdict) in zip(packed.keys, outcomes) {
            #expect(await calls[Int(key)].value == .success(verdict))
        }
        #expect(Verdict.unknown.isRefusal)
    }

    @Test("An answer with fewer verdicts than proofs is nobody's verdict")
    func tooFew() async throws {
        let (_, asked) = try await occupy()
        let calls = (0..<3).map { call(UInt64($0)) }
        try await settle()
        for request in asked { service.answer(request) }
        let packed = try await service.next()
        service.answer(
            SlowService.Asked(
                requestID: packed.requestID, operation: packed.operation, atLeast: 0, keys: [1, 2],
                collaborations: []))
        for call in calls {
            let outcome = await call.value
            #expect(throws: malformedAnswer) { try outcome.get() }
        }
    }

    private func newCall(
        _ proof: SignedIdentityProof, in collaboration: CollaborationIdentifier, _ kind: VerifyCall.Kind
    ) throws -> VerifyCall {
        VerifyCall(
            try ProofBatch.encoded(proof, isSigned: true), in: collaboration, kind, deadline: .now + .seconds(9))
    }

    @Test("Requests keep to the limits of proofs and bytes, and lose and repeat nothing")
    func limits() throws {
        var random = SeededGenerator(seed: runSeed)
        var line = VerifyLine()
        var nextID: UInt64 = 1 << 32
        var calls: [VerifyCall] = []
        for id in 0..<UInt64(3000) {
            let proof = PackingTests.proof(id, data: Int.random(in: 0...4096, using: &random))
            let name = try #require(CollaborationIdentifier("c\(id % 400)"))
            calls.append(try newCall(proof, in: name, VerifyCall.Kind(isSigned: id % 7 != 0, atLeast: id % 3)))
            line.append(calls[Int(id)], &nextID)
        }
        let packages = line.take(&nextID)
        #expect(packages.flatMap(\.calls).count == 3000, "seed \(runSeed)")
        #expect(Set(packages.flatMap(\.calls).map(ObjectIdentifier.init)) == Set(calls.map(ObjectIdentifier.init)))
        #expect(Set(packages.map(\.requestID)).count == packages.count)
        var few = 0
        for package in packages {
            #expect(package.calls.count <= Limits.packedProofsMax)
            #expect(package.calls.allSatisfy { $0.kind == package.calls[0].kind })
            let frame = try package.frame()
            #expect(frame.count <= Limits.frameHeaderBytes + Limits.packedBytesMax)
            if frame.count < Limits.packedBytesMax / 2 { few += 1 }
        }
        // Only the last one of each kind may be small.
        #expect(few <= 6)
        #expect(line.take(&nextID).isEmpty)
        // A further call waits as long as more are in flight.
        let last = try newCall(PackingTests.proof(1), in: deck, VerifyCall.Kind(isSigned: true, atLeast: 0))
        line.append(last, &nextID)
        var inFlight = calls.count
        var late: [VerifyCall] = []
        for package in packages {
            let taken = line.take(&nextID).flatMap(\.calls)
            #expect(taken.isEmpty || inFlight == 1, "seed \(runSeed)")
            late += taken
            #expect(line.removeAnswered(package.requestID)?.count == package.calls.count)
            inFlight -= package.calls.count
        }
        late += line.take(&nextID).flatMap(\.calls)
        #expect(late.map(ObjectIdentifier.init) == [ObjectIdentifier(last)], "seed \(runSeed)")
        #expect(line.removeAnswered(packages[0].requestID) == nil)
    }

    @Test("Calls that wait leave together when they are as many as those in flight")
    func asManyAsInFlight() throws {
        var line = VerifyLine()
        var nextID: UInt64 = 1 << 32
        func add(_ count: Int) throws -> [VerifyLine.Package] {
            var packages: [VerifyLine.Package] = []
            for key in 0..<UInt64(count) {
                let kind = VerifyCall.Kind(isSigned: true, atLeast: 0)
                line.append(try newCall(PackingTests.proof(key), in: deck, kind), &nextID)
                packages += line.take(&nextID)
            }
            return packages
        }
        var sent: [VerifyLine.Package] = []
        for size in [1, 1, 2, 4, 8, 16] {
            #expect(try add(size - 1).isEmpty)
            let next = try add(1)
            #expect(next.map(\.calls.count) == [size])
            sent += next
        }
        #expect(try add(20).isEmpty)
        // Ten are left in flight when those of 16, 4 and 2 are answered, or given up, or split.
        #expect(line.removeAnswered(sent[3].requestID) != nil)
        #expect(line.take(&nextID).isEmpty)
        for call in sent[2].calls { line.leave(call) }
        #expect(line.take(&nextID).isEmpty)
        #expect(line.removeAnswered(sent[5].requestID) != nil)
        #expect(line.take(&nextID).map(\.calls.count) == [20])
        let isSplit = line.split(sent[4].requestID, inTurn: true)
        #expect(isSplit)
        #expect(line.take(&nextID).map(\.calls.count) == [4])
        // 26 are in flight now, and the other half of 8 is due.
        #expect(try add(25).isEmpty)
        #expect(try add(1).map(\.calls.count) == [26])
    }
}
