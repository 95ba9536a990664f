import Core
import Testing
import Wire

@testable import RootgateClient

/// A line and the identifiers that its requests get.
private final class Scene {
    private var line = VerifyLine()
    private var nextID: UInt64 = 1 << 32

    /// Adds calls one by one and returns what has left.
    func add(_ count: Int) throws -> (calls: [VerifyCall], packages: [VerifyLine.Package]) {
        let deck = try #require(CollaborationIdentifier("deck"))
        let proof = SignedIdentityProof(
            publicKey: [4], publicKeyIndex: 1, inclusionHashes: [], signature: [1], signatureFormat: .der, data: [7])
        var calls: [VerifyCall] = []
        var packages: [VerifyLine.Package] = []
        for _ in 0..<count {
            let call = VerifyCall(
                try ProofBatch.encoded(proof, isSigned: true), in: deck, .init(isSigned: true, atLeast: 0),
                deadline: .now + .seconds(9))
            calls.append(call)
            line.append(call, &nextID)
            packages += line.take(&nextID)
        }
        return (calls, packages)
    }

    func take() -> [VerifyLine.Package] { line.take(&nextID) }

    func answer(_ package: VerifyLine.Package) -> Int? {
        line.removeAnswered(package.requestID)?.count
    }

    func postpone(_ package: VerifyLine.Package) -> Bool { line.postpone(package.requestID) }

    func leave(_ call: VerifyCall) { line.leave(call) }
}

@Suite("The proofs of a connection that wait")
struct VerifyLineTests {
    private static func end(_ call: VerifyCall) { call.end(.failure(ServiceError(.cancelled, ""))) }

    @Test("A caller who leaves after the line has forgotten the call takes nobody else's answer away")
    func lateLeaving() throws {
        let scene = Scene()
        let busy = try scene.add(4).packages
        let (calls, none) = try scene.add(3)
        #expect(busy.map(\.calls.count) == [1, 1, 2] && none.isEmpty)
        VerifyLineTests.end(calls[0])
        scene.leave(calls[0])
        // Its caller has not left yet when the next request is sent.
        VerifyLineTests.end(calls[1])
        for package in busy {
            let answered = scene.answer(package)
            #expect(answered == package.calls.count)
        }
        let packages = scene.take()
        #expect(packages.map(\.calls.count) == [1])
        scene.leave(calls[1])
        #expect(scene.answer(try #require(packages.first)) == 1)
    }

    @Test("The same for a request that is sent again")
    func lateLeavingOfOldRequest() throws {
        let scene = Scene()
        let busy = try scene.add(4).packages
        #expect(scene.postpone(busy[2]))
        VerifyLineTests.end(busy[2].calls[0])
        #expect(scene.answer(busy[0]) == 1)
        let again = scene.take()
        #expect(again.map(\.calls.count) == [1])
        scene.leave(busy[2].calls[0])
        #expect(scene.answer(try #require(again.first)) == 1)
    }

    @Test("Callers who are gone don't keep others waiting while their request is in flight")
    func gone() throws {
        let scene = Scene()
        let busy = try scene.add(64).packages
        let last = try #require(busy.last)
        #expect(last.calls.count == 32)
        for call in last.calls.dropFirst() {
            VerifyLineTests.end(call)
            scene.leave(call)
        }
        for package in busy.dropLast() { _ = scene.answer(package) }
        #expect(try scene.add(1).packages.map(\.calls.count) == [1])
    }

    @Test(
        "A request that meets a busy service is sent again when another one is answered, and then fewer are in flight")
    func postponed() throws {
        let scene = Scene()
        let sent = try scene.add(8).packages
        #expect(sent.map(\.calls.count) == [1, 1, 2, 4])
        #expect(scene.postpone(sent[3]))
        #expect(scene.take().isEmpty)
        // As many as are in flight, but three requests are.
        #expect(try scene.add(5).packages.isEmpty)
        #expect(scene.answer(sent[0]) == 1)
        let again = scene.take()
        #expect(again.map(\.calls.count) == [4])
        #expect(scene.answer(sent[1]) == 1)
        #expect(scene.take().isEmpty)
        #expect(scene.answer(sent[2]) == 2)
        #expect(scene.take().map(\.calls.count) == [5])
    }

    @Test("A lone request that meets a busy service is not postponed")
    func loneIsNotPostponed() throws {
        let scene = Scene()
        let sent = try scene.add(1).packages
        #expect(!scene.postpone(sent[0]))
    }

    @Test("After so many answers one more request may be in flight again")
    func moreAgain() throws {
        let scene = Scene()
        let sent = try scene.add(2).packages
        #expect(scene.postpone(sent[1]))
        #expect(scene.answer(sent[0]) == 1)
        var only = try #require(scene.take().first)
        for _ in 0..<62 {
            #expect(try scene.add(1).packages.isEmpty)
            #expect(scene.answer(only) != nil)
            only = try #require(scene.take().first)
        }
        // The 64th answer.
        #expect(try scene.add(1).packages.isEmpty)
        #expect(scene.answer(only) != nil)
        #expect(scene.take().count == 1)
        #expect(try scene.add(1).packages.count == 1)
    }
}
