import Cluster
import Core
import Etcd
import EtcdTestSupport
import Foundation
import Platform
import Server
import TLS
import Transport

/// A service in a process of its own, so that its memory and its processor time are its own. That process is this
/// program again.
final class BenchService {
    /// The option with which this program is such a service. The directory comes behind it.
    static let option = "--service-in"

    private let directory: TemporaryDirectory
    private let certificates: BenchCertificates?
    /// Where it speaks TLS besides, and how its clients do so; `nil`: nowhere.
    let encrypted: (endpoint: Endpoint, options: TLSOptions)?
    private var process: Process?
    /// The service tells its processor time for each byte, and ends when this is closed.
    private var input: FileHandle?
    private var output: FileHandle?

    /// Starts the service over an empty storage. `cluster`: the cluster that it is one of; `nil`: it is alone.
    /// `isEncrypted`: whether it speaks TLS at an address of its own. `isAudited`: whether it writes an audit into its
    /// directory.
    init(of cluster: BenchCluster? = nil, isEncrypted: Bool = false, isAudited: Bool = false) throws {
        directory = try TemporaryDirectory()
        certificates = isEncrypted ? try BenchCertificates() : nil
        if let certificates {
            let endpoint = Endpoint(host: "127.0.0.1", port: try EtcdProcesses.freePorts(1)[0])
            encrypted = (endpoint, certificates.options)
            let lines = [endpoint.description, certificates.settings.certificatePath, certificates.settings.keyPath]
            try lines.joined(separator: "\n").write(
                toFile: Places(directory.path).encryption, atomically: true, encoding: .utf8)
        } else {
            encrypted = nil
        }
        if let cluster {
            let places = Places(directory.path)
            let endpoints = cluster.etcd.endpoints.map(\.description).joined(separator: ",")
            try endpoints.write(toFile: places.etcd, atomically: true, encoding: .utf8)
            try FileManager.default.copyItem(atPath: cluster.secretPath, toPath: places.secret)
        }
        if isAudited { try Data().write(to: URL(fileURLWithPath: Places(directory.path).audit)) }
        try start()
    }

    deinit {
        stop()
    }

    /// Files in the service's directory.
    private struct Places {
        /// A local socket, whose address stays when the service is restarted.
        let socket: Endpoint
        /// The addresses of etcd; the file is missing when the service is alone.
        let etcd: String
        let secret: String
        /// The address with TLS, and the paths of the certificate and of its key, a line each; the file is missing when
        /// there is none.
        let encryption: String
        /// The audit, which the service goes on with; the file is missing when there is none.
        let audit: String

        init(_ directory: String) {
            socket = Endpoint(path: directory + "/socket")
            (etcd, secret) = (directory + "/etcd", directory + "/shared-secret")
            encryption = directory + "/encryption"
            audit = directory + "/" + BenchService.auditName
        }
    }

    /// The name of the audit. Files that were moved aside have a number behind it.
    static let auditName = "audit"

    var endpoint: Endpoint { Places(directory.path).socket }
    var dataDirectory: String { directory.path }

    /// Seconds for which processors have worked for the service since it began.
    func processorSeconds() throws -> Double {
        try input?.write(contentsOf: Data([0]))
        var line: [UInt8] = []
        while let byte = try output?.read(upToCount: 1)?.first, byte != UInt8(ascii: "\n") { line.append(byte) }
        guard let microseconds = Double(String(decoding: line, as: UTF8.self)) else {
            throw ServiceError(.internalFault, "the service does not tell its processor time")
        }
        return microseconds / 1e6
    }

    /// Ends the service in order, and starts it again over its storage.
    func restart() throws {
        stop()
        try start()
    }

    private func start() throws {
        guard let program = Bundle.main.executablePath else {
            throw ServiceError(.internalFault, "this program's file is not known")
        }
        let process = Process()
        let (commands, answers) = (Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = [BenchService.option, directory.path]
        process.standardInput = commands
        process.standardOutput = answers
        try process.run()
        self.process = process
        (input, output) = (commands.fileHandleForWriting, answers.fileHandleForReading)
        // It writes one byte when it listens. When it ends before that, there is none.
        guard try output?.read(upToCount: 1)?.count == 1 else {
            throw ServiceError(.internalFault, "the service does not start")
        }
    }

    /// Ends the service in order, if it runs.
    func stop() {
        try? input?.close()
        process?.waitUntilExit()
        (process, input, output) = (nil, nil, nil)
    }

    /// Serves until standard input ends. Called in the service's process.
    static func serve(_ directory: String) throws {
        System.raiseDescriptorLimit()
        let places = Places(directory)
        var configuration = Configuration(
            dataDirectory: directory, workers: ProcessInfo.processInfo.activeProcessorCount)
        configuration.plainEndpoints = [places.socket]
        configuration.endpoints = []
        if let encryption = try? String(contentsOfFile: places.encryption, encoding: .utf8) {
            let lines = encryption.split(separator: "\n").map(String.init)
            configuration.endpoints = Endpoint(lines[0]).map { [$0] } ?? []
            configuration.tls = ServerTLSSettings(certificatePath: lines[1], keyPath: lines[2])
        }
        if FileManager.default.fileExists(atPath: places.audit) { configuration.auditPath = places.audit }
        configuration.linkBase = "https://example.com/c"
        if let etcd = try? String(contentsOfFile: places.etcd, encoding: .utf8) {
            let endpoints = etcd.split(separator: ",").compactMap { Endpoint(String($0)) }
            configuration.cluster = ClusterSettings(endpoints, name: try BenchCluster.name())
            configuration.secretPath = places.secret
        }
        let service = try Service(configuration)
        FileHandle.standardOutput.write(Data("+".utf8))
        while let asked = try FileHandle.standardInput.read(upToCount: 1), !asked.isEmpty {
            let microseconds = Double(clock()) * 1e6 / Double(CLOCKS_PER_SEC)
            FileHandle.standardOutput.write(Data("\(Int(microseconds))\n".utf8))
        }
        _ = service.shutDown()
    }
}
