import Core
import Foundation
import Platform
import Server
import TLS
import Transport
import Wire

let encryptionBenchmarks = [
    encryptedLoopback("proof.new.loopback.tls", "proof.new.loopback with TLS 1.3", against: "proof.new.loopback"),
    encryptedLoopback(
        "proof.known.loopback.tls", "proof.known.loopback with TLS 1.3", against: "proof.known.loopback",
        knownPercent: 100),
    Benchmark("inclusion.loopback.tls", "inclusion.loopback with TLS 1.3: what it costs where a proof costs least") {
        scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let rounds = try scale.alternate {
            try bench.inclusion(.encryptedBatches)
        } _: {
            try bench.inclusion()
        }
        return Measurement(
            "inclusion.loopback.tls", unit: "proofs/s", rounds: rounds, against: "inclusion.loopback",
            conditions: bench.conditions(.encryptedBatches, seconds: scale.seconds))
    },
    Benchmark("handshake.full", "a connection with a full handshake, one after the other") { scale in
        let bench = try HandshakeBench(resumesSessions: false)
        let command = try OpenSSLCommand(bench.certificates)
        let rounds = try scale.alternate {
            try bench.microseconds(scale)
        } _: {
            try command.microseconds()
        }
        return Measurement("handshake.full", unit: "us", rounds: rounds, against: "openssl s_time and s_server")
    },
    Benchmark("handshake.resumed", "a connection that resumes a session, one after the other") { scale in
        let resuming = try HandshakeBench(resumesSessions: true)
        let full = try HandshakeBench(resumesSessions: false)
        let rounds = try scale.alternate {
            try resuming.microseconds(scale)
        } _: {
            try full.microseconds(scale)
        }
        return Measurement("handshake.resumed", unit: "us", rounds: rounds, against: "handshake.full")
    },
    Benchmark("memory.idle.tls", "resident memory of an idle connection with TLS, with 10,000 of them") { scale in
        let count = min(scale.size(10_000, tiny: 20), (System.raiseDescriptorLimit() - 200) / 2)
        let encrypted = try HandshakeBench(resumesSessions: false).idleKibibytes(count)
        let plain = try HandshakeBench(resumesSessions: false, isEncrypted: false).idleKibibytes(count)
        return Measurement(
            "memory.idle.tls", unit: "KiB", rounds: [(encrypted, plain)], against: "an idle plain connection",
            conditions: "\(count) connections")
    },
]

/// Signed proofs over loopback with TLS, in alternation with the same without.
private func encryptedLoopback(
    _ name: String, _ about: String, against plain: String, knownPercent: Int = 0
) -> Benchmark {
    Benchmark(name, about, seconds: 15) { scale in
        let bench = try ProofBench.withMillionRoots(scale, knownPercent: knownPercent)
        let rounds = try scale.alternate {
            try bench.overLoopback(.encryptedBatches)
        } _: {
            try bench.overLoopback()
        }
        return Measurement(
            name, unit: "proofs/s", rounds: rounds, against: plain, conditions: bench.conditions(.encryptedBatches))
    }
}

/// A service of its own, to which connections are made.
private final class HandshakeBench {
    let certificates: BenchCertificates
    private let directory: TemporaryDirectory
    private let service: Service
    private let dialer: Dialer

    init(resumesSessions: Bool, isEncrypted: Bool = true) throws {
        certificates = try BenchCertificates()
        directory = try TemporaryDirectory()
        var configuration = Configuration(
            dataDirectory: directory.path, workers: ProcessInfo.processInfo.activeProcessorCount)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        configuration.tls = isEncrypted ? certificates.settings : nil
        configuration.connectionsMax = 20_000
        service = try Service(configuration)
        dialer = try Dialer(
            service.endpoints[0], tls: isEncrypted ? certificates.options : nil, resumesSessions: resumesSessions)
    }

    deinit {
        _ = service.shutDown()
    }

    /// Connects, and waits for the answer to a ping: then the service has finished the handshake, too.
    private func connect() throws -> any ByteStream {
        let stream = try dialer.connect(milliseconds: 10_000)
        var ping: [UInt8] = []
        FrameWriter.append(.request, Operation.ping.rawValue, requestID: 1, to: &ping) { _ in }
        guard ping.withUnsafeBytes({ stream.send($0) }) == .bytes(ping.count) else {
            throw ServiceError(.connectionLost, "a new connection takes no bytes")
        }
        var answer = [UInt8](repeating: 0, count: 256)
        while true {
            switch answer.withUnsafeMutableBytes({ stream.receive(into: $0) }) {
            case .bytes: return stream
            case .ended: throw ServiceError(.connectionLost, "a new connection has ended")
            case .wouldBlock:
                var waiting = pollfd(fd: stream.descriptor, events: Int16(POLLIN), revents: 0)
                poll(&waiting, 1, 10_000)
            }
        }
    }

    /// The mean of the microseconds that a connection takes.
    func microseconds(_ scale: Scale) throws -> Double {
        1e6 / (try scale.rate(items: 1) { try connect().close() })
    }

    /// Resident memory of the service for each of `count` idle connections. The clients' ends cost this process
    /// nothing but a descriptor: a copy of it keeps the connection open.
    func idleKibibytes(_ count: Int) throws -> Double {
        var descriptors: [CInt] = []
        descriptors.reserveCapacity(count)
        defer { for descriptor in descriptors { close(descriptor) } }
        func open(_ count: Int) throws {
            for _ in 0..<count {
                let stream = try connect()
                descriptors.append(dup(stream.descriptor))
                stream.close()
            }
        }
        try open(min(100, count / 10))
        let before = System.residentBytes
        try open(count - descriptors.count)
        return Double(System.residentBytes - before) / 1024 / Double(count - count / 10)
    }
}

/// Handshakes of the `openssl` command with itself.
private final class OpenSSLCommand {
    private let certificates: BenchCertificates
    private let server = Process()
    private let input = Pipe()
    private let port: String

    /// Throws `internalFault` when there is no such command, or when it does not listen.
    init(_ certificates: BenchCertificates) throws {
        self.certificates = certificates
        let output = Pipe()
        server.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        server.arguments = [
            "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", certificates.settings.certificatePath, "-key",
            certificates.settings.keyPath,
        ]
        (server.standardInput, server.standardOutput) = (input, output)
        server.standardError = FileHandle.nullDevice
        try server.run()
        var text = ""
        while !text.contains("ACCEPT") || !text.hasSuffix("\n") {
            let more = output.fileHandleForReading.availableData
            guard !more.isEmpty else { throw ServiceError(.internalFault, "openssl s_server does not listen") }
            text += String(decoding: more, as: UTF8.self)
        }
        port = String(text.split(separator: ":").last ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
        // What it prints about each connection has to go somewhere.
        output.fileHandleForReading.readabilityHandler = { _ = $0.availableData }
    }

    deinit {
        // Between two connections it looks at nothing else, and it inherits which signals are blocked.
        kill(server.processIdentifier, SIGKILL)
        server.waitUntilExit()
    }

    /// The mean of the microseconds that a connection with a full handshake takes, over one to two seconds.
    func microseconds() throws -> Double {
        let client = Process()
        let output = Pipe()
        client.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        client.arguments = [
            "openssl", "s_time", "-connect", "127.0.0.1:\(port)", "-new", "-time", "1", "-CAfile",
            certificates.options.authoritiesPath ?? "",
        ]
        client.standardOutput = output
        client.standardError = FileHandle.nullDevice
        var text = ""
        let elapsed = try seconds {
            try client.run()
            text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            client.waitUntilExit()
        }
        let count = text.split(separator: "\n").lazy.compactMap { line -> Double? in
            let words = line.split(separator: " ")
            return words.count > 1 && words[1] == "connections" ? Double(words[0]) : nil
        }.first
        guard let count, count > 0 else { throw ServiceError(.internalFault, "openssl s_time has made no connection") }
        return elapsed / count * 1e6
    }
}
