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

let proofBenchmarks = [
    Benchmark(name: "proof.new.process") { scale in
        let bench = try ProofBench(scale)
        let rounds = try scale.alternate { try bench.inProcess() } _: { bench.bare() }
        return Measurement(
            "proof.new.process", unit: "proofs/s", rounds: rounds, against: "ECDSA_do_verify, all cores")
    },
    Benchmark(name: "proof.new.loopback") { scale in
        let bench = try ProofBench(scale)
        let rounds = try scale.alternate {
            try bench.overLoopback(connections: 4, depth: 2, batch: 256)
        } _: {
            bench.bare()
        }
        return Measurement(
            "proof.new.loopback", unit: "proofs/s", rounds: rounds, against: "ECDSA_do_verify, all cores")
    },
    Benchmark(name: "proof.new.loopback.single") { scale in
        let bench = try ProofBench(scale)
        let rounds = try scale.alternate {
            try bench.overLoopback(connections: 64, depth: 1, batch: 1)
        } _: {
            bench.bare()
        }
        return Measurement(
            "proof.new.loopback.single", unit: "proofs/s", rounds: rounds, against: "ECDSA_do_verify, all cores")
    },
]

/// A service whose storage has a million roots, and people whose devices each prove themselves once: every
/// key is new to the service.
private final class ProofBench {
    private let scale: Scale
    private let cores = ProcessInfo.processInfo.activeProcessorCount
    private let directory: TemporaryDirectory
    private let service: Service
    private let population: Population
    private let material: BareVerification.Material
    private let proofsPerRound: Int
    private var nextDevice = 0

    init(_ scale: Scale) throws {
        self.scale = scale
        directory = try TemporaryDirectory()
        material = try BareVerification.Material()
        proofsPerRound = scale.size(16_384, tiny: 512)
        guard let collaboration = CollaborationIdentifier("bench") else {
            throw ServiceError(.internalFault, "an identifier is not valid")
        }
        // Five devices each, in trees of 8 leaves: 3 siblings.
        population = try Population(
            people: (scale.rounds + 1) * proofsPerRound / 5 + 1, devices: 5...5, in: collaboration)
        var configuration = Configuration(dataDirectory: directory.path, workers: cores)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        service = try Service(configuration)
        try fill(scale.size(1_000_000, tiny: 5000))
    }

    deinit {
        _ = service.shutDown()
    }

    private func fill(_ roots: Int) throws {
        let sets = service.gate.rootSets
        let fillers = roots / Synthetic.rootsPerCollaboration
        try sets.applyAll(fillers) { number in
            Mutation(.createCollaboration(try Synthetic.collaboration(number), .challenge))
        }
        try sets.applyAll(fillers) { number in
            let first = number * Synthetic.rootsPerCollaboration
            return Mutation(
                .addRoots(
                    try Synthetic.collaboration(number),
                    (first..<first + Synthetic.rootsPerCollaboration).map { Synthetic.root($0) }))
        }
        try sets.apply(Mutation(.createCollaboration(population.collaboration, .challenge)))
        let hashes = population.rootHashes
        for start in stride(from: 0, to: hashes.count, by: Limits.rootsPerRequestMax) {
            let end = min(hashes.count, start + Limits.rootsPerRequestMax)
            try sets.apply(Mutation(.addRoots(population.collaboration, Array(hashes[start..<end]))))
        }
    }

    func bare() -> Double {
        material.rate(seconds: scale.seconds, threads: cores)
    }

    private func nextRequests(batch: Int) throws -> [LoadRequest] {
        var bytes: [UInt8] = []
        service.gate.challenges.issue(proofsPerRound, into: &bytes)
        let size = ChallengeBook.challengeBytes
        let challenges = (0..<proofsPerRound).map { Array(bytes[size * $0..<size * ($0 + 1)]) }
        defer { nextDevice += proofsPerRound }
        return try population.signedRequests(challenges: challenges, batch: batch) { [nextDevice] in nextDevice + $0 }
    }

    func overLoopback(connections: Int, depth: Int, batch: Int) throws -> Double {
        let requests = try nextRequests(batch: batch)
        guard let endpoint = service.endpoints.first else { throw ServiceError(.internalFault, "nothing listens") }
        let run = try LoadRun(endpoint, connections: connections, depth: depth)
        let report = run.drive(requests)
        precondition(report.wrong == 0 && report.proofs == UInt64(proofsPerRound), "a verdict is wrong")
        return report.proofsPerSecond
    }

    /// Through the worker pool, without a socket.
    func inProcess() throws -> Double {
        let bodies = try nextRequests(batch: 256).map { Array($0.frame.dropFirst(Limits.frameHeaderBytes)) }
        let sources = (0..<4).map { _ in WorkSource() }
        let granted = Atomic<Int>(0)
        let elapsed = try seconds {
            let group = DispatchGroup()
            for (number, body) in bodies.enumerated() {
                group.enter()
                let held = HeldBody(body)
                let batch = try ProofBatch(held.bytes, isSigned: true)
                let request = VerificationRequest(count: batch.count, isSigned: true, wantsRoots: false) {
                    batch.proof(at: $0, in: held.bytes)
                } completion: { request, _ in
                    granted.add(request.verdicts.count { $0 == .granted }, ordering: .relaxed)
                    group.leave()
                }
                precondition(service.pool.submit(request, from: sources[number % sources.count]), "the pool is full")
            }
            group.wait()
        }
        precondition(granted.load(ordering: .relaxed) == proofsPerRound, "a verdict is wrong")
        return Double(proofsPerRound) / elapsed
    }
}

/// A request's body that stays where it is.
///
/// Sendable without the compiler's proof: nothing writes to the bytes after `init`.
private final class HeldBody: @unchecked Sendable {
    private let storage: UnsafeMutableRawBufferPointer

    init(_ bytes: [UInt8]) {
        storage = .allocate(byteCount: bytes.count, alignment: 8)
        storage.copyBytes(from: bytes)
    }

    deinit {
        storage.deallocate()
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(storage) }
}
