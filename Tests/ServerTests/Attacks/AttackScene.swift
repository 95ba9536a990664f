import Core
import Foundation
import Platform
import RootgateClient
import Server
import ServiceTestSupport
import TestSupport
import Testing

/// A service with default options in a process of its own, and a client that verifies and removes beside an attack.
///
/// The client's p99 over all rounds under attack must be below one of two bounds. The first is a tenth above the p99 in
/// the median of the rounds before the attack. The second is for machines that are slower when they are busy: a
/// control. Its threads take as much processor time as the attacker and the service take for the attack, at the same
/// moments, and touch no service; rounds of both alternate. The bound is a tenth above the control's p99. Two times are
/// added to it: as much as one round of the control was above all of them, because other programs take time, too; and
/// the time of one request of the attack, because a worker or the writer finishes what it has begun. When the p99 is
/// above both bounds, there are further rounds, up to `pairsMax`.
///
/// Times are compared only when `ROOTGATE_ATTACK_TIMES` is set, because they say little on a machine that does other
/// things too. Otherwise they are reported. Whether every request is answered, and the memory, are always checked.
///
/// Where an attacker sends without a pause as much as all processors can do, its work also takes a turn before the
/// client's. `Turns` says which turns; the time that they take is added, too.
final class AttackScene: Sendable {
    static let comparesTimes = ProcessInfo.processInfo.environment["ROOTGATE_ATTACK_TIMES"] != nil
    private static let pairsMin = comparesTimes ? 3 : 1
    private static let pairsMax = 6
    /// How long a round takes at least. In less time the samples of processor time would be too few.
    private static let roundTime: Duration = comparesTimes ? .seconds(1) : .zero
    /// The part by which the p99 may be above the control's.
    private static let growthMax = 0.1
    /// In milliseconds.
    private static let timeMax = 2000.0
    private static let sampleMicroseconds: UInt32 = 20_000

    /// Turns of the attacker that come before a request of the client.
    ///
    /// The control has no turns: its threads only take processor time, of which the system gives the client its part
    /// at once.
    enum Turns {
        /// The attacker does not keep the service busy.
        case none
        /// A request of the client waits until the loop looks at its socket, and until it comes to the work of it.
        case ofLoop
        /// A mutation also waits for the commit that has begun.
        case ofLoopAndWriter
    }

    /// What happened in rounds of one kind.
    private struct Rounds {
        var all = HonestClient.Tally()
        /// The p99 of each round, in milliseconds.
        var p99s: [Double] = []

        mutating func append(_ tally: HonestClient.Tally) {
            all = all + tally
            p99s.append(tally.p99)
        }

        /// How much a round's p99 is above that of all rounds, at most.
        var spread: Double { max(0, (p99s.max() ?? 0) - all.p99) }
    }

    /// What was seen at a moment of an attack, since its beginning. Times are in seconds.
    private struct Sample: Sendable {
        let time: Double
        let attacker: Double
        let service: Double
        let answered: Int
    }

    let service: ServiceProcess
    let observer: RootgateClient
    private let client: HonestClient
    private let rounds: Int
    /// The most that the service had in memory during an attack.
    private let resident = Shared(0)

    /// `rounds`: of six requests of the client, in each round of an attack.
    init(_ words: [String] = [], rounds: Int = 20) async throws {
        System.raiseDescriptorLimit()
        service = try ServiceProcess(words)
        observer = try service.client()
        client = try await HonestClient(service.endpoint)
        self.rounds = rounds
    }

    /// A figure of the service's statistics.
    func figure(_ name: String) async throws -> Int {
        try await observer.statistics().first { $0.name == name }.map { Int($0.value) } ?? 0
    }

    /// Whether `condition` comes true within half a minute.
    private func becomes(_ condition: () async throws -> Bool) async throws -> Bool {
        let deadline = ContinuousClock.now + .seconds(30)
        while try await !condition() {
            guard ContinuousClock.now < deadline else { return false }
            try await Task.sleep(for: .milliseconds(10))
        }
        return true
    }

    /// Runs the attack beside the client, in alternation with its control, and checks what the client got and what the
    /// service holds. `isUnderWay` says when the attack has become what it is meant to be.
    func run(
        _ name: String, _ plan: Attack.Plan, connections: Int, turns: Turns = .none,
        until isUnderWay: (Attack) async throws -> Bool = { _ in true },
        request: () async throws -> Void = {}
    ) async throws {
        let isCompared = AttackScene.comparesTimes
        let quiet = try await measureQuiet()
        let begun = try await time(of: request) + AttackScene.time(of: turns)
        let residentBefore = service.residentBytes
        var (attacked, controlled) = (Rounds(), Rounds())
        var last: Sample?
        repeat {
            let attack = try Attack(plan, connections: connections, on: service.endpoint)
            let isBegun = try await becomes { try await isUnderWay(attack) }
            try #require(isBegun, "the attack does not get under way")
            let samples = try await measure(attack, &attacked)
            attack.stop()
            let isReleased = try await becomes { try await figure("request-memory-bytes") < 1 << 20 }
            try #require(isReleased, "memory is held after the end")
            let load = ProcessorLoad(profiles(samples, quiet.secondsPerRequest))
            controlled.append(try await client.work(rounds: rounds, atLeast: AttackScene.roundTime))
            load.stop()
            last = samples.last
        } while attacked.p99s.count < AttackScene.pairsMin
            || (isCompared && !isWithin(attacked, quiet.tally, controlled, begun)
                && attacked.p99s.count < AttackScene.pairsMax)
        report("\(name), \(connections) connections", quiet.tally, attacked, controlled, last, residentBefore, begun)
        #expect(quiet.tally.failures + attacked.all.failures + controlled.all.failures == [])
        let isWithin =
            isCompared
            ? isWithin(attacked, quiet.tally, controlled, begun) : attacked.all.p99 < AttackScene.timeMax
        #expect(isWithin, "the attack costs the client more than its processor time")
        let (most, grown) = (resident.value, resident.value - residentBefore)
        #expect(most <= AttackScene.residentBytesMax, "the service holds more than its caps say")
        #expect(grown <= AttackScene.attackBytesMax, "the attack takes more than its caps say")
    }

    // MARK: The client's time

    /// The milliseconds that the attacker's turns take: as long as the service's limits say, times the number of
    /// threads that share a processor meanwhile. Those are the loops, the attacker, and the writer if it works.
    private static func time(of turns: Turns) -> Double {
        let loop = Double(2 * (Limits.readyTurnMicroseconds + Limits.workTurnMicroseconds)) / 1000
        let processors = Double(workers)
        return switch turns {
        case .none: 0
        case .ofLoop: loop * (processors + 1) / processors
        case .ofLoopAndWriter:
            (loop + Double(Limits.sharedCommitMillisecondsMin)) * (processors + 2) / processors
        }
    }

    /// `begun`: the time of one request of the attack, and of its turns.
    private func isWithin(
        _ attacked: Rounds, _ quiet: HonestClient.Tally, _ controlled: Rounds, _ begun: Double
    ) -> Bool {
        let most = (1 + AttackScene.growthMax) * controlled.all.p99 + controlled.spread + begun
        return attacked.all.p99 <= max(most, (1 + AttackScene.growthMax) * quiet.p99)
    }

    /// The time that a request takes when nobody else sends any, in milliseconds: the median of five.
    private func time(of request: () async throws -> Void) async throws -> Double {
        var times: [Double] = []
        for _ in 0..<5 {
            let start = ContinuousClock.now
            try await request()
            times.append((ContinuousClock.now - start) / .milliseconds(1))
        }
        return times.sorted()[2]
    }

    private func measureQuiet() async throws -> (tally: HonestClient.Tally, secondsPerRequest: Double) {
        // The first requests find a service that has just started.
        _ = try await client.work(rounds: 5)
        let before = service.processorSeconds
        var tallies: [HonestClient.Tally] = []
        for _ in 0..<AttackScene.pairsMin {
            tallies.append(try await client.work(rounds: rounds, atLeast: AttackScene.roundTime))
        }
        let seconds = service.processorSeconds - before
        // One that was slow by chance must not let attacks pass.
        tallies.sort { $0.p99 < $1.p99 }
        return (tallies[tallies.count / 2], seconds / Double(tallies.reduce(0) { $0 + $1.times.count }))
    }

    /// Lets the client work beside the attack, and looks at it all the time.
    private func measure(_ attack: Attack, _ attacked: inout Rounds) async throws -> [Sample] {
        let (isOver, samples) = (Shared(false), Shared<[Sample]>([]))
        let ended = DispatchSemaphore(value: 0)
        Thread { [self] in
            let start = ContinuousClock.now
            let before = (attack.processorSeconds, service.processorSeconds, client.answered.value)
            while !isOver.value {
                usleep(AttackScene.sampleMicroseconds)
                let sample = Sample(
                    time: (ContinuousClock.now - start) / .seconds(1), attacker: attack.processorSeconds - before.0,
                    service: service.processorSeconds - before.1, answered: client.answered.value - before.2)
                samples.with { $0.append(sample) }
                let bytes = service.residentBytes
                resident.with { $0 = max($0, bytes) }
            }
            ended.signal()
        }.start()
        attacked.append(try await client.work(rounds: rounds, atLeast: AttackScene.roundTime))
        isOver.with { $0 = true }
        ended.wait()
        return samples.value
    }

    /// The processor time of the attacker, and that of each of the service's threads beyond what the client needs.
    private func profiles(_ samples: [Sample], _ secondsPerRequest: Double) -> [ProcessorLoad.Profile] {
        var part = 0.0
        let threads = Double(AttackScene.workers)
        let share: ProcessorLoad.Profile = samples.map { sample in
            part = max(part, (sample.service - secondsPerRequest * Double(sample.answered)) / threads)
            return (sample.time, part)
        }
        return [samples.map { ($0.time, $0.attacker) }] + [ProcessorLoad.Profile](repeating: share, count: Int(threads))
    }

    private func report(
        _ name: String, _ quiet: HonestClient.Tally, _ attacked: Rounds, _ controlled: Rounds, _ last: Sample?,
        _ residentBefore: Int, _ begun: Double
    ) {
        func text(_ number: Double) -> String { String(format: "%.2f", number) }
        func text(_ tally: HonestClient.Tally) -> String { "\(text(tally.median))/\(text(tally.p99))" }
        let time = max(last?.time ?? 0, 0.001)
        print(
            """
            attack: \(name): p50/p99 ms: quiet \(text(quiet)), attacked \(text(attacked.all)) \
            (longest: \(attacked.all.slowest.name)), control \(text(controlled.all)), \
            spread \(text(controlled.spread)), one request and turns \(text(begun)), \
            \(attacked.p99s.count) pairs; \
            processors: attacker \(text((last?.attacker ?? 0) / time)), service \(text((last?.service ?? 0) / time)); \
            resident MiB: \(residentBefore >> 20) before, at most \(resident.value >> 20)
            """)
    }

    // MARK: The service's memory

    private static let workers = ProcessInfo.processInfo.activeProcessorCount
    private static let defaults = Configuration(dataDirectory: "", workers: workers)

    /// Bytes that an attack may make the service take: the memory for requests, what each worker has for receiving and
    /// answering, and what a commit changes in memory before it is written.
    static let attackBytesMax =
        defaults.requestBytesMax + workers * (Limits.receiveBufferBytes + Limits.frameBodyBytesMax)
        + 2 * Limits.mutationBytesPerCommitMax

    /// The sum of all caps that are stated, with the default options, but that of a commit's pages, which are few here:
    /// besides those above spent challenges, nonces, tables of known keys, and 32 MiB for the program with its tables.
    static let residentBytesMax =
        attackBytesMax + defaults.replayBytesMax + 60 * defaults.noncesMax + defaults.knownKeyBytesMax + 32 << 20
}
