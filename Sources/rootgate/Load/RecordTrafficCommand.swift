import Core
import Foundation
import LoadHarness
import Platform
import RootgateClient

/// `rootgate load --record FILE`: writes what the clients of a service do, once a second.
func recordTraffic(_ arguments: Arguments, _ path: String) async throws -> ExitCode {
    let seconds = try arguments.decimal("seconds", in: 1...604_800)
    let services = try serverOptions(arguments)
    guard let service = services.first, services.count == 1 else { throw UsageError("--record takes one --server") }
    let client = try connect(arguments, to: service)
    defer { client.close() }
    let isJSON = arguments.isOn("json")
    let progress = progressMeter(arguments)
    defer { progress.end() }
    try arguments.checkAllRead()

    let file = try RecordingFile(path)
    try file.append(try TrafficShape.head())
    progress.begin("recording", share: 0...1)
    var before = try await figures(client)
    var (periods, requests, others, proofs) = (0, 0.0, 0.0, 0.0)
    let begin = ContinuousClock.now
    var past = 0.0
    while past < seconds {
        try await Task.sleep(for: .seconds(1))
        // A restart of the service takes less than the client's time-out.
        let after = try await figures(client)
        past = (ContinuousClock.now - begin) / .seconds(1)
        if let period = TrafficShape.period(from: before, to: after) {
            try file.append(try TrafficShape.line(of: period))
            periods += 1
            requests += LoadKind.allCases.reduce(0) { $0 + period.count($1) }
            (others, proofs) = (others + period.others, proofs + period.proofs)
        }
        before = after
        progress.show("\(Int(requests)) requests", done: past / seconds)
    }
    progress.end()
    printNow(
        isJSON
            ? try json(["periods": periods, "requests": requests, "proofs": proofs, "others": others])
            : "\(periods) seconds: \(Int(requests)) requests with \(Int(proofs)) proofs, and \(Int(others)) others, "
                + "which a replay leaves out")
    return .success
}

private func figures(_ client: RootgateClient) async throws -> [String: UInt64] {
    Dictionary(try await client.statistics().map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
}

/// A file that gets one line after the other; each is there at once.
private final class RecordingFile {
    private let path: String
    private let descriptor: CInt

    /// Throws a `FileFailure` when there is such a file, or when none can be made.
    init(_ path: String) throws(FileFailure) {
        self.path = path
        descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw FileFailure("make", path, SystemFailure("open")) }
    }

    deinit {
        close(descriptor)
    }

    /// Throws a `FileFailure`.
    func append(_ line: String) throws(FileFailure) {
        do throws(SystemFailure) {
            try System.writeAll(Data(line.utf8), to: descriptor)
        } catch {
            throw FileFailure("write", path, error)
        }
    }
}
