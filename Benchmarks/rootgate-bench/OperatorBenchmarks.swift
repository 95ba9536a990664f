import Core
import Foundation
import Platform
import Synchronization
import Transport

let operatorBenchmarks = [
    Benchmark(
        "proof.metered.loopback",
        "proof.known.loopback of a service with --operator, whose metrics are read each second",
        seconds: 120
    ) { scale in
        let roots = scale.size(100_000, tiny: 5000)
        let (metered, plain) = (
            try ProofBench(scale, roots: roots, isMetered: true), try ProofBench(scale, roots: roots)
        )
        try metered.restart(knownPercent: 100)
        try plain.restart(knownPercent: 100)
        let reader = MetricsReader(try endpoint(of: metered))
        defer { reader.end() }
        // The rate changes more from round to round than because of the metrics.
        let rounds = try scale.alternate(rounds: scale.size(100, tiny: 1), limit: 600 * scale.seconds) {
            try metered.overLoopback()
        } _: {
            try plain.overLoopback()
        }
        precondition(reader.pages > 0, "the metrics were never read")
        return Measurement(
            "proof.metered.loopback", unit: "proofs/s", rounds: rounds, against: "the same without --operator",
            conditions: metered.conditions(.batches))
    }
]

private func endpoint(of bench: ProofBench) throws -> Endpoint {
    guard let endpoint = bench.operatorEndpoint else {
        throw ServiceError(.internalFault, "the service has no address for operators")
    }
    return endpoint
}

/// A thread that reads the metrics of a service once in a second.
private final class MetricsReader: Sendable {
    private let isEnded = Atomic<Bool>(false)
    private let read = Atomic<Int>(0)
    private let hasEnded = DispatchSemaphore(value: 0)

    init(_ endpoint: Endpoint) {
        Thread { [self] in
            while !isEnded.load(ordering: .relaxed) {
                if MetricsReader.readsPage(endpoint) { read.add(1, ordering: .relaxed) }
                for _ in 0..<100 where !isEnded.load(ordering: .relaxed) { usleep(10_000) }
            }
            hasEnded.signal()
        }.start()
    }

    /// Pages that were read.
    var pages: Int { read.load(ordering: .relaxed) }

    func end() {
        isEnded.store(true, ordering: .relaxed)
        hasEnded.wait()
    }

    private static func readsPage(_ endpoint: Endpoint) -> Bool {
        guard let descriptor = try? Socket.connect(to: endpoint, milliseconds: 1000) else { return false }
        let socket = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        // From here on reading waits.
        guard fcntl(descriptor, F_SETFL, 0) == 0 else { return false }
        let head = Data("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        guard (try? socket.write(contentsOf: head)) != nil, let page = try? socket.readToEnd() else { return false }
        return page.count > 1000
    }
}
