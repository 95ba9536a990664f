import Core
import Dispatch
import EtcdTestSupport
import Foundation
import Hashing
import Synchronization
import TestSupport
import Testing

@testable import Etcd

@Suite("A log in etcd", .serialized, .enabled(if: etcd != nil, "there is no program etcd"))
struct OrderedLogTests {
    private let patient: UInt64 = 20_000
    private let name: LogName
    private let other: LogName

    init() throws {
        (name, other) = (try #require(LogName("a")), try #require(LogName("a-b")))
    }

    private func entry(_ text: String) -> [UInt8] { Array(text.utf8) }

    /// The hash of the entry before a number, if each entry is its number.
    private func before(_ number: UInt64) -> Digest? { number == 1 ? nil : SHA256.hash(entry("\(number - 1)")) }

    @Test("Entries get the numbers from 1 on, and a number is given once")
    func numbers() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        let log = OrderedLog(try processes.session(), name: name)
        #expect(try log.first(milliseconds: patient) == nil)
        #expect(try log.append(entry("x"), as: 2, after: before(2), milliseconds: patient) == .misplaced)
        #expect(try log.append(entry("1"), as: 1, after: before(1), milliseconds: patient) == .appended)
        #expect(try log.append(entry("1"), as: 1, after: before(1), milliseconds: patient) == .appended)
        #expect(try log.append(entry("x"), as: 1, after: before(1), milliseconds: patient) == .taken([entry("1")]))
        #expect(try log.append(entry("x"), as: 3, after: before(3), milliseconds: patient) == .misplaced)
        for number in 2...20 {
            #expect(
                try log.append(
                    entry("\(number)"), as: UInt64(number), after: before(UInt64(number)), milliseconds: patient)
                    == .appended)
        }
        let later = (3..<3 + Limits.etcdEntriesPerReadMin).map { entry("\($0)") }
        #expect(try log.append(entry("x"), as: 3, after: before(3), milliseconds: patient) == .taken(later))
        #expect(try log.last(milliseconds: patient) == 20)
        // Who is far behind reads more and more at once.
        func read(_ numbers: ClosedRange<UInt64>) throws -> Bool {
            let expected = numbers.map { entry("\($0)") }
            return try log.read(from: numbers.lowerBound, after: before(numbers.lowerBound), milliseconds: patient)
                == .entries(expected, hasMore: numbers.upperBound < 20)
        }
        #expect(try read(1...5) && read(6...15) && read(16...20) && read(1...5))
        // Another log in the same etcd has numbers of its own.
        let second = OrderedLog(try processes.session(), name: other)
        #expect(try second.append(entry("y"), as: 1, after: before(1), milliseconds: patient) == .appended)
        #expect(
            try second.read(from: 1, after: before(1), milliseconds: patient) == .entries([entry("y")], hasMore: false))
        #expect(
            try log.read(from: 19, after: before(19), milliseconds: patient)
                == .entries([entry("19"), entry("20")], hasMore: false))
    }

    @Test("What was removed is told, the last entry stays, and a late request puts nothing in the place of one")
    func removal() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        let session = try processes.session()
        let log = OrderedLog(session, name: name)
        for number in 1...6 {
            #expect(
                try log.append(
                    entry("\(number)"), as: UInt64(number), after: before(UInt64(number)), milliseconds: patient)
                    == .appended)
        }
        #expect(try log.last(milliseconds: patient) == 6)
        #expect(try !log.restart(entry("x"), as: 9, milliseconds: patient))
        #expect(try !log.remove(before: 7, milliseconds: patient))
        #expect(try log.remove(before: 4, milliseconds: patient))
        #expect(try log.first(milliseconds: patient) == 4)
        #expect(try log.read(from: 2, after: before(2), milliseconds: patient) == .removed(first: 4))
        #expect(
            try log.read(from: 4, after: before(4), milliseconds: patient)
                == .entries([entry("4"), entry("5"), entry("6")], hasMore: false))
        #expect(try log.read(from: 7, after: before(7), milliseconds: patient) == .entries([], hasMore: false))
        // Whoever has read number 7, or another number 6, has read another log.
        #expect(try log.read(from: 7, after: before(6), milliseconds: patient) == .lost)
        #expect(try log.append(entry("7"), as: 7, after: before(6), milliseconds: patient) == .misplaced)
        #expect(try log.read(from: 8, after: before(8), milliseconds: patient) == .lost)
        for number in UInt64(1)...3 {
            #expect(
                try log.append(entry("late"), as: number, after: before(number), milliseconds: patient) == .misplaced)
        }
        #expect(try log.first(milliseconds: patient) == 4)
        #expect(try log.append(entry("7"), as: 7, after: before(7), milliseconds: patient) == .appended)
    }

    @Test("An entry that somebody else has put under a log's keys, or a hole, is no log")
    func foreign() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        let session = try processes.session()
        let log = OrderedLog(session, name: name)
        #expect(try log.append(entry("1"), as: 1, after: before(1), milliseconds: patient) == .appended)
        try session.put(log.key(3), [1], lease: nil, milliseconds: patient)
        let hole = thrown(EtcdFailure.self) { _ = try log.read(from: 1, after: before(1), milliseconds: patient) }
        let key = "the key rootgate/a/log/00000000000000000003 in etcd"
        #expect(
            hole?.description == "the log has no entry 2, and behind it comes rootgate/a/log/00000000000000000003")
        // Nothing was removed, as the end of the log tells.
        let behind = thrown(EtcdFailure.self) { _ = try log.read(from: 2, after: before(2), milliseconds: patient) }
        #expect(behind?.description == "\(key) is behind the end of the log: remove it (etcdctl del)")
        #expect(try log.append(entry("2"), as: 2, after: before(2), milliseconds: patient) == .appended)
        let next = thrown(EtcdFailure.self) { _ = try log.read(from: 3, after: before(3), milliseconds: patient) }
        #expect(next?.description == behind?.description)
        try session.put(Array("rootgate/a/log/x".utf8), [1], lease: nil, milliseconds: patient)
        let foreign = thrown(EtcdFailure.self) { _ = try log.read(from: 4, after: before(4), milliseconds: patient) }
        #expect(
            foreign?.description == "the key rootgate/a/log/x in etcd is no log entry's: remove it (etcdctl del)")
    }

    @Test("An etcd that gets full says so for some entries that it has put: those count as appended")
    func noSpace() throws {
        let processes = try EtcdProcesses(["--quota-backend-bytes=8000000"])
        defer { processes.end() }
        let members = try EtcdMembers(processes.endpoints)
        // Each thread has a log of its own. Together they fill the database while entries are under way.
        let wrong = Lock<[String]>([])
        let full = Atomic<Int>(0)
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            do {
                let name = try #require(LogName("log-\(thread)"))
                let log = OrderedLog(EtcdSession(members), name: name)
                var (number, last): (UInt64, Digest?) = (1, nil)
                while true {
                    let entry =
                        withUnsafeBytes(of: number) { Array($0) } + [UInt8](repeating: UInt8(thread), count: 48_000)
                    do throws(EtcdFailure) {
                        guard try log.append(entry, as: number, after: last, milliseconds: patient) == .appended else {
                            return wrong.withLock { $0.append("\(thread): entry \(number) is somebody else's") }
                        }
                        (number, last) = (number + 1, SHA256.hash(entry))
                    } catch {
                        guard case .refused(.noSpace, _) = error else { throw error }
                        full.add(1, ordering: .relaxed)
                        let found = try log.read(from: number, after: last, milliseconds: patient)
                        if found != .entries([], hasMore: false) {
                            wrong.withLock { $0.append("\(thread): entry \(number) was refused, and is there") }
                        }
                        return
                    }
                }
            } catch {
                wrong.withLock { $0.append("\(thread): \(error)") }
            }
        }
        #expect(wrong.withLock { $0 } == [] && full.load(ordering: .relaxed) == 8)
    }

    @Test("Names keep the keys of logs apart")
    func names() {
        for text in ["a", "a-b", "0", String(repeating: "z", count: 64)] {
            #expect(LogName(text)?.text == text)
        }
        for text in ["", "a/b", "a/log", "A", "a b", "a\n", "ä", "*", ".", String(repeating: "z", count: 65)] {
            #expect(LogName(text) == nil, "\(text)")
        }
    }

    /// What one thread has done to the log.
    private struct Work: Sendable {
        /// Entries whose appending was acknowledged, by number.
        var acknowledged: [UInt64: [UInt8]] = [:]
        /// Failures that say that an entry is not in the log.
        var failures = 0
        var unsettled = 0
    }

    /// Appends until `isOver`: each entry to the end of the log as far as it is known.
    private static func append(
        to name: LogName, _ processes: (members: EtcdMembers, thread: Int), until isOver: () -> Bool
    ) -> Work {
        let log = OrderedLog(EtcdSession(processes.members, first: processes.thread), name: name)
        var work = Work()
        var (next, count) = (UInt64(1), 0)
        var last: Digest?
        while !isOver() {
            let entry = Array("\(processes.thread)-\(count)".utf8)
            count += 1
            var isDone = false
            while !isDone {
                do throws(EtcdFailure) {
                    switch try log.append(entry, as: next, after: last, milliseconds: 30_000) {
                    case .appended:
                        work.acknowledged[next] = entry
                        (next, last) = (next + 1, SHA256.hash(entry))
                        isDone = true
                    case .taken(let others):
                        next += UInt64(others.count)
                        last = others.last.map { SHA256.hash($0) } ?? last
                    case .misplaced: (next, last) = (1, nil)
                    }
                } catch {
                    if case .unknown = error { work.unsettled += 1 } else { work.failures += 1 }
                    isDone = true
                }
            }
        }
        return work
    }

    @Test("While members are killed and stopped, every acknowledged entry is in the log once, and there is no hole")
    func kills() throws {
        let processes = try EtcdProcesses(members: 3, ["--heartbeat-interval", "50", "--election-timeout", "500"])
        defer { processes.end() }
        let members = try EtcdMembers(processes.endpoints)
        let isOver = Shared(false)
        let results = Shared<[Work]>([])
        let threads = 3
        let ended = DispatchSemaphore(value: 0)
        for thread in 0..<threads {
            Thread { [name] in
                let work = Self.append(to: name, (members, thread)) { isOver.value }
                results.with { $0.append(work) }
                ended.signal()
            }.start()
        }
        var generator = SeededGenerator(seed: runSeed)
        for round in 0..<6 {
            let member = Int.random(in: 0..<3, using: &generator)
            usleep(500_000)
            if round % 2 == 0 {
                processes.kill(member)
                usleep(700_000)
                try processes.start(member)
            } else {
                processes.signal(SIGSTOP, member)
                usleep(1_200_000)
                processes.signal(SIGCONT, member)
            }
        }
        usleep(500_000)
        isOver.with { $0 = true }
        for _ in 0..<threads { ended.wait() }
        let log = OrderedLog(EtcdSession(members), name: name)
        var found: [[UInt8]] = []
        while true {
            guard
                case .entries(let more, let hasMore) = try log.read(
                    from: UInt64(found.count) + 1, after: found.last.map { SHA256.hash($0) }, milliseconds: 60_000)
            else {
                Issue.record("the log begins late")
                return
            }
            found += more
            if !hasMore { break }
        }
        var acknowledged = 0
        for work in results.value {
            for (number, entry) in work.acknowledged {
                #expect(number <= found.count && found[Int(number) - 1] == entry, "ROOTGATE_TEST_SEED=\(runSeed)")
            }
            acknowledged += work.acknowledged.count
            #expect(work.failures == 0)
        }
        #expect(Set(found).count == found.count)
        // What nobody knows of may be there or not.
        let unsettled = results.value.reduce(0) { $0 + $1.unsettled }
        #expect(found.count >= acknowledged && found.count <= acknowledged + unsettled)
        #expect(acknowledged > 50)
        print("\(acknowledged) entries acknowledged, \(unsettled) unsettled")
    }
}
