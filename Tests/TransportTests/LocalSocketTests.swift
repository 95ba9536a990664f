import Core
import Foundation
import Platform
import TestSupport
import Testing
@testable import Transport

@Suite("Local sockets")
struct LocalSocketTests {
    private let folder = ScratchDirectory()
    private var path: String { folder.path + "/socket" }

    private func listen(mode: UInt32 = Socket.standardMode, backlog: CInt = 16) throws -> Listener {
        try #require(try Socket.listen(on: Endpoint(path: path), mode: mode, backlog: backlog).first)
    }

    /// The failure to listen at `path`; `nil` when it is listened on.
    private func failure(at path: String) -> SystemFailure? {
        thrown(SystemFailure.self) {
            for listener in try Socket.listen(on: Endpoint(path: path)) { listener.close() }
        }
    }

    private func status(of path: String) -> stat? {
        var found = stat()
        return lstat(path, &found) == 0 ? found : nil
    }

    @Test("Frames are echoed over a local socket", arguments: PollerKind.allCases)
    func echo(kind: PollerKind) throws {
        let server = try EchoServer(kind, at: Endpoint(path: path))
        #expect(server.endpoint == Endpoint(path: path))
        let peer = try RawPeer(server)
        for count in [0, 1, 1000, 300_000] {
            let sent = frame(pattern(count))
            peer.send(sent)
            #expect(peer.receive(sent.count) == sent)
        }
    }

    @Test("A connection over a local socket tells the user and the process at its other end, and one over TCP does not")
    func credentials() throws {
        let local = try EchoServer(at: Endpoint(path: path))
        let own = PeerCredentials(user: getuid(), process: getpid())
        let peer = try RawPeer(local)
        #expect(becomesTrue { local.counts.opened.value == 1 })
        let seen = try #require(local.counts.peers.value.first)
        #expect(seen.credentials == own && seen.peer == .local(own))
        #expect("\(try #require(seen.peer))" == "unix:uid=\(getuid()),pid=\(getpid())")
        // The client sees who listens.
        #expect(Socket.peer(of: peer.descriptor) == .local(own))

        let remote = try EchoServer()
        let other = try RawPeer(remote)
        #expect(becomesTrue { remote.counts.opened.value == 1 })
        let far = try #require(remote.counts.peers.value.first)
        #expect(far.credentials == nil)
        #expect("\(try #require(far.peer))".hasPrefix("127.0.0.1:"))
        withExtendedLifetime(other) {}
    }

    @Test(
        "The credentials are those of the process that connects",
        .enabled(if: python != nil, "needs python3"))
    func credentialsOfAnother() throws {
        let server = try EchoServer(at: Endpoint(path: path))
        let script = """
            import os, socket, sys
            s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(os.getpid())
            """
        let result = try runProgram(try #require(python), ["-c", script, path])
        #expect(becomesTrue { server.counts.opened.value == 1 })
        let number = Int32(result.output.trimmingCharacters(in: .newlines))
        #expect(number != nil && server.counts.peers.value.first?.credentials?.process == number)
    }

    @Test("A path of the most bytes that the system allows works, and a longer one is refused with both numbers")
    func longestPath() throws {
        let most = Limits.localSocketPathBytesMax
        let room = most - folder.path.utf8.count - 1
        let longest = folder.path + "/" + String(repeating: "s", count: room)
        #expect(longest.utf8.count == most)
        let listener = try #require(try Socket.listen(on: Endpoint(path: longest)).first)
        defer { listener.close() }
        close(try Socket.connect(to: listener.endpoint, milliseconds: 5000))

        let found = try #require(failure(at: longest + "s"))
        #expect(found.number == ENAMETOOLONG)
        #expect(found.reason == "the path has \(most + 1) bytes, and \(most) are allowed")
        let refused = try #require(
            thrownServiceError {
                close(try Socket.connect(to: Endpoint(path: longest + "s"), milliseconds: 5000))
            })
        #expect(refused.code == .connectionRefused && refused.reason.contains("\(most) are allowed"))
        #expect(status(of: longest + "s") == nil)
    }

    @Test("A path that is not absolute or contains a zero is refused")
    func badPath() {
        for path in ["", "socket", "./socket", "/tmp/a\0b"] {
            #expect(failure(at: path)?.number == EINVAL)
            let error = thrownServiceError { close(try Socket.connect(to: Endpoint(path: path), milliseconds: 5000)) }
            #expect(error?.code == .connectionRefused && error?.detail == UInt32(EINVAL))
        }
    }

    @Test("The file that a dead service has left is replaced")
    func staleFile() throws {
        let dead = try listen()
        close(dead.descriptor)
        let left = try #require(status(of: path))
        let server = try EchoServer(at: Endpoint(path: path))
        let peer = try RawPeer(server)
        peer.send(frame([7]))
        #expect(peer.receive(5) == frame([7]))
        #expect(left.st_mode & S_IFMT == S_IFSOCK)
    }

    @Test("The socket of a live service is not replaced, also when its queue of connections is full")
    func liveFile() throws {
        let live = try listen(backlog: 0)
        defer { live.close() }
        let before = try #require(status(of: path)).st_ino
        #expect(failure(at: path)?.number == EADDRINUSE)
        // The attempt was a connection. It fills the queue, so the next attempt can't connect.
        let number = thrownServiceError { close(try Socket.connect(to: live.endpoint, milliseconds: 50)) }?.detail
        #if os(Linux)
        #expect(number == UInt32(ETIMEDOUT))
        #expect(failure(at: path)?.number == EADDRINUSE)
        #endif
        #expect(status(of: path)?.st_ino == before)
    }

    @Test("A file of another kind is refused and kept")
    func foreignFile() throws {
        let contents = Data("kept".utf8)
        try contents.write(to: URL(fileURLWithPath: path))
        let found = try #require(failure(at: path))
        #expect(found.number == EEXIST && found.reason.contains("no socket"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == contents)

        let subfolder = folder.path + "/folder"
        try FileManager.default.createDirectory(atPath: subfolder, withIntermediateDirectories: false)
        #expect(failure(at: subfolder)?.number == EEXIST)

        // A link could lead anywhere, also to the socket of a dead service.
        let dead = folder.path + "/dead"
        close(try #require(try Socket.listen(on: Endpoint(path: dead)).first).descriptor)
        let link = folder.path + "/link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: dead)
        #expect(failure(at: link)?.number == EEXIST)
        #expect(status(of: link) != nil && status(of: dead) != nil)
    }

    @Test(
        "A folder that is not there, or that another start has locked, is refused", .enabled(if: LockHolder.isAvailable)
    )
    func folders() throws {
        #expect(failure(at: folder.path + "/nowhere/socket")?.number == ENOENT)
        let holder = try #require(LockHolder(file: folder.path))
        let found = try #require(failure(at: path))
        #expect(found.number == EWOULDBLOCK && found.call == "locking its folder")
        holder.letGo()
        #expect(failure(at: path) == nil)
    }

    @Test("Of many that start at once on a file that was left exactly one listens, and its file stays")
    func race() throws {
        for _ in 0..<300 {
            close(try listen().descriptor)
            let winners = Shared<[Listener]>([])
            let endpoint = Endpoint(path: path)
            onThreads(8) { _ in
                guard let listeners = try? Socket.listen(on: endpoint) else { return }
                winners.with { $0 += listeners }
            }
            #expect(winners.value.count == 1)
            close(try Socket.connect(to: endpoint, milliseconds: 5000))
            for listener in winners.value { listener.close() }
        }
    }

    @Test(
        "The file has exactly the permissions that are asked for, whatever the umask", arguments: [0o000, 0o022, 0o077])
    func permissions(mask: Int) throws {
        let before = umask(mode_t(mask))
        defer { umask(before) }
        for mode: UInt32 in [0o600, 0o660, 0o666, 0o777] {
            let listener = try listen(mode: mode)
            #expect(try #require(status(of: path)).st_mode & 0o777 == mode_t(mode))
            listener.close()
        }
        let listener = try #require(try Socket.listen(on: Endpoint(path: path)).first)
        #expect(try #require(status(of: path)).st_mode & 0o777 == 0o600)
        listener.close()
    }

    @Test("Closing removes the file, but not one that has taken its place")
    func removal() throws {
        try listen().close()
        #expect(status(of: path) == nil)
        let first = try listen()
        try FileManager.default.moveItem(atPath: path, toPath: folder.path + "/moved")
        let second = try listen()
        first.close()
        #expect(status(of: path) != nil)
        close(try Socket.connect(to: second.endpoint, milliseconds: 5000))
        second.close()
        #expect(status(of: path) == nil)
    }

    @Test("A local socket where nobody listens is connection-refused")
    func nobodyListens() throws {
        for isLeftBehind in [false, true] {
            if isLeftBehind { close(try listen().descriptor) }
            let error = thrownServiceError { close(try Socket.connect(to: Endpoint(path: path), milliseconds: 5000)) }
            #expect(error?.code == .connectionRefused)
            #expect(error?.detail == UInt32(isLeftBehind ? ECONNREFUSED : ENOENT))
            #expect(error?.reason.hasPrefix("can't connect to unix:\(path)") == true)
        }
    }
}
