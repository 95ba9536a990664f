import Core
import Dispatch
import Foundation
import TestSupport
import Testing
import Transport
import Verification

@testable import Server

@Suite("What a supervisor says and is told", .serialized)
struct SupervisionTests {
    @Test("The environment says what a supervisor wants, and what is for another process doesn't count")
    func environment() throws {
        #expect(try Supervision(["PATH": "/bin"], process: 7) == Supervision())
        let all = [
            "NOTIFY_SOCKET": "@a/b", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7", "LISTEN_FDS": "3",
            "LISTEN_PID": "7", "LISTEN_FDNAMES": "operator:listen:association",
        ]
        let mine = try Supervision(all, process: 7)
        #expect(mine.address == "@a/b" && mine.watchdogMicroseconds == 30_000_000)
        #expect(mine.sockets.map(\.descriptor) == [3, 4, 5])
        #expect(mine.sockets.map(\.purpose) == [.operators, .clients, .association])
        let others = try Supervision(all, process: 8)
        #expect(others.address == "@a/b" && others.watchdogMicroseconds == nil && others.sockets.isEmpty)
        let unnamed = ["LISTEN_FDS": "3", "LISTEN_FDNAMES": "listen"]
        #expect(try Supervision(unnamed, process: 7).sockets.isEmpty)
        #expect(try Supervision(["WATCHDOG_USEC": "5"], process: 7).watchdogMicroseconds == 5)
        #expect(try Supervision(all.mapValues { _ in "" }, process: 7) == Supervision())
    }

    @Test(
        "Numbers that are none, too many sockets and unknown names are refused",
        arguments: [
            (["WATCHDOG_USEC": "0"], "WATCHDOG_USEC is 0"), (["WATCHDOG_USEC": "-1"], "WATCHDOG_USEC is -1"),
            (["LISTEN_FDS": "-1"], "not a number from 0 to 64"), (["LISTEN_FDS": "65"], "LISTEN_FDS is 65"),
            (["LISTEN_FDS": "2", "LISTEN_FDNAMES": "listen"], "the inherited socket 4 has no name"),
            (["LISTEN_FDS": "1", "LISTEN_FDNAMES": "Listen"], "the inherited socket 3 has the name Listen"),
        ])
    func refused(variables: [String: String], reason: String) {
        let failure = thrown(StartupFailure.self) {
            _ = try Supervision(variables.merging(["LISTEN_PID": "7"]) { old, _ in old }, process: 7)
        }
        #expect(failure?.description.contains(reason) == true, "\(failure.map { "\($0)" } ?? "accepted")")
    }

    @Test("The variables are removed when they were read, so that no other process takes them for its own")
    func taken() throws {
        defer { for name in Supervision.variables { unsetenv(name) } }
        for name in Supervision.variables { setenv(name, "1", 1) }
        setenv("WATCHDOG_PID", "\(getpid())", 1)
        let supervision = try Supervision.take()
        #expect(supervision.address == "1" && supervision.watchdogMicroseconds == 1)
        for name in Supervision.variables { #expect(getenv(name) == nil, "\(name)") }
    }

    @Test(
        "A service is looked at four times in each period of its watchdog, and once a second for the operator's pages")
    func intervals() {
        var configuration = Configuration(dataDirectory: "/nowhere", workers: 1)
        #expect(configuration.watchMilliseconds == nil)
        for (microseconds, milliseconds) in [(30_000_000, 7500), (1_000_000, 250), (1000, 10), (.max, 10_000)] {
            configuration.watchdogMicroseconds = UInt64(microseconds)
            #expect(configuration.watchMilliseconds == milliseconds)
        }
        configuration.operatorEndpoints = [Endpoint(path: "/nowhere/operator")]
        #expect(configuration.watchMilliseconds == Limits.watchMilliseconds)
        configuration.watchdogMicroseconds = 400_000
        #expect(configuration.watchMilliseconds == 100)
    }

    @Test("Signs of life stop while the workers hang, and come again when they go on")
    func hanging() throws {
        let folder = ScratchDirectory()
        var configuration = Configuration(dataDirectory: folder.path + "/data", workers: 1)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        configuration.watchdogMicroseconds = 200_000
        let signs = Shared(0)
        let service = try Service(configuration, onOwnProof: { signs.with { $0 += 1 } })
        defer { _ = service.shutDown() }
        #expect(becomesTrue { signs.value >= 3 })
        let release = DispatchSemaphore(value: 0)
        let isHanging = Shared(false)
        #expect(
            service.pool.submit(from: WorkSource()) {
                isHanging.with { $0 = true }
                release.wait()
            })
        #expect(becomesTrue { isHanging.value })
        // A proof that was verified before may still be told.
        usleep(200_000)
        let count = signs.value
        usleep(600_000)
        #expect(signs.value == count)
        release.signal()
        #expect(becomesTrue { signs.value >= count + 3 })
    }

    @Test("A service without a watchdog and without the operator's pages verifies no proof of its own")
    func unwatched() throws {
        let folder = ScratchDirectory()
        var configuration = Configuration(dataDirectory: folder.path + "/data", workers: 1)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        let signs = Shared(0)
        let service = try Service(configuration, onOwnProof: { signs.with { $0 += 1 } })
        defer { _ = service.shutDown() }
        usleep(1_300_000)
        #expect(signs.value == 0)
    }

    @Test("A proof that was judged wrongly, and one that was told before, is no sign of life")
    func wrongProofs() {
        var judged: UInt64 = 0
        func isVerified(_ count: UInt64, _ fault: String?) -> Bool {
            ServiceWatch.isVerified(OwnProof.State(granted: 5, fault: fault, count: count), after: &judged)
        }
        #expect(!isVerified(0, nil))
        #expect(isVerified(1, nil) && !isVerified(1, nil))
        #expect(!isVerified(2, "its own proof got bad-signature"))
        #expect(!isVerified(2, nil))
        #expect(isVerified(3, nil))
    }

    @Test("A line for people has no line break and a limit, and nothing follows the message that the service stops")
    func texts() throws {
        let folder = ScratchDirectory()
        let path = folder.path + "/notify"
        let receiver = try LocalDatagrams(at: path)
        let lines = Shared<[String]>([])
        let supervisor = Supervisor(at: path, log: Log { line in lines.with { $0.append(line.text) } })
        supervisor.isStarting(for: 180, "getting a snapshot")
        #expect(receiver.next() == "EXTEND_TIMEOUT_USEC=180000000\nSTATUS=getting a snapshot")
        supervisor.isReady("a\nSTOPPING=1" + String(repeating: "x", count: 1000))
        let ready = try #require(receiver.next()).split(separator: "\n").map(String.init)
        #expect(ready.count == 2 && ready[0] == "READY=1" && ready[1].hasPrefix("STATUS=a\\u000ASTOPPING=1xx"))
        #expect(ready[1].utf8.count == Limits.supervisorLineBytesMax)
        supervisor.stops("bye")
        supervisor.reloads {}
        supervisor.isReady("again")
        supervisor.isAlive()
        #expect(receiver.next() == "STOPPING=1\nSTATUS=bye")
        #expect(receiver.next() == "WATCHDOG=1")
        #expect(receiver.next(milliseconds: 0) == nil && lines.value.isEmpty)
        receiver.close()
        for _ in 0..<3 { supervisor.isAlive() }
        #expect(lines.value.count == 1 && lines.value[0].hasPrefix("can't tell the supervisor how the service is: "))
    }
}

/// A local socket that receives messages.
private final class LocalDatagrams {
    private var descriptor: CInt

    init(at path: String) throws {
        #if os(Linux)
        descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
        #else
        descriptor = socket(AF_UNIX, SOCK_DGRAM, 0)
        #endif
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let isBound = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        try #require(isBound)
    }

    deinit {
        close()
    }

    func close() {
        if descriptor >= 0 { Foundation.close(descriptor) }
        descriptor = -1
    }

    func next(milliseconds: CInt = 10_000) -> String? {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, milliseconds) == 1 else { return nil }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
    }
}
