import Core
import Dispatch
import Foundation
import LoadHarness
import Platform
import RootSets
import RootgateClient
import Server
import Synchronization
import Transport
import Verification
import Wire

/// How proofs get to the service.
struct Traffic: Hashable {
    var connections = 4
    /// Requests in flight on each connection.
    var depth = 2
    var batch = 256
    var isEncrypted = false
    /// Over a local socket instead of loopback TCP.
    var isLocal = false

    static let batches = Traffic()
    static let encryptedBatches = Traffic(isEncrypted: true)
    /// One proof a request, and many requests in flight on a few connections.
    static let pipelined = Traffic(depth: 64, batch: 1)
    static func singles(connections: Int, isLocal: Bool = false) -> Traffic {
        Traffic(connections: connections, depth: 1, batch: 1, isLocal: isLocal)
    }

    /// Proofs in flight at once.
    var window: Int { connections * depth * batch }
}

/// A service over many root sets, and people whose devices send it proofs. The service can be restarted over the same
/// storage: then every key is new to it again.
final class ProofBench {
    let cores = ProcessInfo.processInfo.activeProcessorCount
    private let scale: Scale
    private let directory: TemporaryDirectory
    private let certificates: BenchCertificates
    private let population: Population
    private let deviceCount: Int
    private let material: BareVerification.Material
    /// `nil` only within `restart`: the storage has one owner at a time, so one service ends before the next begins.
    private var service: Service!
    private var workers: Int
    private var hasKernels = true
    /// Whether the service counts for an operator's pages.
    private let isMetered: Bool
    /// Whether the service's threads run on one processor and this one, which generates the load, on another.
    private(set) var isApart = false
    private var mix: DeviceMix
    private var fillers = 0
    /// Proofs per second in the last round of a traffic, since the service was configured as it is.
    private var lastRates: [Traffic: Double] = [:]
    /// The load generator's share of all processors' time in each round of a traffic since then.
    private var generatorShares: [Traffic: [Double]] = [:]
    private var lastInProcess = 0.0
    private var lastOfTasks = 0.0

    /// How many devices there are whose keys are new to the service, at most, and how many a warm-up makes known.
    private static func newDevices(_ scale: Scale) -> Int { scale.size(245_760, tiny: 4096) }
    static func knownDevices(_ scale: Scale) -> Int { scale.size(4000, tiny: 40) }

    init(_ scale: Scale, roots: Int, isMetered: Bool = false) throws {
        self.scale = scale
        self.isMetered = isMetered
        directory = try TemporaryDirectory()
        certificates = try BenchCertificates()
        material = try BareVerification.Material()
        population = try ProofBench.sharedPopulation(scale)
        deviceCount = population.devices.count
        workers = cores
        mix = DeviceMix(known: ProofBench.knownDevices(scale), knownPercent: 0)
        service = try ProofBench.service(
            in: directory, certificates, workers: workers, hasKernels: true, isMetered: isMetered)
        let sets = service.resources.rootSets
        try sets.apply(Mutation(.createCollaboration(population.collaboration, .challenge)))
        let hashes = population.rootHashes
        for start in stride(from: 0, to: hashes.count, by: Limits.rootsPerRequestMax) {
            let end = min(hashes.count, start + Limits.rootsPerRequestMax)
            try sets.apply(Mutation(.addRoots(population.collaboration, Array(hashes[start..<end]))))
        }
        try grow(to: roots)
    }

    deinit {
        _ = service.shutDown()
    }

    // MARK: Shared, because making them takes long. Main thread only.

    nonisolated(unsafe) private static var population: Population?
    nonisolated(unsafe) private static var millionRoots: ProofBench?

    private static func sharedPopulation(_ scale: Scale) throws -> Population {
        if let population { return population }
        guard let collaboration = CollaborationIdentifier("bench") else {
            throw ServiceError(.internalFault, "an identifier is not valid")
        }
        // Five devices each, in trees of 8 leaves: 3 siblings. Their number is bounded by the time that making them
        // takes; when they are used up, the service is restarted and they are new again.
        scale.progress.show("making keys")
        let sample = 200
        let elapsed = try seconds { _ = try Population(people: sample, devices: 5...5, in: collaboration) }
        let most = (newDevices(scale) + knownDevices(scale) + 4) / 5
        let people = scale.count(at: Double(sample) / elapsed, for: 30, in: most / 4...most)
        let made = try Population(people: people, devices: 5...5, in: collaboration)
        population = made
        return made
    }

    /// The bench with a million roots that most benchmarks use, with its service restarted.
    static func withMillionRoots(
        _ scale: Scale, workers: Int? = nil, hasKernels: Bool = true, knownPercent: Int = 0
    ) throws -> ProofBench {
        let bench = try millionRoots ?? ProofBench(scale, roots: scale.size(1_000_000, tiny: 5000))
        millionRoots = bench
        try bench.restart(workers: workers, hasKernels: hasKernels, knownPercent: knownPercent)
        return bench
    }

    /// Releases what is shared and removes its files.
    static func forgetShared() {
        millionRoots = nil
        population = nil
    }

    // MARK: The service

    /// A service with one plain and one encrypted address, and a local socket.
    private static func service(
        in directory: TemporaryDirectory, _ certificates: BenchCertificates, workers: Int, hasKernels: Bool,
        isMetered: Bool
    ) throws -> Service {
        var configuration = Configuration(dataDirectory: directory.path, workers: workers)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        configuration.plainEndpoints = configuration.endpoints + [Endpoint(path: directory.path + "/socket")]
        configuration.tls = certificates.settings
        configuration.storageBytesMax = 64 << 30
        configuration.linkBase = "https://example.com/c"
        if isMetered { configuration.operatorEndpoints = [Endpoint(host: "127.0.0.1", port: 0)] }
        if !hasKernels { configuration.turnKernelsOff() }
        return try Service(configuration)
    }

    /// Where the service listens without encryption.
    var endpoint: Endpoint { service.plainEndpoints[0] }

    /// Where the operator's pages are; `nil` unless the service counts for them.
    var operatorEndpoint: Endpoint? { service.operatorEndpoints.first }

    private func endpoint(_ traffic: Traffic) -> Endpoint {
        if traffic.isLocal { return service.plainEndpoints[1] }
        return traffic.isEncrypted ? service.endpoints[0] : endpoint
    }

    var rootSets: RootSets { service.resources.rootSets }

    /// Adds roots of other collaborations until there are `roots` of them.
    ///
    /// Throws `SetUpTooLong`, and what the storage throws.
    func grow(to roots: Int) throws {
        let first = fillers
        fillers = max(fillers, roots / Synthetic.rootsPerCollaboration)
        let what = "adding \(grouped(roots)) roots"
        try rootSets.applyAll(fillers - first, progress: { try scale.settingUp(what, 0.4 * $0) }) { number in
            Mutation(.createCollaboration(try Synthetic.collaboration(first + number), .challenge))
        }
        try rootSets.applyAll(fillers - first, progress: { try scale.settingUp(what, 0.4 + 0.6 * $0) }) { number in
            let root = (first + number) * Synthetic.rootsPerCollaboration
            return Mutation(
                .addRoots(
                    try Synthetic.collaboration(first + number),
                    (root..<root + Synthetic.rootsPerCollaboration).map { Synthetic.root($0) }))
        }
    }

    /// Restarts the service, so that it knows no key, and warms it up. The known devices send proofs until their keys
    /// have tables. Everything that a proof needs is used once before a round begins.
    func restart(workers: Int? = nil, hasKernels: Bool? = nil, knownPercent: Int? = nil) throws {
        let share = knownPercent ?? mix.knownPercent
        let (workers, hasKernels) = (workers ?? self.workers, hasKernels ?? self.hasKernels)
        if (workers, hasKernels, share) != (self.workers, self.hasKernels, mix.knownPercent) {
            (lastRates, generatorShares) = ([:], [:])
        }
        (self.workers, self.hasKernels) = (workers, hasKernels)
        mix = DeviceMix(known: mix.known, knownPercent: 100)
        _ = service.shutDown()
        service = nil
        // The service's threads run where the one that starts them does.
        if isApart { _ = System.confineThread(toProcessor: 0) }
        service = try ProofBench.service(
            in: directory, certificates, workers: self.workers, hasKernels: self.hasKernels, isMetered: isMetered)
        if isApart { _ = System.confineThread(toProcessor: 1) }
        if share > 0 { try makeKeysKnown() }
        mix = DeviceMix(known: mix.known, knownPercent: share)
        // The threads, the signature kernels, the pages of the storage and its directory of buckets.
        _ = try drive(.batches, proofs: scale.size(4096, tiny: 64))
        _ = try inclusion(seconds: scale.seconds / 4)
    }

    /// Runs `body` with a service of one thread, on a processor of its own where the system allows that. The load
    /// generator runs on another one.
    func apart<Result>(_ body: () throws -> Result) throws -> Result {
        isApart = System.confineThread(toProcessor: 1)
        defer {
            (isApart, workers, lastRates) = (false, cores, [:])
            _ = System.confineThread(toProcessor: nil)
        }
        try restart(workers: 1)
        return try body()
    }

    /// Sends proofs of every known device several times, and waits for the tables of their keys, which a thread of the
    /// service makes meanwhile.
    private func makeKeysKnown() throws {
        let signatures = service.resources.signatures
        for pass in 1...8 {
            _ = try drive(.batches, proofs: mix.known)
            guard pass >= 4 else { continue }
            // Only kernels use tables. A few keys may be refused for want of memory.
            for _ in 0..<100 {
                if signatures.kernelNames.isEmpty || signatures.statistics.knownKeys * 100 >= mix.known * 99 { return }
                usleep(10_000)
            }
        }
    }

    // MARK: Rounds

    /// `ECDSA_do_verify` per second on all cores.
    func bare() -> Double {
        material.rate(seconds: scale.seconds, threads: cores)
    }

    /// The median of the microseconds that one `ECDSA_do_verify` takes.
    func bareLatency() -> Double {
        Double(material.durations(count: scale.size(2000, tiny: 50)).quantile(0.5)) / 1000
    }

    /// Proofs of the next devices, with fresh challenges. The caller advances `mix` by as many as it sends.
    private func nextRequests(proofs: Int, batch: Int) throws -> [LoadRequest] {
        let challenges = try nextChallenges(proofs)
        return try population.signedRequests(challenges: challenges, batch: batch) { [mix] in mix.device($0) }
    }

    /// Fresh challenges for the next devices.
    private func nextChallenges(_ proofs: Int) throws -> [[UInt8]] {
        try assureNewDevices(for: proofs)
        let (book, size) = (service.resources.challenges, ChallengeBook.challengeBytes)
        var bytes = [UInt8](repeating: 0, count: size * proofs)
        bytes.withUnsafeMutableBytes { bytes in
            if let start = bytes.baseAddress { book.issue(proofs, to: start, with: book.makeTagMaker()) }
        }
        return (0..<proofs).map { Array(bytes[size * $0..<size * ($0 + 1)]) }
    }

    /// Restarts the service when fewer new devices than `proofs` are left: to the restarted one all are new.
    private func assureNewDevices(for proofs: Int) throws {
        guard mix.known + mix.firstNew + proofs - mix.knownProofs(among: proofs) > deviceCount else { return }
        try restart(knownPercent: mix.knownPercent)
    }

    /// Connects, and waits until the service has accepted every connection: a proof without a signature goes over each.
    private func connect(_ traffic: Traffic) throws -> LoadRun {
        let run = try LoadRun(
            endpoint(traffic), tls: traffic.isEncrypted ? certificates.options : nil,
            connections: traffic.connections, depth: traffic.depth)
        let greetings = try population.inclusionRequests(count: traffic.connections * traffic.depth, batch: 1)
        try check(run.drive(greetings), proofs: greetings.count)
        return run
    }

    /// Sends proofs over loopback or a local socket, at `perSecond` requests a second or as fast as they are answered:
    /// so many at most, and none after `seconds`.
    func drive(
        _ traffic: Traffic, proofs: Int, seconds: Double = .infinity, perSecond: Double? = nil
    ) throws -> LoadReport {
        let requests = try nextRequests(proofs: proofs, batch: traffic.batch)
        let run = try connect(traffic)
        let report =
            perSecond.map { run.drive(requests, perSecond: $0, spins: isApart) }
            ?? run.drive(requests, seconds: seconds)
        try check(report, proofs: seconds.isFinite ? min(proofs, Int(report.requests) * traffic.batch) : proofs)
        mix.advance(by: Int(report.proofs))
        return report
    }

    private func check(_ report: LoadReport, proofs: Int) throws {
        precondition(report.wrong == 0, "a verdict is wrong")
        guard report.errors.isEmpty, report.proofs == UInt64(proofs) else {
            throw ServiceError(
                .internalFault, "\(report.proofs) of \(proofs) proofs were answered, errors: \(report.errors)")
        }
    }

    /// Proofs per second over loopback or a local socket, in a round of `sendingSeconds`. Every benchmark and every
    /// sweep measures this in the same way.
    func overLoopback(_ traffic: Traffic = .batches) throws -> Double {
        // Enough for every connection to be busy most of the time.
        let fewest = max(2 * traffic.window, scale.size(4096, tiny: 512))
        let most = max(fewest, scale.size(131_072, tiny: 512))
        func round(_ proofs: Int) throws -> Double {
            let report = try drive(traffic, proofs: proofs, seconds: scale.sendingSeconds)
            generatorShares[traffic, default: []].append(report.processorSeconds / (report.seconds * Double(cores)))
            return report.proofsPerSecond
        }
        // A short round tells how many proofs have to be signed for one that lasts its time.
        let expected = try lastRates[traffic] ?? round(fewest)
        let rate = try round(scale.count(at: expected, for: 1.1 * scale.sendingSeconds, in: fewest...most))
        lastRates[traffic] = rate
        return rate
    }

    /// The conditions of a rate. A sweep leaves out the condition that it varies.
    enum Condition {
        case traffic(Traffic)
        case threads, roots
        /// The load generator's share of the processors' time, where it was measured.
        case generator(Traffic)
        case round(seconds: Double)
    }

    /// The conditions of this traffic's rate.
    func conditions(_ traffic: Traffic, seconds: Double? = nil) -> String {
        conditions([
            .traffic(traffic), .threads, .roots, .round(seconds: seconds ?? scale.sendingSeconds), .generator(traffic),
        ])
    }

    func conditions(_ conditions: [Condition]) -> String {
        conditions.compactMap { condition -> String? in
            switch condition {
            case .traffic(let traffic):
                "\(grouped(traffic.connections)) connections x \(traffic.depth) requests x \(grouped(traffic.batch)) "
                    + "proofs in flight"
            case .threads: "\(workers) threads" + (isApart ? ", load generator on another processor" : "")
            case .roots: "\(grouped(fillers * Synthetic.rootsPerCollaboration)) roots"
            case .round(let seconds): "rounds of \(twoDecimals(seconds)) s"
            case .generator(let traffic):
                generatorShares[traffic].map {
                    "load generator: \(Int((100 * median($0)).rounded())) % of the processors' time"
                }
            }
        }.joined(separator: ", ")
    }

    /// Inclusion-only proofs per second over loopback.
    func inclusion(_ traffic: Traffic = .batches, seconds: Double? = nil) throws -> Double {
        // More than are in flight at once, because they are sent again and again.
        let count = max(64, 4 * traffic.connections * traffic.depth)
        let requests = try population.inclusionRequests(count: count, batch: traffic.batch)
        let report = try connect(traffic).drive(requests, isRepeating: true, seconds: seconds ?? scale.seconds)
        try check(report, proofs: Int(report.requests) * traffic.batch)
        return report.proofsPerSecond
    }

    /// Requests of single proofs a second that `bare` answers on so many connections.
    func bareExchanges(_ bare: BareService, connections: Int) throws -> Double {
        let requests = try nextRequests(proofs: connections * 2, batch: 1)
        return try bare.serve(connections: connections) { run in
            let report = run.drive(requests, isRepeating: true, seconds: scale.sendingSeconds)
            try check(report, proofs: Int(report.requests))
            return report.proofsPerSecond
        }
    }

    /// The median of the microseconds that one proof takes when the service does nothing else.
    func loneLatency() throws -> Double {
        let requests = try nextRequests(proofs: scale.size(300, tiny: 5), batch: 1)
        let latency = try loneLatency(of: requests, connect(.singles(connections: 1)))
        mix.advance(by: requests.count)
        return latency
    }

    /// The same for `bare`.
    func loneLatency(_ bare: BareService) throws -> Double {
        let requests = try nextRequests(proofs: scale.size(300, tiny: 5), batch: 1)
        return try bare.serve(connections: 1) { try loneLatency(of: requests, $0) }
    }

    private func loneLatency(of requests: [LoadRequest], _ run: LoadRun) throws -> Double {
        var report = LoadReport()
        let end = scale.now() + 2 * scale.seconds
        for request in requests where report.requests < 5 || scale.now() < end {
            report.add(run.drive([request]))
            usleep(1000)
        }
        try check(report, proofs: Int(report.requests))
        return Double(report.latency.quantile(0.5)) / 1000
    }

    /// The 99th percentile of the microseconds that a proof takes at half of the rate of `traffic`, which is `highest`
    /// requests a second, at random moments. Counted from the moment when a request was due.
    func lateLatency(_ traffic: Traffic, highest: Double) throws -> Double {
        let count = scale.count(at: highest / 2, for: 1.5 * scale.seconds, in: scale.size(1000, tiny: 100)...30_000)
        let report = try drive(traffic, proofs: count, perSecond: highest / 2)
        return Double(report.latency.quantile(0.99)) / 1000
    }

    /// What `lateLatency` would be if the service, on the first processor, and the load generator, on the second one,
    /// took no time beside 1/`highest` seconds for each proof: what the machine alone makes requests wait.
    func latencyOfGaps(highest: Double) -> Double {
        let seconds = 1.5 * scale.seconds
        let gaps = ProcessorGaps.record(processors: 2, seconds: seconds)
        let latencies = ProcessorGaps.latencies(
            service: gaps[0], generator: gaps[1], seconds: seconds, perSecond: highest / 2, highest: highest)
        return Double(latencies.quantile(0.99)) / 1000
    }

    /// Signed proofs per second of so many tasks that share one client, one proof a call.
    func clientTasks(_ tasks: Int) throws -> Double {
        func round(_ proofs: Int) throws -> Double {
            let challenges = try nextChallenges(proofs)
            let (population, mix) = (population, mix)
            let devices = population.devices
            let signed = try inParallel(proofs) { number throws(ServiceError) in
                let (person, device) = devices[mix.device(number) % devices.count]
                return try population.people[person].proof(ofDevice: device, signing: challenges[number])
            }
            let client = try RootgateClient(endpoint)
            let load = ClientTasks(client: client, collaboration: population.collaboration, tasks: tasks)
            let (count, elapsed) = try load.verify(signed, seconds: scale.sendingSeconds)
            self.mix.advance(by: count)
            return Double(count) / elapsed
        }
        let bounds = scale.size(4096, tiny: 512)...scale.size(131_072, tiny: 512)
        let expected = lastOfTasks > 0 ? lastOfTasks : try round(bounds.lowerBound)
        lastOfTasks = try round(scale.count(at: expected, for: 1.1 * scale.sendingSeconds, in: bounds))
        return lastOfTasks
    }

    /// Proofs per second through the worker pool, without a socket.
    func inProcess() throws -> Double {
        let bounds = scale.size(4096, tiny: 512)...scale.size(65_536, tiny: 512)
        let count = scale.count(at: lastInProcess, for: scale.sendingSeconds, in: bounds) / 256 * 256
        let bodies = try nextRequests(proofs: count, batch: 256)
            .map { HeldBody($0.frame.dropFirst(Limits.frameHeaderBytes)) }
        let sources = (0..<4).map { _ in WorkSource() }
        let granted = Atomic<Int>(0)
        let elapsed = try seconds {
            let group = DispatchGroup()
            for (number, held) in bodies.enumerated() {
                group.enter()
                let batch = try ProofBatch(held.bytes, isSigned: true)
                let request = VerificationRequest(count: batch.count, isSigned: true, wantsRoots: false) {
                    batch.read($0, in: held.bytes, into: $1)
                } completion: { request, _ in
                    granted.add(request.verdicts.count { $0 == .granted }, ordering: .relaxed)
                    group.leave()
                }
                precondition(service.pool.submit(request, from: sources[number % sources.count]), "the pool is full")
            }
            group.wait()
        }
        precondition(granted.load(ordering: .relaxed) == count, "a verdict is wrong")
        mix.advance(by: count)
        lastInProcess = Double(count) / elapsed
        return lastInProcess
    }
}

/// A request's body at an address that does not change.
///
/// Sendable without the compiler's proof: nothing writes to the bytes after `init`.
private final class HeldBody: @unchecked Sendable {
    private let storage: ScratchBuffer<UInt8>

    init(_ bytes: some Collection<UInt8>) {
        storage = ScratchBuffer(uninitializedCount: bytes.count, alignment: 8)
        storage.bytes.copyBytes(from: bytes)
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(storage.bytes) }
}
