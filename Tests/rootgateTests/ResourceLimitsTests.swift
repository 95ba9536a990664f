import Core
import Foundation
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Transport

@Suite(
    "What the system allows a service", .serialized, .enabled(if: ServiceProcess.isObservable, "needs /proc"),
    .disabled(if: ServiceProcess.isSanitized, "the sanitizer takes more addresses than the limits allow"))
struct ResourceLimitsTests {
    private func digest(_ number: Int) -> Digest {
        Digest([UInt8](repeating: UInt8(number % 251 + 1), count: 32)) ?? .zero
    }

    /// What the service says when it does not start.
    private func refusal(_ words: [String], limit: String) -> String {
        do {
            _ = try ServiceProcess(words, limits: [limit])
            return "it has started"
        } catch {
            return "\(error)"
        }
    }

    @Test("With few descriptors there are fewer places, and a newcomer takes that of an idle connection at once")
    func fewDescriptors() async throws {
        let process = try ServiceProcess(["--workers", "2"], limits: ["-n 128"])
        #expect(process.log.contains("128 open files, so it has places for 44 connections"), "\(process.log)")
        // More than there are descriptors, all at once, and none of them closes by itself.
        let others = try (0..<300).map {
            try AttackPeer(to: process.endpoint, from: AttackPeer.addresses(8)[$0 % 8])
        }
        try await process.client().ping()
        #expect(process.descriptorCount <= 128 - Limits.descriptorsKept, "\(process.descriptorCount)")
        #expect(others.count == 300)
        #expect(process.terminate(within: 20))
    }

    @Test("With few descriptors, silent visitors of a public page leave some to clients")
    func fewDescriptorsAndVisitors() async throws {
        let process = try ServiceProcess(
            ["--workers", "2", "--app-ids", "A.b", "--association", "127.0.0.1:0"], limits: ["-n 128"],
            lines: 2)
        let address = process.announcements.last?.components(separatedBy: "://").last?.prefix { $0 != "/" }
        let port = try #require(address?.split(separator: ":").last.flatMap { UInt16($0) }, "\(process.announcements)")
        let place = Endpoint(host: "127.0.0.1", port: port)
        let visitors = try (0..<200).map { _ in
            let visitor = try RawPeer(place)
            visitor.send("GET /me".utf8)
            return visitor
        }
        // More than would be left if 64 visitors had pages and as many were told that there are too many.
        var clients: [RootgateClient] = []
        for _ in 0..<16 {
            let client = try process.client()
            try await client.ping()
            clients.append(client)
        }
        #expect(visitors.count == 200 && clients.count == 16)
        #expect(!process.log.contains("can't accept connections for now"), "\(process.log)")
        #expect(process.terminate(within: 20))
    }

    @Test("Without free descriptors, connections are served, nothing spins, and later ones come when some are free")
    func descriptors() async throws {
        // Signature kernels would be timed meanwhile.
        let folder = ScratchDirectory()
        let place = "unix:\(folder.path)/operator"
        let process = try ServiceProcess(["--signatures", "openssl", "--workers", "2", "--operator", place])
        // The service counted on more when it started.
        let lowered = try runProgram(
            "/usr/bin/prlimit", ["--pid", "\(process.identifier)", "--nofile=128:128"])
        #expect(lowered.code == 0, "\(lowered)")
        let client = try process.client()
        let name = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(name, policy: .challenge)
        var others = try (0..<160).map { _ in try RawPeer(process.endpoint) }
        #expect(becomesTrue { process.log.contains("can't accept connections for now") }, "\(process.log)")
        let before = process.processorSeconds
        for round in 0..<20 {
            try await client.ping()
            #expect(try await client.addRoots([digest(round)], to: name).changed == 1)
            try await Task.sleep(for: .milliseconds(100))
        }
        let seconds = process.processorSeconds - before
        #expect(seconds < 1, "\(seconds) s of processor time")
        #expect(process.descriptorCount <= 128 - Limits.descriptorsKept, "\(process.descriptorCount)")
        let probe = try runProgram(programPath, ["probe", "--operator", place, "--live"])
        #expect(probe.code == 0, "\(probe)")
        #expect(others.count == 160)
        others = []
        let later = try process.client()
        try await later.ping()
        #expect(try await later.testRoots([digest(19)], in: name) == [true])
        #expect(process.terminate(within: 20))
    }

    @Test("With too few descriptors, addresses or too little memory the service does not start, and says what it needs")
    func refused() {
        let descriptors = refusal(["--workers", "2"], limit: "-n \(Limits.descriptorsMin - 1)")
        #expect(descriptors.contains("it may have 95 open files, and needs 96 at least (ulimit -n)"), "\(descriptors)")
        let workers = refusal(["--workers", "64"], limit: "-n 281")
        #expect(workers.contains("it may have 281 open files, and needs 282 at least (ulimit -n)"), "\(workers)")
        let addresses = refusal([], limit: "-v 614400")
        #expect(addresses.contains("it may have 600 MiB of addresses (ulimit -v), and with its options it may need"))
        #expect(addresses.contains("32800 of them for the data file: raise the limit, or lower"), "\(addresses)")
        let memory = refusal([], limit: "-d 614400")
        #expect(memory.contains("it may have 600 MiB of memory (ulimit -d), and with its options it may need"))
    }

    /// The options of a small service, and those of a larger one.
    private static let options = [
        [
            "--storage-max", "32", "--storage-reserve", "4", "--request-memory", "8", "--known-keys", "0",
            "--replay-memory", "1", "--nonces-max", "1000", "--workers", "1",
        ],
        ["--storage-max", "256", "--request-memory", "32", "--known-keys", "16", "--workers", "8"],
    ]

    @Test("With as many descriptors as it needs at least, the service starts and answers")
    func fewestDescriptors() async throws {
        let process = try ServiceProcess(["--workers", "2"], limits: ["-n \(Limits.descriptorsMin)"])
        let client = try process.client()
        try await client.ping()
        #expect(process.terminate(within: 20))
    }

    @Test(
        "With as many addresses or as much memory as it says that it may need, the service stays up under load",
        arguments: options, ["-v", "-d"])
    func underLoad(words: [String], limit: String) async throws {
        let said = refusal(words, limit: "\(limit) 122880").components(separatedBy: "may need ")
        let need = try #require(said.count == 2 ? Int(said[1].prefix { $0.isNumber }) : nil, "\(said)")
        #expect(refusal(words, limit: "\(limit) \((need - 1) << 10)").contains("may need \(need)"))
        let process = try ServiceProcess(words, limits: ["\(limit) \(need << 10)"])
        let client = try process.client()
        let name = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(name, policy: .challenge)
        // Large requests from many connections: more than there is memory for get busy.
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<16 {
                group.addTask {
                    guard let peer = try? process.client() else { return }
                    var random = SeededGenerator(seed: runSeed &+ UInt64(number))
                    for _ in 0..<4 {
                        let roots = (0..<4000).map { _ in random.digest() }
                        _ = try? await peer.addRoots(roots, to: name)
                        _ = try? await peer.removeRoots(roots, from: name)
                        _ = try? await peer.changes(after: 0)
                    }
                }
            }
        }
        let load = try runProgram(
            ServiceProcess.path,
            [
                "load", "--server", process.endpoint.description, "--count", "3000", "--people", "100", "--connections",
                "32", "--batch", "64", "--quiet",
            ])
        #expect(load.code == 0, "\(load.errors) \(process.log)")
        #expect(process.isRunning, "\(process.log)")
        guard limit == "-v" else {
            #expect(process.terminate(within: 30))
            return
        }
        let most = process.addressBytesMax >> 20
        print("addresses: \(most) MiB at most, \(need) MiB said")
        #expect(most <= need)
        #expect(process.terminate(within: 30))
    }
}
