import Core
import Dispatch
import Etcd
import EtcdTestSupport
import Foundation
import RootSets
import TestSupport
import Testing

@testable import Cluster

@Suite("Gates of a cluster", .serialized, .enabled(if: etcd != nil, "there is no program etcd"))
struct GateTests {
    private let name: LogName

    init() throws { name = try #require(LogName("gates")) }

    /// Gates with storages of their own.
    private final class Scene {
        let processes: EtcdProcesses
        let scratch = ScratchDirectory()
        private(set) var gates: [RootSets] = []
        private let name: LogName

        init(_ name: LogName, members count: Int = 1, gates: Int, _ words: [String] = []) throws {
            self.name = name
            processes = try EtcdProcesses(members: count, words)
            for number in 0..<gates { self.gates.append(try open(number)) }
        }

        func open(_ number: Int, _ adjust: (inout ClusterSettings) -> Void = { _ in }) throws -> RootSets {
            var settings = ClusterSettings(processes.endpoints, name: name)
            settings.firstMember = number
            adjust(&settings)
            let configuration = RootSets.Configuration(
                directory: "\(scratch.path)/gate-\(number)", sizeLimitBytes: 1 << 30, reserveBytes: 1 << 20)
            for _ in 0..<5000 {
                do throws(ServiceError) {
                    return try RootSets(configuration, of: settings)
                } catch {
                    guard error.code == .storageInUse else { throw error }
                    usleep(1000)
                }
            }
            throw ServiceError(.storageInUse, "a gate does not end")
        }

        /// Ends a gate.
        func close(_ number: Int) {
            gates.remove(at: number).close()
        }

        func end() {
            for gate in gates { gate.close() }
            processes.end()
        }
    }

    private func contents(_ gate: RootSets) throws -> SharedContents? {
        try gate.read { snapshot throws(ServiceError) in try snapshot.sharedContents() }
    }

    private func has(_ root: Digest, in deck: CollaborationIdentifier, _ gate: RootSets) throws -> Bool {
        try gate.read { snapshot throws(ServiceError) in try snapshot.test([root], in: deck) } == [true]
    }

    @Test("What one gate changes is at the others in moments, a later gate begins with the log, and one comes back")
    func following() throws {
        let scene = try Scene(name, gates: 2)
        defer { scene.end() }
        let deck = try #require(CollaborationIdentifier("deck"))
        var random = SeededGenerator(seed: runSeed)
        #expect(becomesTrue { scene.gates.allSatisfy(\.isFresh) })
        try scene.gates[0].apply(Mutation(.createCollaboration(deck, .challenge)))
        var times: [UInt64] = []
        for _ in 0..<30 {
            let root = random.digest()
            try scene.gates[0].apply(Mutation(.addRoots(deck, [root])))
            let began = MonotonicClock.nanoseconds
            #expect(becomesTrue { (try? has(root, in: deck, scene.gates[1])) == true })
            times.append((MonotonicClock.nanoseconds - began) / 1000)
        }
        print("a change is at the other gate \(times.sorted()[15]) us after its answer, at most \(times.max() ?? 0)")
        let late = try scene.open(2)
        #expect(becomesTrue { (try? contents(late)) == (try? contents(scene.gates[0])) && late.isFresh })
        late.close()
        scene.close(1)
        try scene.gates[0].apply(Mutation(.removeRoots(deck, [random.digest()])))
        let again = try scene.open(1)
        #expect(becomesTrue { (try? contents(again)) == (try? contents(scene.gates[0])) && again.isFresh })
        again.close()
    }

    @Test("A gate without etcd is not fresh after its time, refuses changes, and recovers by itself")
    func withoutEtcd() throws {
        let scene = try Scene(name, gates: 0)
        defer { scene.end() }
        let gate = try scene.open(0) { $0.stalenessMilliseconds = 500 }
        let deck = try #require(CollaborationIdentifier("deck"))
        #expect(becomesTrue { gate.isFresh })
        try gate.apply(Mutation(.createCollaboration(deck, .challenge)))
        scene.processes.kill(0)
        usleep(600_000)
        #expect(!gate.isFresh)
        let refusal = thrown(ServiceError.self) { try gate.apply(Mutation(.addRoots(deck, [.zero]))) }
        #expect(refusal?.code == .busy && refusal?.reason.contains("the shared log does not answer") == true)
        #expect(gate.sharingProblem?.contains("the shared log does not answer") == true)
        try scene.processes.start(0)
        #expect(becomesTrue { gate.isFresh })
        #expect(try gate.apply(Mutation(.addRoots(deck, [.zero]))).changed == 1)
        // Nobody looked for a second: what was true before may not be any more.
        scene.processes.signal(SIGSTOP, 0)
        usleep(700_000)
        #expect(!gate.isFresh)
        scene.processes.signal(SIGCONT, 0)
        #expect(becomesTrue { gate.isFresh && gate.sharingProblem == nil })
        gate.close()
    }

    @Test("A new gate does not begin with a log whose beginning was removed, nor with what is none")
    func beginnings() throws {
        let scene = try Scene(name, gates: 1)
        defer { scene.end() }
        let log = OrderedLog(try scene.processes.session(), name: name)
        let deck = try #require(CollaborationIdentifier("deck"))
        #expect(becomesTrue { scene.gates[0].isFresh })
        try scene.gates[0].apply(Mutation(.createCollaboration(deck, .challenge)))
        #expect(try log.remove(before: 2, milliseconds: 5000))
        let late = thrown(ServiceError.self) { _ = try scene.open(1) }
        #expect(late?.reason.contains("does not go back far enough") == true, "\(late?.reason ?? "")")
        let other = try #require(LogName("other"))
        let otherLog = OrderedLog(try scene.processes.session(), name: other)
        #expect(try otherLog.append([1, 2, 3], as: 1, after: nil, milliseconds: 5000) == .appended)
        let none = thrown(ServiceError.self) { _ = try scene.open(2) { $0.name = other } }
        #expect(none?.reason.contains("does not begin as a cluster's does") == true, "\(none?.reason ?? "")")
        // The one that was there goes on.
        #expect(try scene.gates[0].apply(Mutation(.addRoots(deck, [.zero]))).sequence == 2)
    }

    @Test("While members are killed and stopped and gates end, nothing acknowledged is lost or made twice")
    func faults() throws {
        let scene = try Scene(
            name, members: 3, gates: 3, ["--heartbeat-interval", "50", "--election-timeout", "500"])
        defer { scene.end() }
        let deck = try #require(CollaborationIdentifier("deck"))
        #expect(becomesTrue { scene.gates.allSatisfy(\.isFresh) })
        try scene.gates[0].apply(Mutation(.createCollaboration(deck, .challenge)))
        let isOver = Shared(false)
        let (acknowledged, unknown) = (Shared<[Digest]>([]), Shared(0))
        let sets = scene.gates
        let ended = DispatchSemaphore(value: 0)
        for thread in 0..<6 {
            Thread {
                var random = SeededGenerator(seed: runSeed &+ UInt64(thread))
                while !isOver.value {
                    let root = random.digest()
                    do throws(ServiceError) {
                        let receipt = try sets[thread % 3].apply(Mutation(.addRoots(deck, [root])))
                        if receipt.changed == 1 { acknowledged.with { $0.append(root) } }
                    } catch {
                        if error.code == .storageFailed { unknown.increment() } else { usleep(10_000) }
                    }
                }
                ended.signal()
            }.start()
        }
        var generator = SeededGenerator(seed: runSeed)
        for round in 0..<6 {
            let member = Int.random(in: 0..<3, using: &generator)
            usleep(600_000)
            if round % 2 == 0 {
                scene.processes.kill(member)
                usleep(800_000)
                try scene.processes.start(member)
            } else {
                scene.processes.signal(SIGSTOP, member)
                usleep(1_200_000)
                scene.processes.signal(SIGCONT, member)
            }
        }
        usleep(500_000)
        isOver.with { $0 = true }
        for _ in 0..<6 { ended.wait() }
        try scene.gates[0].apply(Mutation(.removeRoots(deck, [.zero])))
        let last = try #require(try contents(scene.gates[0]))
        for gate in scene.gates {
            #expect(becomesTrue { (try? contents(gate)) == last }, "ROOTGATE_TEST_SEED=\(runSeed)")
        }
        let roots = acknowledged.value
        for gate in scene.gates {
            let found = try gate.read { snapshot throws(ServiceError) in try snapshot.test(roots, in: deck) }
            #expect(found?.allSatisfy { $0 } == true, "ROOTGATE_TEST_SEED=\(runSeed)")
        }
        let count = try scene.gates[1].read { snapshot throws(ServiceError) in
            try snapshot.statistics().roots
        }
        #expect(count >= roots.count && count <= UInt64(roots.count + unknown.value))
        #expect(roots.count > 50)
        print("\(roots.count) changes acknowledged, \(unknown.value) unknown, segments: \(last.place.number)")
    }
}
