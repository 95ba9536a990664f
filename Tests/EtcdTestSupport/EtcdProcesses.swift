package import Etcd
import Foundation
package import TLS
import TestSupport
package import Transport

/// The program `etcd`; `nil` when there is none.
package let etcd: String? = {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
    return folders.map { $0 + "/etcd" }.first { FileManager.default.isExecutableFile(atPath: $0) }
}()

/// Some members of an etcd on this machine, each in a process of its own. They end with this object.
package final class EtcdProcesses {
    private let directory = ScratchDirectory()
    private var arguments: [[String]] = []
    private var processes: [Process?] = []
    package private(set) var endpoints: [Endpoint] = []
    package let tls: TLSOptions?

    /// Starts the members. `words`: further arguments of each. `tls`: of their clients, with what those arguments say.
    package init(members count: Int = 1, _ words: [String] = [], tls: TLSOptions? = nil) throws {
        self.tls = tls
        // Somebody else may take a port between its choice and its use.
        for attempt in 0..<3 {
            try choosePlaces(count, words, attempt)
            for member in 0..<count { try start(member) }
            let session = try session()
            let isUp = becomesTrue {
                session.survey(milliseconds: 500).allSatisfy { $0?.hasLeader == true }
                    || processes.contains { $0?.isRunning == false }
            }
            if isUp, !processes.contains(where: { $0?.isRunning == false }) { return }
            end()
        }
        throw Failure()
    }

    private func choosePlaces(_ count: Int, _ words: [String], _ attempt: Int) throws {
        let ports = try EtcdProcesses.freePorts(2 * count)
        let scheme = tls == nil ? "http" : "https"
        let cluster = (0..<count).map { "m\($0)=http://127.0.0.1:\(ports[count + $0])" }.joined(separator: ",")
        arguments = (0..<count).map { member in
            let client = "\(scheme)://localhost:\(ports[member])"
            let peer = "http://127.0.0.1:\(ports[count + member])"
            return [
                "--name", "m\(member)", "--data-dir", "\(directory.path)/\(attempt)-\(member)",
                "--listen-client-urls", client.replacing("localhost", with: "127.0.0.1"),
                "--advertise-client-urls", client, "--listen-peer-urls", peer,
                "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster,
                "--initial-cluster-token", "\(directory.path)/\(attempt)", "--logger", "zap", "--log-level", "error",
            ] + words
        }
        endpoints = (0..<count).map { Endpoint(host: "localhost", port: ports[$0]) }
        processes = [Process?](repeating: nil, count: count)
    }

    private struct Failure: Error, CustomStringConvertible {
        let description = "etcd did not start"
    }

    deinit { end() }

    /// Ends all members.
    package func end() {
        for member in processes.indices {
            signal(SIGCONT, member)
            kill(member)
        }
    }

    /// Ports that nobody listened at a moment ago.
    package static func freePorts(_ count: Int) throws -> [UInt16] {
        let listeners = try (0..<count).flatMap { _ in try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)) }
        defer { for listener in listeners { listener.close() } }
        return listeners.map(\.endpoint.port)
    }

    package func start(_ member: Int) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: etcd ?? "")
        process.arguments = arguments[member]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        // etcd runs on other processors than these only when it is told so.
        process.environment = ProcessInfo.processInfo.environment.merging(["ETCD_UNSUPPORTED_ARCH": "arm64"]) { a, _ in
            a
        }
        try process.run()
        processes[member] = process
    }

    package func signal(_ number: CInt, _ member: Int) {
        guard let process = processes[member], process.isRunning else { return }
        Foundation.kill(process.processIdentifier, number)
    }

    /// Ends a member at once, and waits for its end.
    package func kill(_ member: Int) {
        guard let process = processes[member] else { return }
        signal(SIGKILL, member)
        process.waitUntilExit()
        processes[member] = nil
    }

    /// Ends all members, removes what they have stored, and starts them again.
    package func loseEverything() throws {
        for member in processes.indices { kill(member) }
        for words in arguments {
            guard let place = words.firstIndex(of: "--data-dir") else { continue }
            try FileManager.default.removeItem(atPath: words[place + 1])
        }
        for member in arguments.indices { try start(member) }
    }

    /// The first session of new members.
    package func session(_ credentials: EtcdMembers.Credentials? = nil, first: Int = 0) throws -> EtcdSession {
        EtcdSession(try EtcdMembers(endpoints, tls: tls, credentials: credentials), first: first)
    }
}
