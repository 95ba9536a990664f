import Core
import Foundation
import Identity
import Platform
import TestSupport
import Testing
import Transport

@testable import rootgate

@Suite("A service under a supervisor")
struct SupervisionCommandTests {
    private let folder = ScratchDirectory()

    private func microseconds() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1000
    }

    @Test("A service says when it is ready, reloads and stops, to a socket with a file and to one without")
    func messages() throws {
        var addresses = [folder.path + "/notify"]
        #if os(Linux)
        addresses.append("@rootgate-test-\(UUID().uuidString)")
        #endif
        for address in addresses {
            let receiver = try #require(NoticeReceiver(at: address))
            let service = try SupervisedProcess(
                ["--listen", "127.0.0.1:0"], environment: ["NOTIFY_SOCKET": address])
            let ready = try #require(receiver.next(within: 20), "\(service.log)")
            let place = try #require(service.addresses.first)
            #expect(ready == ["READY": "1", "STATUS": "listening on \(place)"])
            #expect(try runProgram(programPath, ["stats", "--server", place]).code == 0)
            let before = microseconds()
            service.send(SIGHUP)
            let reloading = try #require(receiver.next(within: 20))
            #expect(reloading["RELOADING"] == "1" && reloading.count == 2)
            #expect((before...microseconds()).contains(UInt64(reloading["MONOTONIC_USEC"] ?? "") ?? 0))
            #expect(receiver.next(within: 20) == ["READY": "1"])
            service.send(SIGTERM)
            let status = "shutting down: waiting up to 30 s for accepted requests"
            #expect(receiver.next(within: 20) == ["STOPPING": "1", "STATUS": status])
            #expect(service.end() == 0)
            #expect(receiver.next(within: 0) == nil)
            #expect(!service.log.contains("supervisor"), "\(service.log)")
        }
    }

    @Test(
        "A supervisor that can't be reached is named in the log, and the service runs",
        arguments: ["/no/one", "vsock:2"])
    func unreachable(address: String) throws {
        let service = try SupervisedProcess(["--listen", "127.0.0.1:0"], environment: ["NOTIFY_SOCKET": address])
        #expect(service.log.contains("can't tell the supervisor at \(address) anything: "), "\(service.log)")
        service.send(SIGTERM)
        #expect(service.end() == 0)
    }

    @Test("Signs of life come several times in each period of the watchdog, with and without the operator's pages")
    func watchdog() throws {
        for words in [[], ["--operator", "127.0.0.1:0"]] {
            let receiver = try #require(NoticeReceiver(at: folder.path + "/notify\(words.count)"))
            let service = try SupervisedProcess(
                ["--listen", "127.0.0.1:0"] + words,
                environment: ["NOTIFY_SOCKET": receiver.address, "WATCHDOG_USEC": "1000000"])
            let begin = ContinuousClock.now
            var count = 0
            while count < 8, let message = receiver.next(within: 20) {
                if message == ["WATCHDOG": "1"] { count += 1 }
            }
            #expect(count == 8, "\(service.log)")
            #expect(.now - begin < .seconds(8))
            service.send(SIGTERM)
            #expect(service.end() == 0)
        }
    }

    @Test("A watchdog that is meant for another process gets no sign of life")
    func otherWatchdog() throws {
        let receiver = try #require(NoticeReceiver(at: folder.path + "/notify"))
        let service = try SupervisedProcess(
            ["--listen", "127.0.0.1:0"],
            environment: ["NOTIFY_SOCKET": receiver.address, "WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"])
        #expect(receiver.next(within: 20)?["READY"] == "1", "\(service.log)")
        #expect(receiver.next(within: 1) == nil)
    }

    @Test("A service serves the sockets that it inherits, nothing else, and leaves their files where they are")
    func inherited() throws {
        let clients = try TestSocket(path: folder.path + "/clients", mode: 0o600)
        let operators = try TestSocket(host: "127.0.0.1")
        let service = try SupervisedProcess(
            ["--sandbox", "auto", "--operator", "unix:/no/such/folder"],
            sockets: [(clients.descriptor, "listen"), (operators.descriptor, "operator")])
        #expect(service.addresses == ["unix:\(folder.path)/clients"], "\(service.log)")
        #expect(try runProgram(programPath, ["collab", "create", "c", "--server", service.addresses[0]]).code == 0)
        let pages = try RawPeer(Endpoint(host: "127.0.0.1", port: operators.port))
        pages.send(Array("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
        #expect(String(decoding: pages.receive(65_536), as: UTF8.self).contains("process ok"))
        service.send(SIGTERM)
        #expect(service.end() == 0)
        #expect(FileManager.default.fileExists(atPath: folder.path + "/clients"))
    }

    @Test("An inherited socket of TCP obeys the rules about encryption")
    func encryption() throws {
        // An address that only this machine can reach, and that is none of the loopback addresses that need no TLS.
        let socket = try TestSocket(host: "::ffff:127.0.0.1")
        let plain = try SupervisedProcess(sockets: [(socket.descriptor, "listen")])
        #expect(plain.end() == 2)
        #expect(plain.log.contains("it is not a loopback address and nothing is encrypted"), "\(plain.log)")
        let pages = try SupervisedProcess(
            ["--listen", "127.0.0.1:0", "--allow-plain-text"], sockets: [(socket.descriptor, "operator")])
        #expect(pages.end() == 2)
        #expect(pages.log.contains("refused to serve the operator's pages on [::ffff:127.0.0.1]:\(socket.port)"))
        let allowed = try SupervisedProcess(["--allow-plain-text"], sockets: [(socket.descriptor, "listen")])
        #expect(allowed.addresses == ["[::ffff:127.0.0.1]:\(socket.port)"], "\(allowed.log)")
        let authority = SimulatedAuthority()
        let paths = try authority.issue().write(to: folder.path, as: "server")
        let encrypted = try SupervisedProcess(
            ["--tls-certificate", paths.certificate, "--tls-key", paths.key], sockets: [(socket.descriptor, "listen")])
        #expect(encrypted.addresses == ["tls://[::ffff:127.0.0.1]:\(socket.port)"], "\(encrypted.log)")
    }

    @Test("Inherited sockets of another kind, and variables that can't be understood, are refused in one line")
    func refused() throws {
        let path = folder.path + "/s"
        let cases: [(String, TestSocket, words: [String], reason: String)] = [
            ("listen", try TestSocket(path: path + "1", mode: 0o666), [], "the permissions of its file are 666"),
            ("listen", try TestSocket(path: path + "2", mode: 0o600, isStream: false), [], "it is no stream socket"),
            ("listen", try TestSocket(path: path + "3", mode: 0o600, listens: false), [], "it does not listen"),
            ("operator", try TestSocket(path: path + "4", mode: 0o660), [], "--listen-mode allows 600 at most"),
            ("rootgate.socket", try TestSocket(host: "127.0.0.1"), [], "has the name rootgate.socket, and none of"),
            ("", try TestSocket(host: "127.0.0.1"), [], "the inherited socket 3 has no name"),
            ("association", try TestSocket(host: "127.0.0.1"), [], "--association is not given"),
        ]
        for (name, socket, words, reason) in cases {
            let service = try SupervisedProcess(words, sockets: [(socket.descriptor, name)])
            #expect(service.end() == 2 && service.announcement.isEmpty, "\(name)")
            #expect(service.log.contains(reason) && service.log.split(separator: "\n").count == 1, "\(service.log)")
        }
        let file = open("/dev/null", O_RDWR)
        defer { close(file) }
        let service = try SupervisedProcess(sockets: [(file, "listen")])
        #expect(service.end() == 2 && service.log.contains("the inherited socket 3 can't be used for --listen: "))
        let watchdog = try SupervisedProcess(["--listen", "127.0.0.1:0"], environment: ["WATCHDOG_USEC": "1 min"])
        #expect(watchdog.end() == 2 && watchdog.log.contains("WATCHDOG_USEC is 1 min, which is no number"))
    }

    #if os(Linux)
    @Test("An inherited socket that has a name instead of a file is refused: everybody may connect to it")
    func abstract() throws {
        let socket = try TestSocket(path: "@rootgate-test-\(UUID().uuidString)", mode: 0o600)
        let service = try SupervisedProcess(sockets: [(socket.descriptor, "listen")])
        #expect(service.end() == 2)
        #expect(service.log.contains("neither a socket of TCP nor a local one with an absolute path"), "\(service.log)")
    }
    #endif
}
