import Core
import Foundation
import LoadHarness
import RootgateClient

/// A service under load: its collaborations and their people, and what makes and sends the requests. One portion is
/// sent at a time.
actor LoadTarget {
    private let plan: LoadPlan
    private let client: RootgateClient
    private let shared: SharedCollaborations
    private let population: Population
    private let run: LoadRun
    private let progress: ProgressMeter
    private var requests: MixedRequests
    private var mix: TrafficMix
    private var grantsTaken: ContinuousClock.Instant?
    /// For how long a challenge is valid.
    private let challengeSeconds: Double

    /// Grants that are shown in turn, at least one of each collaboration.
    private static let grantsMin = 1000
    /// Grants that are older are replaced before the next portion: a service's may be short.
    private static let grantAgeMax = Duration.seconds(20)
    /// The part of the challenges' time in which those of a portion are sent on a schedule.
    private static let challengeTimePart = 0.5

    /// Starts collaborations at the service, and connects.
    ///
    /// Throws what the service throws, and ends what it has started then.
    init(
        _ service: ServiceAddress, _ client: RootgateClient, _ plan: LoadPlan, _ leftovers: LoadLeftovers,
        connections: Int, _ progress: ProgressMeter
    ) async throws {
        self.plan = plan
        self.client = client
        self.progress = progress
        progress.begin("starting collaborations")
        shared = try await SharedCollaborations(
            plan.collaborations, haveParticipants: plan.kinds.contains(where: \.needsParticipants), client, progress)
        leftovers.add { [shared] in try? await shared.end() }
        do {
            progress.begin("making \(plan.people) people with 5 devices each")
            population = try Population(people: plan.people, devices: 5...5, in: shared.identifiers)
            progress.begin("adding root hashes")
            try await shared.add(population, progress)
            challengeSeconds =
                plan.kinds.contains(where: \.needsChallenges)
                ? Double(try await client.challenges(1).validMilliseconds) / 1000 : .infinity
            run = try LoadRun(
                service.endpoint, tls: service.tls, key: service.key, connections: connections, depth: plan.depth)
        } catch {
            try? await shared.end()
            throw error
        }
        mix = plan.mix
        requests = MixedRequests(
            population, choice: DeviceChoice(population, skew: plan.skew), invalidPart: plan.invalidPart)
        requests.sizes = plan.sizes
    }

    /// Ends the collaborations.
    func end() async throws {
        try await shared.end()
    }

    // MARK: Sending

    /// Sends for `seconds`, or `count` proofs. `perSecond`: requests, which are sent on a schedule; `nil`: as many as
    /// are answered. `roundsMax`: how often requests are made and sent.
    func drive(
        seconds: Double, count: Int, perSecond: Double?, roundsMax: Int = .max
    ) async throws -> LoadReport {
        var report = LoadReport()
        if perSecond == nil, mix.kinds == [.inclusion] {
            // They can be sent again.
            let batch = plan.sizes.batch
            let size = max(plan.connections * plan.depth * 2, plan.people * 5 / Int(batch) + 1)
            let (list, _) = try await make((0..<size).map { _ in .inclusion })
            return await driveShowing(after: report, of: seconds, count) { [run] in
                run.drive(list, isRepeating: true, seconds: seconds)
            }
        }
        var (sent, rounds) = (0, 0)
        while rounds < roundsMax, report.seconds < seconds, sent < count {
            let left = seconds - report.seconds
            let kinds = nextKinds(perSecond, left: left)
            let done = seconds.isFinite ? report.seconds / seconds : Double(sent) / Double(count)
            progress.show("\(report.requests) answered, making \(kinds.count)", done: done)
            let (list, proofs) = try await make(kinds, proofsMax: min(count - sent, plan.round))
            let answered = report.requests
            report.add(
                await driveShowing(after: report, of: seconds, count) { [run] in
                    perSecond.map { run.drive(list, perSecond: $0) } ?? run.drive(list, seconds: left)
                })
            (sent, rounds) = (sent + proofs, rounds + 1)
            // Nobody answers any more.
            if report.requests == answered, !report.errors.isEmpty { break }
        }
        return report
    }

    /// Sends what a recording has.
    func replay(_ replay: LoadPlan.Replay, share: Double) async throws -> LoadReport {
        var report = LoadReport()
        var traffic = ReplayedTraffic(replay.shape, scale: replay.scale * share, itemsMax: plan.round)
        while let slices = traffic.nextPortion() {
            var (list, moments, begin): ([LoadRequest], [Double], Double) = ([], [], 0)
            progress.show("\(report.requests) answered, making more", done: traffic.done)
            for slice in slices {
                requests.sizes.batch = slice.batch
                requests.forge(slice.invalidPart)
                list += try await make(slice.kinds).requests
                moments += slice.moments().map { begin + $0 }
                begin += slice.seconds
            }
            let start = ContinuousClock.now
            var part = await driveShowing(after: report, of: .infinity, .max) { [run, list, moments] in
                run.drive(list, at: moments)
            }
            // Also while nothing was sent, time passed.
            try await Task.sleep(until: start + .seconds(begin))
            part.seconds = max(part.seconds, begin)
            report.add(part)
        }
        return report
    }

    /// The kinds of the next portion's requests.
    private func nextKinds(_ perSecond: Double?, left: Double) -> [LoadKind] {
        let items = mix.kinds.reduce(0) {
            $0 + mix.part(of: $1) * ($1.hasProofs || $1 == .check ? plan.sizes.batch : 1)
        }
        var size = Double(plan.round) / items
        if let perSecond {
            // What is sent on a schedule is sent as a whole.
            if left.isFinite { size = min(size, left * perSecond) }
            size = min(size, LoadTarget.challengeTimePart * challengeSeconds * perSecond)
            if mix.kinds.contains(where: \.needsGrants) {
                size = min(size, LoadTarget.grantAgeMax / .seconds(1) * perSecond)
            }
        }
        return (0..<max(1, Int(size))).map { _ in mix.next() }
    }

    /// Requests, and how many proofs they have. `proofsMax`: the most.
    private func make(
        _ kinds: [LoadKind], proofsMax: Int = .max
    ) async throws -> (requests: [LoadRequest], proofs: Int) {
        if kinds.contains(where: \.needsGrants),
            grantsTaken.map({ .now - $0 > LoadTarget.grantAgeMax }) ?? true
        {
            let taken = ContinuousClock.now
            requests.grants = try await shared.takeGrants(LoadTarget.grantsMin, for: population)
            grantsTaken = taken
        }
        let drafts = requests.drafts(kinds, proofsMax: proofsMax)
        let challenges = try await client.takeChallenges(drafts.challengeCount)
        return (try requests.requests(drafts, challenges: challenges), drafts.proofCount)
    }

    /// Runs `drive`, which blocks, on a thread of its own, and shows meanwhile how far it is. `report` is what was sent
    /// before.
    private func driveShowing(
        after report: LoadReport, of seconds: Double, _ count: Int, _ drive: @escaping @Sendable () -> LoadReport
    ) async -> LoadReport {
        let begin = ContinuousClock.now
        let batch = plan.sizes.batch
        let progressTask = Task { [secondsBefore = report.seconds, run, progress] in
            while (try? await Task.sleep(for: .milliseconds(500))) != nil {
                let answered = run.answered.load(ordering: .relaxed)
                let past = secondsBefore + (ContinuousClock.now - begin) / .seconds(1)
                let done: Double? =
                    seconds.isFinite
                    ? past / seconds : count < .max ? Double(answered) * batch / Double(count) : nil
                progress.show("\(answered) answered, \(Int(Double(answered) / past)) a second", done: done)
            }
        }
        let report = await withCheckedContinuation { done in
            Thread.detachNewThread { done.resume(returning: drive()) }
        }
        progressTask.cancel()
        return report
    }
}
