import Collaboration
import Core
import Foundation
import Principals
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Wire

@testable import Server

/// The limits of principals, on a service whose clock stands still until it is moved.
@Suite("Limits of principals") struct PrincipalLimitsTests {
    private let milliseconds = Shared<UInt64>(1000)
    private let every: [CollaborationPrefix] = [.every]

    private func guarded() async throws -> GuardedService {
        try await GuardedService(clock: MonotonicClock { [milliseconds] in milliseconds.value })
    }

    /// A client of a new principal that may do everything but administer.
    private func client(
        _ name: String, _ limits: PrincipalLimits = PrincipalLimits(), on guarded: GuardedService
    ) async throws -> RootgateClient {
        try guarded.client(try await guarded.principal(name, roles, limits: limits))
    }

    private var roles: [LimitedRole] {
        PrincipalRole.allCases.filter { $0 != .administer }.map { LimitedRole($0, prefixes: every) }
    }

    /// The error that `body` throws.
    private func error(of body: () async throws -> Void) async -> ServiceError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? ServiceError
        }
    }

    private func figure(_ name: String, of client: RootgateClient) async throws -> UInt64? {
        try await client.statistics().first { $0.name == name }?.value
    }

    @Test("Proofs above the limit are busy with the time to wait, on all connections of the principal and on no other")
    func proofs() async throws {
        let guarded = try await self.guarded()
        let other = try await self.client("other", on: guarded)
        let small = try await SmallCollaboration(other)
        let proof = try await small.proof()
        let request = AccessRequest(collaboration: small.collaboration, proof: proof)
        let key = try await guarded.principal("p", roles, limits: PrincipalLimits(proofsPerSecond: 10))
        let clients = [try guarded.client(key), try guarded.client(key)]
        for number in 0..<10 { _ = try await clients[number % 2].verify([request]) }
        for client in clients {
            let busy = try #require(await error { _ = try await client.verify([request]) })
            #expect(busy.code == .busy && busy.retryAfter == .milliseconds(100), "\(busy)")
            #expect(busy.reason.contains("proofsPerSecond of 10"))
            _ = try await client.statistics()
        }
        _ = try await other.verify([AccessRequest](repeating: request, count: 100))
        #expect(try await figure("limited-proofs", of: other) == 2)
        milliseconds.with { $0 += 100 }
        // A batch that is larger than what a second allows is possible, and is paid for afterwards.
        _ = try await clients[0].verify([AccessRequest](repeating: request, count: 25))
        let indebted = try #require(await error { _ = try await clients[1].verify([request]) })
        #expect(indebted.retryAfter == .milliseconds(2500))
        milliseconds.with { $0 += 2499 }
        #expect(await error { _ = try await clients[1].verify([request]) }?.retryAfter == .milliseconds(1))
        milliseconds.with { $0 += 1 }
        _ = try await clients[1].verify([request])
    }

    @Test("The Python client tells how long to wait", .enabled(if: python != nil, "needs python3 with cryptography"))
    func pythonClient() async throws {
        let guarded = try await self.guarded()
        let key = try await guarded.principal("p", roles, limits: PrincipalLimits(proofsPerSecond: 4))
        let endpoint = guarded.service.endpoint
        let program = """
            from rootgate import Client, RootgateError
            client = Client("\(endpoint)", key="\(key.text)")
            client.issue_challenges(4)
            try:
                client.issue_challenges(1)
            except RootgateError as error:
                print(error.retry_after)
            try:
                client.count_roots("none")
            except RootgateError as error:
                print(error.retry_after)
            """
        let result = try runProgram(
            try #require(python), ["-c", program],
            environment: pythonEnvironment)
        #expect(result.output == "0.25\nNone\n", "\(result)")
    }

    @Test("A limit of proofs allows as many challenges, and eight times as many grants, apart from proofs")
    func challenges() async throws {
        let guarded = try await self.guarded()
        let client = try await self.client("p", PrincipalLimits(proofsPerSecond: 10), on: guarded)
        _ = try await client.challenges(10)
        #expect(await error { _ = try await client.challenges(1) }?.code == .busy)
        let owner = try await self.client("owner", on: guarded)
        let small = try await SmallCollaboration(owner)
        _ = try await client.verify(try await small.proofs(10))
        let allowance = PrincipalAllowance(
            PrincipalLimits(proofsPerSecond: 10), MonotonicClock { 0 }, LimitRefusals())
        var cost = RequestCost(.ping([]), nil)
        #expect(cost == RequestCost(.statistics, nil))
        cost.grants = 1
        for _ in 0..<80 { try allowance.spend(cost) }
        #expect(thrownServiceError { try allowance.spend(cost) }?.code == .busy)
    }

    @Test("Other limits hold at once on open connections, and a limit of 0 is said to be one")
    func liveChange() async throws {
        let guarded = try await self.guarded()
        let name = try GuardedService.name("p")
        let client = try await self.client("p", PrincipalLimits(proofsPerSecond: 10), on: guarded)
        _ = try await client.challenges(10)
        #expect(await error { _ = try await client.challenges(1) }?.code == .busy)
        func set(_ limits: PrincipalLimits?) async throws {
            _ = try await guarded.administrator.send(UpdatePrincipal(name, limits: Patch(limits)))
        }
        try await set(PrincipalLimits(proofsPerSecond: 1000))
        #expect(await error { _ = try await client.challenges(1) }?.retryAfter == .milliseconds(1))
        milliseconds.with { $0 += 1 }
        _ = try await client.challenges(1)
        try await set(PrincipalLimits(proofsPerSecond: 0, mutationsPerSecond: 0))
        let refusal = try #require(await error { _ = try await client.challenges(1) })
        #expect(refusal.code == .limitExceeded && refusal.reason == "the principal's limit proofsPerSecond is 0")
        try await set(nil)
        for _ in 0..<20 { _ = try await client.challenges(4096) }
        try await set(PrincipalLimits(proofsPerSecond: 10))
        try guarded.service.restart()
        let again = try #require(await becomesAnswered { _ = try await client.challenges(11) })
        #expect(again == 0)
        #expect(await error { _ = try await client.challenges(1) }?.code == .busy)
    }

    /// How many errors other than `connectionLost` came before an answer.
    private func becomesAnswered(_ body: () async throws -> Void) async -> Int? {
        var others = 0
        for _ in 0..<1000 {
            guard let error = await error(of: body) else { return others }
            if error.code != .connectionLost { others += 1 }
        }
        return nil
    }

    @Test("Removals go on above the limit of mutations, as far as a reserve that is bounded")
    func removals() async throws {
        let guarded = try await self.guarded()
        let small = try await SmallCollaboration(try await self.client("owner", on: guarded))
        let client = try await self.client("p", PrincipalLimits(mutationsPerSecond: 1), on: guarded)
        var random = SeededGenerator(seed: runSeed)
        let root = random.digest()
        try await client.addRoots([root], to: small.collaboration)
        let busy = try #require(await error { try await client.addRoots([root], to: small.collaboration) })
        #expect(busy.code == .busy && busy.retryAfter == .milliseconds(1000))
        let share = await error { _ = try await client.send(StopSharing(small.collaboration)) }
        #expect(share?.code != .busy)
        for number in 1..<Limits.removalsAtOnceReserve {
            let error = await error { try await client.removeRoots([root], from: small.collaboration) }
            #expect(error?.code != .busy, "removal \(number)")
        }
        let above = try #require(await error { try await client.removeRoots([root], from: small.collaboration) })
        #expect(above.code == .busy && above.retryAfter == .milliseconds(16))
        #expect(try await figure("limited-mutations", of: client) == 2)
        milliseconds.with { $0 += 16 }
        #expect(await error { try await client.removeRoots([root], from: small.collaboration) }?.code != .busy)
    }

    @Test("A request that lets somebody in is no removal, and every one that takes away is")
    func removalsByName() throws {
        func isRemoval(_ request: any RuledRequest) -> Bool {
            let call = CollaborationCall(identifier: .random(), name: type(of: request).name, json: [])
            let cost = RequestCost(.collaborate(call), request)
            #expect(cost.mutations == 1)
            return cost.isRemoval
        }
        let deck = try #require(CollaborationIdentifier("deck"))
        let person = PersonIdentity(rootHash: try #require(Digest([UInt8](repeating: 7, count: 32))))
        let name = try GuardedService.name("p")
        let key = APIKey.random()
        #expect(isRemoval(RemoveParticipants([person], from: deck)))
        #expect(isRemoval(UpdateParticipants(of: deck, removing: [person])))
        #expect(!isRemoval(UpdateParticipants(of: deck, adding: [NewParticipant(person)], removing: [person])))
        #expect(
            isRemoval(StopSharing(deck)) && isRemoval(RemovePrincipal(name)) && isRemoval(RemoveKey(key.identifier)))
        #expect(!isRemoval(CreatePrincipal(name, roles: [])) && !isRemoval(AddKey(NewKey(KeyHash(key)), to: name)))
        #expect(RequestCost(.mutate(Mutation(.dropCollaboration(deck))), nil).isRemoval)
        #expect(!RequestCost(.mutate(Mutation(.addRoots(deck, []))), nil).isRemoval)
        #expect(RequestCost(.issueChallenges(count: 5), nil).challenges == 5)
    }

    @Test("Requests above the limit in flight are busy, and those that are answered make room")
    func inFlight() async throws {
        let guarded = try await self.guarded()
        let key = try await guarded.principal("p", roles, limits: PrincipalLimits(requestsInFlight: 1))
        let peer = try guarded.peer(key)
        var bytes: [UInt8] = []
        for number in 0..<200 {
            FrameWriter.append(.request, Operation.statistics.rawValue, requestID: UInt64(number), to: &bytes) { _ in }
        }
        peer.send(bytes)
        var busy = 0
        for _ in 0..<200 {
            let (header, body) = try #require(peer.readFrame())
            guard header.kind == .error else { continue }
            let error = try body.withRawBytes { bytes throws(ServiceError) in try FrameWriter.decodeError(bytes) }
            #expect(error.code == .busy && error.retryAfter == .milliseconds(100), "\(error)")
            busy += 1
        }
        #expect(busy > 0 && busy < 200)
        #expect(try peer.code(.statistics, []) == nil)
    }

    @Test("Removals in flight have a reserve of their own, and every count goes back")
    func reserves() throws {
        let refusals = LimitRefusals()
        let allowance = PrincipalAllowance(
            PrincipalLimits(requestsInFlight: 2, requestBytes: 5000, followers: 1), MonotonicClock { 0 }, refusals)
        for _ in 0..<2 { try allowance.takeRequest(isRemoval: false) }
        #expect(thrownServiceError { try allowance.takeRequest(isRemoval: false) }?.code == .busy)
        for _ in 0..<Limits.removalsInFlightReserve { try allowance.takeRequest(isRemoval: true) }
        #expect(thrownServiceError { try allowance.takeRequest(isRemoval: true) }?.code == .busy)
        for _ in 0..<Limits.removalsInFlightReserve + 1 { allowance.giveBackRequest() }
        try allowance.takeRequest(isRemoval: false)
        try allowance.takeFollower()
        #expect(thrownServiceError { try allowance.takeFollower() }?.code == .busy)
        allowance.giveBackFollower()
        try allowance.takeFollower()
        #expect(allowance.bytesMax(isRemoval: false) == 5000)
        #expect(allowance.bytesMax(isRemoval: true) == 5000 + Limits.removalBytesReserve)
        #expect(allowance.refuse(bytes: 5000, isRemoval: false).code == .busy)
        #expect(allowance.refuse(bytes: 5001, isRemoval: false).code == .limitExceeded)
        let counts = Dictionary(uniqueKeysWithValues: refusals.counts.map { ($0.kind, $0.count) })
        #expect(counts[.requestsInFlight] == 2 && counts[.followers] == 1 && counts[.requestBytes] == 2)
    }

    @Test("A principal holds no more bytes than its limit, and a request that is longer says so")
    func bytes() async throws {
        let guarded = try await self.guarded()
        let owner = try await self.client("owner", on: guarded)
        let small = try await SmallCollaboration(owner)
        var random = SeededGenerator(seed: runSeed)
        let roots = (0..<5000).map { _ in random.digest() }
        try await owner.addRoots(roots, to: small.collaboration)
        let limit = 200 << 10
        let key = try await guarded.principal("p", roles, limits: PrincipalLimits(requestBytes: limit))
        let client = try guarded.client(key)
        let long = (0..<10_000).map { _ in random.digest() }
        let refusal = try #require(await error { _ = try await client.testRoots(long, in: small.collaboration) })
        #expect(refusal.code == .limitExceeded && Int(refusal.detail) == limit, "\(refusal)")
        // Pages that nobody reads.
        let peers = try (0..<2).map { _ in try guarded.peer(key) }
        var pages: [UInt8] = []
        for number in 0..<100 {
            let request = Request.listRoots(small.collaboration, after: nil, limit: 4096)
            FrameWriter.append(.request, request.operation.rawValue, requestID: UInt64(number), to: &pages) {
                request.append(to: &$0)
            }
        }
        for peer in peers { peer.send(pages) }
        let memory = guarded.service.service.memory
        var most = 0
        for _ in 0..<500 {
            most = max(most, memory.heldBytes)
            usleep(1000)
        }
        #expect(most <= limit + (64 << 10), "\(most) bytes are held")
        let limited = try await figure("limited-bytes", of: owner)
        #expect(limited ?? 0 > 1)
        _ = try await owner.roots(of: small.collaboration)
    }

    @Test("The longest removal passes whatever the limit of bytes is, and a request too long with its frame says so")
    func longRequests() async throws {
        let guarded = try await self.guarded()
        let small = try await SmallCollaboration(try await self.client("owner", on: guarded))
        var random = SeededGenerator(seed: runSeed)
        let most = (0..<Limits.rootsPerRequestMax).map { _ in random.digest() }
        let name = try GuardedService.name("p")
        let client = try await self.client("p", PrincipalLimits(), on: guarded)
        let proofs = try await small.proofs(1500)
        for limit in [0, 1000, 300_000, 900_000] {
            let limits = PrincipalLimits(requestBytes: limit)
            _ = try await guarded.administrator.send(UpdatePrincipal(name, limits: Patch(limits)))
            try await client.removeRoots(most, from: small.collaboration)
            func expectTooLong(_ body: () async throws -> Void) async {
                let refusal = await error(of: body)
                #expect(
                    refusal?.code == .limitExceeded && refusal.map { Int($0.detail) } == limit,
                    "\(limit): \(refusal as Any)")
            }
            // Half of it and more has room once, but not beside its frame.
            let roots = Array(most[..<max(1, limit / 32 * 2 / 3)])
            if limit != 300_000 { await expectTooLong { try await client.addRoots(roots, to: small.collaboration) } }
            if limit <= 300_000 { await expectTooLong { _ = try await client.verify(proofs) } }
        }
        try await client.addRoots(Array(most[..<13_000]), to: small.collaboration)
    }

    @Test("Above its reserve a removal waits, also where a limit is 0")
    func removalsAtZero() throws {
        let allowance = PrincipalAllowance(
            PrincipalLimits(requestsInFlight: 0, mutationsPerSecond: 0), MonotonicClock { 0 }, LimitRefusals())
        let deck = try #require(CollaborationIdentifier("deck"))
        let removal = RequestCost(.mutate(Mutation(.dropCollaboration(deck))), nil)
        for _ in 0..<Limits.removalsAtOnceReserve { try allowance.spend(removal) }
        let refusal = try #require(thrownServiceError { try allowance.spend(removal) })
        #expect(refusal.code == .busy && refusal.retryAfter == .milliseconds(16))
        for _ in 0..<Limits.removalsInFlightReserve { try allowance.takeRequest(isRemoval: true) }
        let full = try #require(thrownServiceError { try allowance.takeRequest(isRemoval: true) })
        #expect(full.code == .busy && full.retryAfter == .milliseconds(Int(Limits.occupiedMilliseconds)))
        #expect(thrownServiceError { try allowance.takeRequest(isRemoval: false) }?.code == .limitExceeded)
    }

    @Test("Queries that wait above the limit are busy, and those that have ended make room")
    func followers() async throws {
        let guarded = try await self.guarded()
        let account = try #require(Account("ana"))
        let client = try await self.client("p", PrincipalLimits(followers: 2), on: guarded)
        var query = ReadShelf(of: account, for: .everyApp, limit: 1)
        query.after = try await client.send(query).version
        query.waitMilliseconds = 60_000
        let waiting = [query, query].map { query in Task { try await client.send(query) } }
        #expect(becomesTrue { guarded.service.service.suspendedQueries == 2 })
        let third = query
        let refusal = await error { _ = try await client.send(third) }
        let busy = try #require(refusal)
        #expect(busy.code == .busy && busy.retryAfter == .milliseconds(100))
        #expect(busy.reason.contains("followers of 2"))
        #expect(try await figure("limited-followers", of: client) == 1)
        _ = try await client.send(SetConsent(of: account, .everything, isAllowed: true))
        for task in waiting { query.after = try await task.value.version }
        let next = Task { [query] in try await client.send(query) }
        #expect(becomesTrue { guarded.service.service.suspendedQueries == 1 })
        milliseconds.with { $0 += 60_000 }
        _ = try await next.value
    }

    @Test("A connection that sends masses above a limit is read more slowly, and others of its principal are not")
    func heldBack() async throws {
        let guarded = try await GuardedService()
        let small = try await SmallCollaboration(try await self.client("owner", on: guarded))
        let key = try await guarded.principal("p", roles, limits: PrincipalLimits(mutationsPerSecond: 1))
        let peer = try guarded.peer(key)
        let count = 2000
        var bytes: [UInt8] = []
        for number in 0..<count {
            let request = Request.mutate(Mutation(.addRoots(small.collaboration, [small.person.rootHash])))
            FrameWriter.append(.request, request.operation.rawValue, requestID: UInt64(number), to: &bytes) {
                request.append(to: &$0)
            }
        }
        let removal = Request.mutate(Mutation(.removeRoots(small.collaboration, [small.person.rootHash])))
        FrameWriter.append(.request, removal.operation.rawValue, requestID: UInt64(count), to: &bytes) {
            removal.append(to: &$0)
        }
        let start = ContinuousClock.now
        peer.send(bytes)
        let other = try guarded.client(key)
        _ = try await other.statistics()
        #expect(ContinuousClock.now - start < .seconds(5))
        var refused = 0
        for _ in 0...count {
            let (header, body) = try #require(peer.readFrame())
            if header.kind == .error { refused += 1 }
            if header.requestID == UInt64(count) { #expect(header.kind == .answer, "\(body)") }
        }
        #expect(refused >= count - 60)
        // Turns of 32 refusals, 5 ms apart.
        #expect(ContinuousClock.now - start > .milliseconds(count / 32 * 5 / 2))
    }
}
