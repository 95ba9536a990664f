import Core
import Foundation
import LoadHarness
import RootgateClient
import Server

let topCommand = Command(
    "top", "show a service's rates, queues, memory and verdicts, live",
    options: [
        .server,
        Option(
            "timeout", "SECONDS", standard: "2", "how long an answer may take before the view says that there is none"),
        Option("interval", "SECONDS", standard: "1", "time between two views"),
        Option("count", "N", "end after so many views (default: go on)"), .json,
    ]
) { arguments in
    let interval = try arguments.decimal("interval", in: 0.01...86_400)
    let count = arguments.text("count") == nil ? Int.max : try arguments.number("count", in: 1...Int.max)
    let isJSON = arguments.isOn("json")
    let server = try arguments.required("server")
    let client = try connect(arguments)
    defer { client.close() }
    var watch = try await ServiceWatching(client, server)
    let screen = isJSON || !TerminalScreen.isPossible ? nil : TerminalScreen()
    defer { screen?.end() }
    var next = ContinuousClock.now
    for number in 1...count {
        if let screen {
            screen.draw(watch.lines(columns: TerminalScreen.size.columns))
        } else if isJSON {
            printNow(try json(watch.object))
        } else {
            printNow(((number == 1 ? [] : [""]) + watch.lines(columns: 100)).joined(separator: "\n"))
        }
        guard number < count else { break }
        // A view that comes late delays the next ones instead of crowding them.
        next = max(next + .seconds(interval), ContinuousClock.now)
        try await Task.sleep(until: next, clock: .continuous)
        try await watch.look()
    }
    return watch.isAnswered ? .success : .failure
}

/// The views of one service, one after the other, also over times when it does not answer.
private struct ServiceWatching {
    private let client: RootgateClient
    private let server: String
    private var view: ServiceView
    private var lastAnswer: ContinuousClock.Instant
    /// Why there is no answer; `nil` while there is one.
    private var outage: String?

    /// Throws when the service does not answer: then it is likely that nobody is there.
    init(_ client: RootgateClient, _ server: String) async throws {
        (self.client, self.server) = (client, server)
        view = ServiceView(try await Self.sample(client), after: nil)
        lastAnswer = .now
    }

    var isAnswered: Bool { outage == nil }

    /// Looks again. A service that does not answer is an outage; throws only what does not pass by itself.
    mutating func look() async throws {
        do throws(ServiceError) {
            view = ServiceView(try await Self.sample(client), after: view.sample)
            (lastAnswer, outage) = (.now, nil)
        } catch {
            guard ![.tlsRefused, .keyRefused, .roleMissing].contains(error.code) else { throw error }
            outage = error.description
        }
    }

    private static func sample(_ client: RootgateClient) async throws(ServiceError) -> ServiceSample {
        // A service names each figure once. Of one that does not, the last value counts.
        ServiceSample(figures: Dictionary(try await client.statistics().map { ($0.name, $0.value) }) { $1 })
    }

    private var awaySeconds: Double { (ContinuousClock.now - lastAnswer) / .seconds(1) }

    func lines(columns: Int) -> [String] {
        guard let outage else { return view.lines(server.escapingControls, columns: columns) }
        return [
            "\(server.escapingControls) has not answered for \(ServiceView.time(awaySeconds)): trying again",
            outage.escapingControls,
        ]
    }

    var object: [String: Any] {
        guard let outage else { return view.object }
        return ["answered": false, "reason": outage, "awaySeconds": awaySeconds]
    }
}
