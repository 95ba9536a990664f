import Core
import Dispatch
import Foundation
import LoadHarness
import RootSets
import Server
import Synchronization
import Transport
import Verification
import Wire

/// How proofs get to the service.
struct Traffic {
    var connections = 4
    /// Requests in flight on each connection.
    var depth = 2
    var batch = 256

    static let batches = Traffic()
    static func singles(connections: Int) -> Traffic { Traffic(connections: connections, depth: 1, batch: 1) }

    /// Proofs in flight at once.
    var window: Int { connections * depth * batch }
}

/// A service over many root sets, and people whose devices prove themselves to it. Its service can be started
/// anew over the same storage: then every key is new to it again.
final class ProofBench {
    let cores = ProcessInfo.processInfo.activeProcessorCount
    private let scale: Scale
    private let directory: TemporaryDirectory
    private let population: Population
    private let deviceCount: Int
    private let material: BareVerification.Material
    /// Always there, but for the moment between two, because storage has one owner at a time.
    private var service: Service!
    private var workers: Int
    private var hasKernels = true
    private var mix: DeviceMix
    private var fillers = 0

    /// How many devices there are at all, and how many of those a warm-up makes known.
    private static func newDevices(_ scale: Scale) -> Int { scale.size(163_840, tiny: 4096) }
    static func knownDevices(_ scale: Scale) -> Int { scale.size(4000, tiny: 40) }

    init(_ scale: Scale, roots: Int) throws {
        self.scale = scale
        directory = try TemporaryDirectory()
        material = try BareVerification.Material()
        population = try ProofBench.sharedPopulation(scale)
        deviceCount = population.devices.count
        workers = cores
        mix = DeviceMix(known: ProofBench.knownDevices(scale), knownPercent: 0)
        service = try ProofBench.service(in: directory, workers: workers, hasKernels: true)
        let sets = service.gate.rootSets
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

    // MARK: Shared, because they are dear. Main thread only.

    nonisolated(unsafe) private static var population: Population?
    nonisolated(unsafe) private static var millionRoots: ProofBench?

    private static func sharedPopulation(_ scale: Scale) throws -> Population {
        if let population { return population }
        guard let collaboration = CollaborationIdentifier("bench") else {
            throw ServiceError(.internalFault, "an identifier is not valid")
        }
        // Five devices each, in trees of 8 leaves: 3 siblings.
        let devices = newDevices(scale) + knownDevices(scale)
        let made = try Population(people: (devices + 4) / 5, devices: 5...5, in: collaboration)
        population = made
        return made
    }

    /// The bench with a million roots that most benchmarks use, its service started anew.
    static func withMillionRoots(
        _ scale: Scale, workers: Int? = nil, hasKernels: Bool = true, knownPercent: Int = 0
    ) throws -> ProofBench {
        let bench = try millionRoots ?? ProofBench(scale, roots: scale.size(1_000_000, tiny: 5000))
        millionRoots = bench
        try bench.restart(workers: workers, hasKernels: hasKernels, knownPercent: knownPercent)
        return bench
    }

    /// Lets go of what is shared, and of its files.
    static func forgetShared() {
        millionRoots = nil
        population = nil
    }

    // MARK: The service

    private static func service(in directory: TemporaryDirectory, workers: Int, hasKernels: Bool) throws -> Service {
        var configuration = Configuration(dataDirectory: directory.path, workers: workers)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        configuration.storageBytesMax = 64 << 30
        configuration.linkBase = "https://example.com/c"
        if !hasKernels { configuration.turnKernelsOff() }
        return try Service(configuration)
    }

    /// Where the service listens.
    var endpoint: Endpoint { service.endpoints[0] }

    var rootSets: RootSets { service.gate.rootSets }

    /// Adds roots of other collaborations until there are `roots` of them.
    func grow(to roots: Int) throws {
        let first = fillers
        fillers = max(fillers, roots / Synthetic.rootsPerCollaboration)
        try rootSets.applyAll(fillers - first) { number in
            Mutation(.createCollaboration(try Synthetic.collaboration(first + number), .challenge))
        }
        try rootSets.applyAll(fillers - first) { number in
            let root = (first + number) * Synthetic.rootsPerCollaboration
            return Mutation(
                .addRoots(
                    try Synthetic.collaboration(first + number),
                    (root..<root + Synthetic.rootsPerCollaboration).map { Synthetic.root($0) }))
        }
    }

    /// Starts the service anew, so that it knows no key, and has the known devices prove themselves.
    func restart(workers: Int? = nil, hasKernels: Bool? = nil, knownPercent: Int? = nil) throws {
        self.workers = workers ?? self.workers
        self.hasKernels = hasKernels ?? self.hasKernels
        let share = knownPercent ?? mix.knownPercent
        mix = DeviceMix(known: mix.known, knownPercent: 100)
        _ = service.shutDown()
        service = nil
        service = try ProofBench.service(in: directory, workers: self.workers, hasKernels: self.hasKernels)
        if share > 0 {
            // One pass after the other, so that each key has been granted four proofs, one by one.
            for _ in 0..<4 { _ = try drive(.batches, proofs: mix.known) }
        }
        mix = DeviceMix(known: mix.known, knownPercent: share)
        // Its first pages, threads and connections are no measure.
        _ = try drive(.batches, proofs: scale.size(4096, tiny: 64))
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

    /// Proofs of the next devices, with fresh challenges.
    private func nextRequests(proofs: Int, batch: Int) throws -> [LoadRequest] {
        try assureNewDevices(for: proofs)
        var bytes: [UInt8] = []
        service.gate.challenges.issue(proofs, into: &bytes)
        let size = ChallengeBook.challengeBytes
        let challenges = (0..<proofs).map { Array(bytes[size * $0..<size * ($0 + 1)]) }
        defer { mix.advance(by: proofs) }
        return try population.signedRequests(challenges: challenges, batch: batch) { [mix] in mix.device($0) }
    }

    /// When no new device is left for so many proofs, a service that never saw them makes all new.
    private func assureNewDevices(for proofs: Int) throws {
        guard mix.known + mix.firstNew + proofs - mix.knownProofs(among: proofs) > deviceCount else { return }
        try restart(knownPercent: mix.knownPercent)
    }

    /// Known keys are several times as fast.
    private var proofsPerRound: Int { scale.size(mix.knownPercent == 100 ? 65_536 : 32_768, tiny: 512) }

    private func connect(_ traffic: Traffic) throws -> LoadRun {
        guard let endpoint = service.endpoints.first else { throw ServiceError(.internalFault, "nothing listens") }
        return try LoadRun(endpoint, connections: traffic.connections, depth: traffic.depth)
    }

    /// Sends so many proofs over loopback, at `perSecond` requests a second or as fast as they are answered.
    func drive(_ traffic: Traffic, proofs: Int, perSecond: Double? = nil) throws -> LoadReport {
        let requests = try nextRequests(proofs: proofs, batch: traffic.batch)
        let run = try connect(traffic)
        let report = perSecond.map { run.drive(requests, perSecond: $0) } ?? run.drive(requests)
        try check(report, proofs: proofs)
        return report
    }

    private func check(_ report: LoadReport, proofs: Int) throws {
        precondition(report.wrong == 0, "a verdict is wrong")
        guard report.errors.isEmpty, report.proofs == UInt64(proofs) else {
            throw ServiceError(
                .internalFault, "\(report.proofs) of \(proofs) proofs were answered, errors: \(report.errors)")
        }
    }

    /// Proofs per second over loopback.
    func overLoopback(_ traffic: Traffic = .batches) throws -> Double {
        try drive(traffic, proofs: proofsPerRound).proofsPerSecond
    }

    /// Inclusion-only proofs per second over loopback.
    func inclusion(_ traffic: Traffic = .batches) throws -> Double {
        let requests = try population.inclusionRequests(count: 64, batch: traffic.batch)
        let report = try connect(traffic).drive(requests, isRepeating: true, seconds: scale.seconds)
        try check(report, proofs: Int(report.requests) * traffic.batch)
        return report.proofsPerSecond
    }

    /// The median of the microseconds that one proof takes when there is nothing else to do.
    func loneLatency() throws -> Double {
        let requests = try nextRequests(proofs: scale.size(300, tiny: 5), batch: 1)
        let run = try connect(.singles(connections: 1))
        var report = LoadReport()
        for request in requests {
            report.add(run.drive([request]))
            usleep(1000)
        }
        try check(report, proofs: requests.count)
        return Double(report.latency.quantile(0.5)) / 1000
    }

    /// Proofs per second through the worker pool, without a socket.
    func inProcess() throws -> Double {
        let count = scale.size(32_768, tiny: 512)
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
        return Double(count) / elapsed
    }
}

/// A request's body that stays where it is.
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
