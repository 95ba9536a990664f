import Core
import Dispatch
import Foundation
import Identity
import RootgateClient
import Server
import ServiceTestSupport
import TestSupport
import Testing
import Transport
import Verification
import Wire

@Suite struct ConnectionTests {
    private func header(length: UInt32 = 0, version: UInt8 = 1, kind: UInt8 = 1, operation: UInt16 = 2) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendInteger(length)
        bytes += [version, kind]
        bytes.appendInteger(operation)
        bytes.appendInteger(UInt64(77))
        return bytes
    }

    @Test(
        "Broken framing is answered and closed",
        arguments: [
            (ServiceError.Code.unsupportedVersion, UInt32(0), UInt8(9), UInt8(1)),
            (.malformedFrame, 0, 1, 2), (.malformedFrame, 0, 1, 0),
            (.frameTooLarge, UInt32(Limits.frameBodyBytesMax) + 1, 1, 1), (.frameTooLarge, .max, 1, 1),
        ])
    func brokenFramingIsAnsweredAndClosed(_ code: ServiceError.Code, _ length: UInt32, _ version: UInt8, _ kind: UInt8)
        async throws
    {
        let service = try TestService()
        let peer = try RawPeer(service.endpoint)
        peer.send(header(length: length, version: version, kind: kind) + [UInt8](repeating: 0, count: 1000))
        let (answer, error) = try #require(try peer.readError())
        #expect(error.code == code)
        #expect(answer.operation == 0)
        #expect(answer.requestID == 77)
        #expect(peer.isClosed)
    }

    @Test("Bad requests leave the connection usable")
    func badRequestsLeaveTheConnectionUsable() async throws {
        let service = try TestService()
        let peer = try RawPeer(service.endpoint)
        let cases: [(operation: UInt16, body: [UInt8], code: ServiceError.Code)] = [
            (0x7777, [], .unknownOperation), (0, [], .unknownOperation),
            (Operation.ping.rawValue, [UInt8](repeating: 0, count: 65), .limitExceeded),
            (Operation.verify.rawValue, [1, 2, 3], .malformedRequest),
            (Operation.issueChallenges.rawValue, [0xff, 0xff, 0xff, 0xff], .limitExceeded),
            (Operation.countRoots.rawValue, [3, 1, 2, 3], .malformedRequest),
            (Operation.countRoots.rawValue, [3] + Array("abc".utf8), .unknownCollaboration),
            (Operation.hello.rawValue, [7, 9, 0, 0], .unsupportedVersion),
        ]
        for (number, wrong) in cases.enumerated() {
            peer.send(wrong.operation, id: UInt64(number), body: wrong.body)
            let (answer, error) = try #require(try peer.readError())
            #expect(error.code == wrong.code)
            #expect(answer.requestID == UInt64(number))
            #expect(answer.operation == wrong.operation)
        }
        peer.send(.ping([1, 2, 3]), id: 99)
        let pong = try #require(peer.readFrame())
        #expect(pong.body == [1, 2, 3])
    }

    @Test("Garbage of every length never hangs or crashes the service")
    func garbageOfEveryLengthNeverHangsOrCrashesTheService() async throws {
        let service = try TestService { $0.times.stall = 1 }
        var generator = SeededGenerator(seed: runSeed)
        for _ in 0..<200 {
            let peer = try RawPeer(service.endpoint)
            peer.send(generator.bytes(Int.random(in: 1...400, using: &generator)))
        }
        for operation in Operation.allCases {
            let peer = try RawPeer(service.endpoint)
            for id in 0..<50 {
                peer.send(
                    operation.rawValue, id: UInt64(id),
                    body: generator.bytes(Int.random(in: 0...200, using: &generator)))
            }
            for _ in 0..<50 { #expect(peer.readFrame() != nil, "operation \(operation), seed \(runSeed)") }
        }
        try await service.client().ping()
    }

    @Test("Many pipelined requests are all answered")
    func manyPipelinedRequestsAreAllAnswered() async throws {
        let service = try TestService()
        let peer = try RawPeer(service.endpoint)
        // Far more requests than may be in flight are sent at once: the service stops reading and resumes by itself.
        var bytes: [UInt8] = []
        for id in 0..<3000 {
            FrameWriter.append(.request, Operation.statistics.rawValue, requestID: UInt64(id), to: &bytes)
        }
        let sender = Thread { [bytes] in peer.send(bytes) }
        sender.start()
        var ids: Set<UInt64> = []
        for _ in 0..<3000 { ids.insert(try #require(peer.readFrame()).header.requestID) }
        #expect(ids.count == 3000)
    }

    @Test("A frame that comes byte by byte is understood")
    func aFrameThatComesByteByByteIsUnderstood() async throws {
        let service = try TestService()
        let peer = try RawPeer(service.endpoint)
        var bytes: [UInt8] = []
        FrameWriter.append(.request, Operation.ping.rawValue, requestID: 5, to: &bytes) { $0 += [4, 5, 6] }
        for byte in bytes {
            peer.send([byte])
            usleep(1000)
        }
        #expect(peer.readFrame()?.body == [4, 5, 6])
    }

    @Test("A largest frame is understood")
    func aLargestFrameIsUnderstood() async throws {
        let service = try TestService()
        let client = try service.client()
        let small = try await SmallCollaboration(client)
        var generator = SeededGenerator(seed: runSeed)
        let roots = (0..<Limits.rootsPerRequestMax).map { _ in generator.digest() }
        #expect(try await client.addRoots(roots, to: small.collaboration).changed == UInt64(roots.count))
        #expect(try await client.testRoots(roots, in: small.collaboration).allSatisfy { $0 })
        await #expect(throws: ServiceError(.limitExceeded, "")) {
            try await client.testRoots(roots + [.zero], in: small.collaboration)
        }
    }

    @Test("A peer that never finishes its frame is closed")
    func aPeerThatNeverFinishesItsFrameIsClosed() async throws {
        let service = try TestService { $0.times.stall = 1 }
        let peer = try RawPeer(service.endpoint)
        peer.send(header(length: 100))
        #expect(peer.isClosed)
    }

    @Test("A silent peer is closed")
    func aSilentPeerIsClosed() async throws {
        let service = try TestService { $0.times.idle = 1 }
        let peer = try RawPeer(service.endpoint)
        #expect(peer.isClosed)
    }

    @Test("A peer that reads nothing is closed and costs bounded memory")
    func aPeerThatReadsNothingIsClosedAndCostsBoundedMemory() async throws {
        let service = try TestService { $0.times.stall = 1 }
        let client = try service.client()
        let small = try await SmallCollaboration(client)
        var generator = SeededGenerator(seed: runSeed)
        try await client.addRoots((0..<4096).map { _ in generator.digest() }, to: small.collaboration)
        let peer = try RawPeer(service.endpoint)
        let sender = Thread {
            for id in 0..<1000 { peer.send(.listRoots(small.collaboration, after: nil, limit: 4096), id: UInt64(id)) }
        }
        sender.start()
        var closed = false
        for _ in 0..<100 where !closed {
            try await Task.sleep(for: .milliseconds(100))
            let figures = Dictionary(uniqueKeysWithValues: try await client.statistics().map { ($0.name, $0.value) })
            closed = figures["connections"] == 1
        }
        #expect(closed)
    }

    @Test("When all places are taken, the connection that was idle for the longest time goes, and is told so")
    func theLongestIdleGoes() async throws {
        let service = try TestService { $0.connectionsMax = 4 }
        var peers: [RawPeer] = []
        for _ in 0..<2 {
            peers.append(try RawPeer(service.endpoint))
            peers[peers.count - 1].send(.ping([]), id: 1)
            #expect(peers[peers.count - 1].readFrame() != nil)
            try await Task.sleep(for: .milliseconds(5))
        }
        // The first one is used again, so it is the second that goes.
        peers[0].send(.ping([]), id: 2)
        #expect(peers[0].readFrame() != nil)
        let third = try RawPeer(service.endpoint)
        third.send(.ping([7]), id: 3)
        #expect(third.readFrame()?.body == [7])
        #expect(try peers[1].readError()?.error.code == .tooManyConnections)
        #expect(peers[1].isClosed)
        peers[0].send(.ping([8]), id: 4)
        #expect(peers[0].readFrame()?.body == [8])
    }

    @Test("A peer that connects again and again, and reads nothing, has no more connections than are told to go")
    func connectsAgain() async throws {
        let service = try TestService { $0.connectionsMax = 4 }
        var peers: [RawPeer] = []
        for _ in 0..<600 { peers.append(try RawPeer(service.endpoint)) }
        let client = try service.client()
        let figures = try await client.statistics()
        #expect(try #require(figures.first { $0.name == "connections-accepted" }).value > Limits.leavingConnectionsMax)
        // A loop may still have some to close.
        let most = 4 + Limits.leavingConnectionsMax + 64
        #expect(try #require(figures.first { $0.name == "connections" }).value <= most)
    }

    @Test("A full service answers busy and recovers")
    func aFullServiceAnswersBusyAndRecovers() async throws {
        let service = try TestService {
            Self.slow(&$0)
            $0.waitingProofsMax = 128
        }
        let client = try service.client()
        let small = try await SmallCollaboration(client)
        // A machine that is busy with other things may hold back the requests and not the worker: then again.
        var outcomes: [Result<[AccessDecision], ServiceError>] = []
        var errors: [ServiceError] { outcomes.compactMap { if case .failure(let error) = $0 { error } else { nil } } }
        for _ in 0..<50 where errors.isEmpty {
            outcomes += await Self.outcomes(of: try await small.proofs(600), by: client)
        }
        let answered = outcomes.compactMap { try? $0.get() }.flatMap { $0 }
        #expect(!answered.isEmpty)
        #expect(answered.allSatisfy { $0.verdict == .granted })
        #expect(!errors.isEmpty && errors.allSatisfy { $0.code == .busy }, "\(errors)")
        #expect(try await client.verify(Array(try await small.proofs(10))).allSatisfy { $0.verdict == .granted })
    }

    /// The answers to 600 proofs that are sent at once, in ten requests.
    private static func outcomes(
        of proofs: [AccessRequest], by client: RootgateClient
    ) async -> [Result<[AccessDecision], ServiceError>] {
        await withTaskGroup(of: Result<[AccessDecision], ServiceError>.self) { group in
            for start in stride(from: 0, to: 600, by: 60) {
                group.addTask {
                    do throws(ServiceError) {
                        return .success(try await client.verify(Array(proofs[start..<start + 60])))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// A service of one worker without kernels: thousands of proofs keep it busy until the test shuts it down.
    private static func slow(_ configuration: inout Configuration) {
        configuration.workers = 1
        configuration.usesSignatureKernels = false
    }

    @Test("Shutting down answers what was accepted and then closes")
    func shuttingDownAnswersWhatWasAcceptedAndThenCloses() async throws {
        let service = try TestService(Self.slow)
        let client = try service.client()
        let proofs = try await SmallCollaboration(client).proofs(4000)
        let shutdown = ShutdownUnderWork(service, isForced: false)
        let answered = try await client.verify(proofs)
        #expect(answered.count { $0.verdict == .granted } == 4000)
        #expect(shutdown.result == .drained)
        await #expect(throws: ServiceError.self) {
            try await RootgateClient(service.endpoint, configuration: .init(requestTimeout: .milliseconds(300))).ping()
        }
    }

    @Test("A forced shutdown does not wait")
    func aForcedShutdownDoesNotWait() async throws {
        let service = try TestService(Self.slow)
        let client = try service.client()
        let proofs = try await SmallCollaboration(client).proofs(4000)
        let shutdown = ShutdownUnderWork(service, isForced: true)
        let answered: [AccessDecision]? = try? await client.verify(proofs)
        #expect(answered == nil)
        #expect(shutdown.result == .forced)
    }

    @Test("Addresses other than loopback are refused unless they are allowed")
    func otherThanLoopbackNeedsToBeMeant() throws {
        let failure = startupFailure { _ = try TestService { $0.endpoints = [Endpoint(host: "0.0.0.0", port: 0)] } }
        guard case .plainText(let endpoint) = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(endpoint.host == "0.0.0.0")
        #expect(failure?.description.contains("0.0.0.0:0: it is not a loopback address") == true)
        let open = try TestService {
            $0.endpoints = [Endpoint(host: "0.0.0.0", port: 0)]
            $0.allowsPlainText = true
        }
        #expect(open.endpoint.port != 0)
    }

    @Test("Addresses of IPv6 are listened on where they exist")
    func versionSixAddressesAreListenedOnWhereTheyExist() async throws {
        guard let service = try? TestService({ $0.endpoints = [Endpoint(host: "::1", port: 0)] }) else {
            print("SKIPPED: there is no IPv6 loopback here")
            return
        }
        try await service.client().ping()
    }

    @Test("A second service on the same data is refused")
    func aSecondServiceOnTheSameDataIsRefused() throws {
        let service = try TestService()
        let failure = startupFailure { _ = try TestService(directory: service.directory) }
        guard case .storage(let directory, let error) = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(error.code == .storageInUse)
        #expect(directory == service.directory.path + "/data")
        #expect(failure?.isInUse == true)
    }

    private func startupFailure(_ start: () throws -> Void) -> StartupFailure? {
        thrown(StartupFailure.self, start)
    }

    @Test("A taken port is named, and what was opened before it was found is closed again")
    func takenPort() throws {
        let service = try TestService()
        let directory = ScratchDirectory()
        let failure = startupFailure { _ = try TestService(directory: directory) { $0.endpoints = [service.endpoint] } }
        guard case .portTaken(service.endpoint) = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(failure?.description.hasPrefix("port \(service.endpoint.port) on 127.0.0.1 is taken") == true)
        #expect(failure?.isInUse == true)
        _ = try TestService(directory: directory)
    }

    @Test("Addresses that can't be listened on, storage that can't be opened and a broken link base say so")
    func otherStartupFailures() throws {
        for allowsPlainText in [false, true] {
            let nowhere = startupFailure {
                _ = try TestService {
                    $0.endpoints = [Endpoint(host: "999.999.999.999", port: 0)]
                    $0.allowsPlainText = allowsPlainText
                }
            }
            guard case .unresolved = nowhere else {
                Issue.record("\(String(describing: nowhere))")
                return
            }
            let text = "can't listen on 999.999.999.999:0: the host can't be resolved ("
            #expect(nowhere?.description.hasPrefix(text) == true)
        }
        // An address that no interface of this machine has (RFC 5737).
        guard
            case .cannotListen = startupFailure({
                _ = try TestService {
                    $0.endpoints = [Endpoint(host: "192.0.2.1", port: 0)]
                    $0.allowsPlainText = true
                }
            })
        else {
            Issue.record("an address that this machine does not have was listened on")
            return
        }
        let directory = ScratchDirectory()
        try Data("a file".utf8).write(to: URL(fileURLWithPath: directory.path + "/data"))
        guard case .storage(_, let error) = startupFailure({ _ = try TestService(directory: directory) }) else {
            Issue.record("a file served as a directory")
            return
        }
        #expect(error.code == .storageFailed)
        let bases = [
            "": "it is no URL with a host", "nothing": "it is no URL with a host",
            "https:///c": "it is no URL with a host",
            "http://example.com/c": "its scheme is not https", "https://me@example.com/c": "it has user information",
            "https://example.com/c?": "it has a query or a fragment",
            "https://example.com/c#a": "it has a query or a fragment",
            "https://example.com/" + String(repeating: "c", count: 1005): "it has more than 1024 bytes",
        ]
        for (base, reason) in bases {
            let failure = startupFailure { _ = try TestService { $0.linkBase = base } }
            guard case .linkBase(base, reason) = failure else {
                Issue.record("\(base) served as a link base")
                continue
            }
            #expect(failure?.description == "the link base \(base) can't be used: \(reason)")
        }
    }
}

/// Shuts a service down once proofs wait in it: on a thread of its own, because a task may have to wait for other
/// tests until long after the proofs are verified.
private final class ShutdownUnderWork: Sendable {
    private let outcome = Lock<Service.Ending?>(nil)
    private let ended = DispatchSemaphore(value: 0)

    init(_ service: TestService, isForced: Bool) {
        Thread { [self] in
            defer { ended.signal() }
            for _ in 0..<300_000 where service.service.pool.depth == 0 { usleep(100) }
            guard service.service.pool.depth > 0 else { return }
            let result = service.service.shutDown(isForced: { isForced })
            outcome.withLock { $0 = result }
        }.start()
    }

    /// `nil` when no proof was seen waiting.
    var result: Service.Ending? {
        ended.wait()
        defer { ended.signal() }
        return outcome.withLock { $0 }
    }
}
