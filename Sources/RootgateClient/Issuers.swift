import Core
import TLS
import Wire

/// The services of a cluster, by the numbers that their challenges have. Each has a connection of its own, which is
/// made when a proof belongs there. Any task may use it.
final class Issuers: Sendable {
    private struct State {
        /// One for each address, when somebody has looked for a number.
        var connectors: [Connector] = []
        /// The places of the connectors by the numbers that their services had.
        var places: [UInt64: Int] = [:]
        /// When the services were asked last.
        var asked: ContinuousClock.Instant?
        /// Asks them now.
        var asking: Task<Void, Never>?
        var isClosed = false
    }

    /// A number that nobody has is looked for once in this time: challenges of a service that has ended stay behind.
    private static let pause = Duration.seconds(1)

    private let dialers: [Dialer]
    private let configuration: RootgateClient.Configuration
    private let state = Lock(State())

    init(_ dialers: [Dialer], _ configuration: RootgateClient.Configuration) {
        (self.dialers, self.configuration) = (dialers, configuration)
    }

    func close() {
        let connectors = state.withLock { state in
            defer { (state.connectors, state.places) = ([], [:]) }
            state.isClosed = true
            return state.connectors
        }
        for connector in connectors { connector.close() }
    }

    /// The number of the service that has issued a challenge; `nil` for what can't be one.
    static func number(in data: [UInt8]) -> UInt64? {
        guard data.count == Limits.challengeBytes else { return nil }
        return data[Limits.challengeIssuerBytes].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The way to the service whose challenges have a number; `nil`: no address leads there.
    func connector(of number: UInt64, until deadline: ContinuousClock.Instant) async -> Connector? {
        if let known = known(number) { return known }
        // Who comes while the services are asked waits for their answers.
        let asking = state.withLock { state -> Task<Void, Never>? in
            if let asking = state.asking { return asking }
            if let asked = state.asked, ContinuousClock.now < asked + Issuers.pause { return nil }
            state.asked = .now
            state.asking = Task { [self] in
                await ask(until: .now + configuration.connectTimeout)
                self.state.withLock { $0.asking = nil }
            }
            return state.asking
        }
        await asking?.value
        return ContinuousClock.now < deadline ? known(number) : nil
    }

    private func known(_ number: UInt64) -> Connector? {
        state.withLock { state in state.places[number].map { state.connectors[$0] } }
    }

    /// Asks every service for its number.
    private func ask(until deadline: ContinuousClock.Instant) async {
        let connectors = all()
        await withTaskGroup(of: (Int, UInt64?).self) { group in
            for (place, connector) in connectors.enumerated() {
                group.addTask { (place, await Issuers.number(of: connector, until: deadline)) }
            }
            for await (place, number) in group {
                guard let number else { continue }
                state.withLock { state in
                    guard !state.isClosed else { return }
                    state.places = state.places.filter { $0.value != place }
                    state.places[number] = place
                }
            }
        }
    }

    private static func number(of connector: Connector, until deadline: ContinuousClock.Instant) async -> UInt64? {
        guard case .success(let link) = await connector.link(until: deadline) else { return nil }
        var body: [UInt8] = []
        Request.hello(minimum: protocolVersion, maximum: protocolVersion).append(to: &body)
        guard case .success(let answer) = await link.request(.hello, body: body, deadline: deadline),
            let hello = try? answer.withRawBytes({ body throws(ServiceError) in try HelloAnswer(body) })
        else { return nil }
        return hello.limits[HelloAnswer.Limit.issuer.rawValue]
    }

    private func all() -> [Connector] {
        let known = state.withLock { $0.connectors }
        guard known.isEmpty else { return known }
        let made = dialers.compactMap {
            try? Connector([$0], key: configuration.key, connectTimeout: configuration.connectTimeout)
        }
        let (used, unused) = state.withLock { state -> ([Connector], [Connector]) in
            guard !state.isClosed, state.connectors.isEmpty else { return (state.connectors, made) }
            state.connectors = made
            return (made, [])
        }
        for connector in unused { connector.close() }
        return used
    }
}
