import Core
import Foundation
import Platform
import Server
import Transport

/// A service in a process of its own, so that its memory is its own. That process is this program again.
final class SoakService {
    /// The option with which this program is such a service. The directory comes behind it.
    static let option = "--soaked-service"

    private let directory: TemporaryDirectory
    private var process: Process?
    /// The service ends when this is closed.
    private var input: FileHandle?

    /// Starts the service over an empty storage.
    init() throws {
        directory = try TemporaryDirectory()
        try start()
    }

    deinit {
        stop()
    }

    /// A local socket, whose address stays when the service is restarted.
    var endpoint: Endpoint { SoakService.endpoint(in: directory.path) }

    private static func endpoint(in directory: String) -> Endpoint { Endpoint(path: directory + "/socket") }

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
        process.arguments = [SoakService.option, directory.path]
        process.standardInput = commands
        process.standardOutput = answers
        try process.run()
        self.process = process
        input = commands.fileHandleForWriting
        // It writes one byte when it listens. When it ends before that, there is none.
        guard try answers.fileHandleForReading.read(upToCount: 1)?.count == 1 else {
            throw ServiceError(.internalFault, "the service does not start")
        }
    }

    private func stop() {
        try? input?.close()
        process?.waitUntilExit()
        (process, input) = (nil, nil)
    }

    /// Serves until standard input ends. Called in the service's process.
    static func serve(_ directory: String) throws {
        System.raiseDescriptorLimit()
        var configuration = Configuration(
            dataDirectory: directory, workers: ProcessInfo.processInfo.activeProcessorCount)
        configuration.endpoints = [endpoint(in: directory)]
        configuration.linkBase = "https://example.com/c"
        let service = try Service(configuration)
        FileHandle.standardOutput.write(Data("+".utf8))
        _ = try FileHandle.standardInput.readToEnd()
        _ = service.shutDown()
    }
}
