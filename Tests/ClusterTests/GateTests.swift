import Core
import Dispatch
import Etcd
import EtcdTestSupport
import Foundation
import RootSets
import TestSupport
import Transport
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

        func open(
            _ number: Int, log: Log = .none, _ adjust: (inout ClusterSettings) -> Void = { _ in }
        ) throws -> RootSets {
            var settings = ClusterSettings(processes.endpoints, name: name)
            settings.firstMember = number
            adjust(&settings)
            let configuration = RootSets.Configuration(
                directory: "\(scratch.path)/gate-\(number)", sizeLimitBytes: 1 << 30, reserveBytes: 1 << 20)
            for _ in 0..<5000 {
                do throws(ServiceError) {
                    return try RootSets(configuration, of: settings, log: log)
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

    @Test("A gate that others tell to have applied more than the log has is not fresh, and appends nothing")
    func shorterLog() throws {
        let scene = try Scene(name, gates: 1)
        defer { scene.end() }
        let gate = scene.gates[0]
        let deck = try #require(CollaborationIdentifier("deck"))
        #expect(becomesTrue { gate.isFresh })
        try gate.apply(Mutation(.createCollaboration(deck, .challenge)))
        // So it is when etcd was restored from a backup, and a gate has begun with that.
        var progress = SharedProgress()
        progress.segment = 1000
        let session = try scene.processes.session()
        try put(GateRecord(progress), of: name, session)
        #expect(becomesTrue { !gate.isFresh })
        let refusal = thrown(ServiceError.self) { try gate.apply(Mutation(.addRoots(deck, [.zero]))) }
        #expect(refusal?.code == .busy && refusal?.reason.contains("has applied segment 1000") == true)
        #expect(gate.sharingProblem?.contains("has applied segment 1000") == true)
        // Nor does a gate found a log that was lost.
        let elsewhere = try #require(LogName("elsewhere"))
        try put(GateRecord(progress), of: elsewhere, session)
        let key = otherKey(of: name)
        let founding = thrown(ServiceError.self) { _ = try scene.open(1) { $0.name = elsewhere } }
        #expect(founding?.reason.contains("it was lost") == true, "\(founding?.reason ?? "")")
        #expect(try session.remove(EtcdSession.KeyRange(from: key, to: key + [0]), ifExists: key, milliseconds: 5000))
        #expect(becomesTrue { gate.isFresh })
        #expect(try gate.apply(Mutation(.addRoots(deck, [.zero]))).changed == 1)
    }

    @Test("A storage of another cluster under the same name stops nobody, and is named in the log")
    func strangers() throws {
        let scene = try Scene(name, gates: 0)
        defer { scene.end() }
        let lines = Shared<[String]>([])
        let gate = try scene.open(0, log: Log { line in lines.with { $0.append(line.text) } })
        defer { gate.close() }
        #expect(becomesTrue { gate.isFresh })
        let deck = try #require(CollaborationIdentifier("deck"))
        var progress = SharedProgress()
        (progress.segment, progress.founding) = (1000, .zero)
        let session = try scene.processes.session()
        try put(GateRecord(progress, address: Endpoint("elsewhere:7")), of: name, session)
        #expect(
            becomesTrue { lines.value.contains { $0.contains("of another cluster") && $0.contains("elsewhere:7") } })
        let made = try gate.apply(Mutation(.createCollaboration(deck, .challenge)))
        #expect(isConfirmed(made.sequence, by: gate, within: 2000) && gate.isFresh)
        let report = try ClusterReport(of: ClusterSettings(scene.processes.endpoints, name: name))
        #expect(report.areStrangers)
        // Who does not tell is of this cluster, and then has applied more than the log has.
        progress.founding = nil
        try put(GateRecord(progress), of: name, session)
        #expect(becomesTrue { !gate.isFresh })
    }

    @Test("A gate that can't apply a change delays its confirmation only until it can't answer any more")
    func stuck() throws {
        let scene = try Scene(name, gates: 0)
        defer { scene.end() }
        let gate = try scene.open(0)
        defer { gate.close() }
        #expect(becomesTrue { gate.isFresh })
        let session = try scene.processes.session()
        func tell(_ staleness: UInt64?) throws {
            var progress = SharedProgress()
            progress.segment = 1
            try put(GateRecord(progress, staleness: staleness), of: name, session)
        }
        let deck = try #require(CollaborationIdentifier("deck"))
        let made = try gate.apply(Mutation(.createCollaboration(deck, .challenge)))
        try tell(nil)
        #expect(!isConfirmed(made.sequence, by: gate, within: 2000))
        try tell(700)
        let began = MonotonicClock.system.milliseconds
        #expect(isConfirmed(made.sequence, by: gate, within: 20_000))
        #expect(MonotonicClock.system.milliseconds - began >= 1200)
        // Nobody can say so of a change that does not exist.
        #expect(!isConfirmed(made.sequence + 1, by: gate, within: 2000))
    }

    /// Puts what another gate would tell into etcd, for a minute at most.
    private func put(_ record: GateRecord, of other: LogName, _ session: EtcdSession) throws {
        let lease = try session.beginLease(seconds: 60, milliseconds: 5000)
        try session.put(otherKey(of: other), record.bytes, lease: lease, milliseconds: 5000)
    }

    private func otherKey(of name: LogName) -> [UInt8] { Presence.prefix(name) + Array("other".utf8) }

    /// Whether a gate confirms a change within so many milliseconds.
    private func isConfirmed(_ sequence: UInt64, by gate: RootSets, within milliseconds: UInt64) -> Bool {
        let (done, answer) = (DispatchSemaphore(value: 0), Shared(false))
        gate.whenEverywhere(sequence, within: milliseconds) { result in
            if case .success = result { answer.with { $0 = true } }
            done.signal()
        }
        done.wait()
        return answer.value
    }

    @Test("A key that is no gate's is named in the log, and nothing is confirmed until it is gone")
    func strangeKeys() throws {
        let scene = try Scene(name, gates: 0)
        defer { scene.end() }
        let lines = Shared<[String]>([])
        let gate = try scene.open(0, log: Log { line in lines.with { $0.append(line.text) } })
        defer { gate.close() }
        #expect(becomesTrue { gate.isFresh })
        let deck = try #require(CollaborationIdentifier("deck"))
        let made = try gate.apply(Mutation(.createCollaboration(deck, .challenge)))
        func isConfirmed() -> Bool { self.isConfirmed(made.sequence, by: gate, within: 400) }
        #expect(isConfirmed())
        // When etcd is away for a while, that is told by the storage alone.
        scene.processes.kill(0)
        #expect(becomesTrue { !gate.isFresh })
        try scene.processes.start(0)
        #expect(becomesTrue { gate.isFresh } && becomesTrue { isConfirmed() })
        #expect(!lines.value.contains { $0.contains("the other services") }, "\(lines.value)")
        let session = try scene.processes.session()
        let key = Presence.prefix(name) + Array("strange\u{1b}[2J".utf8)
        let lease = try session.beginLease(seconds: 60, milliseconds: 5000)
        // The storage's own lines come when they like: it tells by itself that etcd is back.
        func told() -> [String] { lines.value.filter { $0.contains("other services") } }
        for (value, lease) in [("nonsense", lease), (#"{"segment":9,"sequence":9}"#, nil as Int64?)] {
            lines.with { $0 = [] }
            try session.put(key, Array(value.utf8), lease: lease, milliseconds: 5000)
            #expect(
                becomesTrue { told().contains { $0.contains("strange\\u001B[2J in etcd is no service's") } })
            #expect(!isConfirmed() && told().count == 1, "\(lines.value)")
            #expect(try session.remove(.init(from: key, to: key + [0]), ifExists: key, milliseconds: 5000))
            #expect(becomesTrue { told().last?.contains("are known again") == true })
            #expect(isConfirmed())
        }
    }

    @Test("What no gate tells is left out of its record, and what others wait for is kept")
    func records() throws {
        func read(_ fields: String) -> GateRecord? { GateRecord(Array("{\"segment\":7,\"sequence\":8\(fields)}".utf8)) }
        let good = try #require(read(#","address":"gate-1:7570","secrets":["0123456789abcdef","b"]"#))
        #expect(good.address == "gate-1:7570" && good.secrets?.count == 2)
        func text(_ count: Int) -> String { String(repeating: "a", count: count) }
        let longest = try #require(read(",\"address\":\"\(text(300))\",\"secrets\":[\"a\",\"b\",\"\(text(32))\"]"))
        #expect(longest.address?.utf8.count == 300 && longest.secrets?.count == 3)
        for fields in [
            #","secrets":["a","b","c","d"]"#, ",\"secrets\":[\"\(text(33))\"]", #","secrets":["a b"]"#,
            #","secrets":["\u001b"]"#, ",\"address\":\"\(text(301))\"", #","address":"a\nb""#,
        ] {
            let record = try #require(read(fields), "\(fields)")
            #expect(record.segment == 7 && record.sequence == 8, "\(fields)")
            #expect(record.secrets == nil && record.address == nil, "\(fields)")
        }
        #expect(read(",\"founding\":\"\(text(64))\"")?.founding == text(64))
        for founding in [text(63), text(65), text(63) + "\\n"] {
            let record = try #require(read(",\"founding\":\"\(founding)\""), "\(founding)")
            #expect(record.segment == 7 && record.founding == nil, "\(founding)")
        }
        // A staleness that no service has confirms nothing by time.
        let patient = try #require(read(",\"staleness\":\(UInt64.max)"))
        #expect(patient.has(8, inLogFor: 0) && !patient.has(9, inLogFor: .max))
        #expect(read(#","secrets":7"#) == nil)
        let frame = #"{"segment":7,"sequence":8,"contents":""}"#.utf8.count
        #expect(read(",\"contents\":\"\(text(4096 - frame))\"") != nil)
        #expect(read(",\"contents\":\"\(text(4097 - frame))\"") == nil)
    }

    @Test("A gate whose key was removed, or ends with another lease, answers nothing until it has put it again")
    func keys() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        let members = try EtcdMembers(processes.endpoints)
        let progress = Lock(SharedProgress())
        let presence = Presence(
            members, name, first: 0, stalenessMilliseconds: 2500, bytesKept: 1 << 20, address: nil,
            SharedFollower(
                ring: {}, progress: { progress.withLock { $0 } }, freshAsOf: { 0 }, fresh: { _ in },
                disagree: { _ in }))
        defer { presence.close() }
        let session = try processes.session()
        func keys() throws -> [[UInt8]] { try Presence.records(name, session).map(\.key) }
        // A storage that has not read the log yet can't tell whether that lacks what others have applied.
        #expect(becomesTrue { presence.failure?.contains("has not read its log yet") == true })
        #expect(try presence.times == nil && keys() == [])
        progress.withLock { $0.hash = .zero }
        #expect(becomesTrue { presence.times != nil })
        let key = try #require(try keys().first)
        var since = try #require(presence.times?.lowerBound)
        /// Whether the key was put again, by a service that knows since when.
        func isMadeAgain(by body: () throws -> Void) throws -> Bool {
            try body()
            let isMade = becomesTrue { (try? keys()) == [key] && presence.times.map { $0.lowerBound > since } == true }
            since = presence.times?.lowerBound ?? 0
            return isMade
        }
        let range = EtcdSession.KeyRange(from: key, to: key + [0])
        #expect(try isMadeAgain { _ = try session.remove(range, ifExists: key, milliseconds: 5000) })
        let lease = try session.beginLease(seconds: 60, milliseconds: 5000)
        let value = try #require(try session.read(key, milliseconds: 5000)?.value)
        #expect(try isMadeAgain { try session.put(key, value, lease: lease, milliseconds: 5000) })
        let (found, _) = try session.leasedKey(key, milliseconds: 5000)
        #expect(found.lease != 0 && found.lease != lease)
        // A request that was under way, for the key as it was before, does nothing any more.
        #expect(
            try session.replace(key, from: found.revision - 1, with: value, lease: lease, milliseconds: 5000) == nil)
        #expect(try session.leasedKey(key, milliseconds: 5000).0 == found)
    }

    @Test("A gate whose key tells what it told before, as when etcd was restored from a backup, puts it again")
    func olderKey() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        var start = SharedProgress()
        (start.hash, start.segment) = (.zero, 7)
        let progress = Lock(start)
        let presence = Presence(
            try EtcdMembers(processes.endpoints), name, first: 0, stalenessMilliseconds: 2500, bytesKept: 1 << 20,
            address: nil,
            SharedFollower(
                ring: {}, progress: { progress.withLock { $0 } }, freshAsOf: { 0 }, fresh: { _ in },
                disagree: { _ in }))
        defer { presence.close() }
        let session = try processes.session()
        func told() throws -> UInt64? { try Presence.records(name, session).first?.record.segment }
        #expect(becomesTrue { (try? told()) == 7 })
        let key = try #require(try Presence.records(name, session).first?.key)
        let older = try #require(try session.read(key, milliseconds: 5000)?.value)
        progress.withLock { $0.segment = 9 }
        presence.hasProgressed()
        #expect(becomesTrue { (try? told()) == 9 })
        let lease = try session.leasedKey(key, milliseconds: 5000).0.lease
        try session.put(key, older, lease: lease, milliseconds: 5000)
        #expect(becomesTrue { (try? told()) == 9 })
        #expect(try session.leasedKey(key, milliseconds: 5000).0.lease == lease)
    }

    @Test("While a gate gives a snapshot, it tells which part of the log others need")
    func snapshots() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        var progress = SharedProgress()
        (progress.segment, progress.hash) = (7, .zero)
        let presence = Presence(
            try EtcdMembers(processes.endpoints), name, first: 0, stalenessMilliseconds: 2500, bytesKept: 1 << 20,
            address: nil,
            SharedFollower(
                ring: {}, progress: { [progress] in progress }, freshAsOf: { 0 }, fresh: { _ in }, disagree: { _ in }))
        defer { presence.close() }
        let session = try processes.session()
        func record() -> GateRecord? { try? Presence.records(name, session).first?.record }
        #expect(becomesTrue { record()?.segment == 7 && record()?.snapshot == nil })
        presence.gives(snapshot: 3)
        #expect(becomesTrue { record()?.segment == 7 && record()?.snapshot == 3 })
        presence.gives(snapshot: nil)
        #expect(becomesTrue { record()?.segment == 7 && record()?.snapshot == nil })
    }

    @Test("The log is kept for a gate that stays behind, and for a snapshot, but not without an end, and that is told")
    func late() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        let session = try processes.session()
        let log = OrderedLog(session, name: name)
        var hash: Digest?
        for number in 1...100 as ClosedRange<UInt64> {
            let bytes = withUnsafeBytes(of: number) { Array($0) }
            #expect(try log.append(bytes, as: number, after: hash, milliseconds: 5000) == .appended)
            hash = Digest(ReferenceSHA256.hash(bytes))
        }
        func tell(_ segment: UInt64, snapshot: UInt64? = nil) throws {
            var progress = SharedProgress()
            progress.segment = segment
            try put(GateRecord(progress, snapshot: snapshot), of: name, session)
        }
        try tell(100, snapshot: 10)
        let lines = Shared<[String]>([])
        var progress = SharedProgress()
        (progress.segment, progress.hash) = (100, hash)
        let presence = Presence(
            try EtcdMembers(processes.endpoints), name, first: 0, stalenessMilliseconds: 2500, bytesKept: 5000,
            address: nil,
            SharedFollower(
                ring: {}, progress: { [progress] in progress }, freshAsOf: { 0 }, fresh: { _ in }, disagree: { _ in }),
            log: Log { line in lines.with { $0.append(line.text) } })
        defer { presence.close() }
        for number in 1...100 as ClosedRange<UInt64> { presence.note(number, bytes: 1000) }
        func first() throws -> UInt64? {
            guard case .removed(let first) = try log.read(from: 1, after: nil, milliseconds: 5000) else { return nil }
            return first
        }
        // For a snapshot that others read it is sixteen times as much as usual.
        #expect(becomesTrue { (try? first()) == 20 })
        #expect(lines.value.count == 1 && lines.value[0].contains("raise --log-retention"), "\(lines.value)")
        // Nobody gets a snapshot behind which the log does not go on.
        presence.gives(snapshot: 25)
        usleep(2_500_000)
        #expect(presence.keepsSnapshot)
        presence.gives(snapshot: 19)
        #expect(becomesTrue { !presence.keepsSnapshot })
        presence.gives(snapshot: nil)
        #expect(presence.keepsSnapshot)
        try tell(100, snapshot: 30)
        #expect(becomesTrue { (try? first()) == 30 })
        lines.with { $0 = Array($0.prefix(1)) }
        // For one that is behind it is four times as much.
        try tell(35)
        #expect(becomesTrue { (try? first()) == 80 })
        #expect(lines.value.count > 1 && lines.value[1].contains("kept longer for services that are far behind"))
        // Then that one can't follow any more, and nothing is kept for it.
        #expect(becomesTrue { (try? first()) == 95 })
        #expect(lines.value.count == 3 && lines.value[2].contains("replace their storages"), "\(lines.value)")
        try tell(100)
        #expect(becomesTrue { lines.value.count == 4 } && lines.value.last?.contains("far behind any more") == true)
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
