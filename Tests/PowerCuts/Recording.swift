import Core
import Dispatch
import FailingDisk
import Foundation
import RootSets

/// A storage in use, and everything that it did to its files meanwhile.
struct Recording {
    /// A mutation that was applied: its place in the log, and between which events it was sent and acknowledged.
    struct Applied {
        let sequence: UInt64
        let mutation: Mutation
        let sent: Int
        let acknowledged: Int
    }

    /// The files whose contents count, with their contents before.
    static let files = ["data.mdb", "newest-commit"]
    let before: [[UInt8]]
    let events: [recorded_event]
    let applied: [Applied]
    let refused: Int

    /// The storage is small, so that it is full at times, and its log is trimmed.
    static func open(_ directory: String) throws(ServiceError) -> RootSets {
        try RootSets(
            RootSets.Configuration(
                directory: directory, sizeLimitBytes: 2 << 20, reserveBytes: 1 << 20, logRetentionBytes: 96 << 10))
    }

    /// Uses the storage in `directory`, which was closed before and is durable.
    init(_ directory: String, _ workload: inout CutWorkload, bursts: Int, pauses: Bool) throws {
        let paths = Recording.files.map { "\(directory)/\($0)" }
        before = try paths.map { Array(try Data(contentsOf: URL(fileURLWithPath: $0))) }
        guard failing_disk_follow(paths[0], paths[1]) == 0 else {
            throw ServiceError(.internalFault, "the files can't be followed")
        }
        let sets = try Recording.open(directory)
        var sent: [(mutation: Mutation, event: Int)] = []
        let outcomes = Outcomes()
        for number in 0..<bursts {
            let burst = workload.burst()
            let group = DispatchGroup()
            for mutation in burst {
                let index = sent.count
                sent.append((mutation, failing_disk_events()))
                group.enter()
                sets.submit(mutation) { result in
                    outcomes.note(index, result, event: failing_disk_events())
                    failing_disk_mark(UInt64(index))
                    group.leave()
                }
            }
            group.wait()
            // The note of the newest commit is made durable each second.
            if pauses, number == bursts / 2 { usleep(1_200_000) }
        }
        sets.close()
        failing_disk_rest()
        events = (0..<failing_disk_events()).map { failing_disk_event($0) }
        let results = outcomes.results.withLock { $0 }
        refused = sent.count - results.values.count { $0.sequence != nil }
        applied = sent.indices.compactMap { index in
            guard let result = results[index], let sequence = result.sequence else { return nil }
            return Applied(
                sequence: sequence, mutation: sent[index].mutation, sent: sent[index].event,
                acknowledged: result.event)
        }.sorted { $0.sequence < $1.sequence }
        if let failure = results.values.compactMap(\.failure).first { throw failure }
    }

    private final class Outcomes: Sendable {
        typealias Result = (sequence: UInt64?, failure: ServiceError?, event: Int)
        let results = Lock<[Int: Result]>([:])

        func note(_ index: Int, _ result: Swift.Result<MutationReceipt, ServiceError>, event: Int) {
            let noted: Result =
                switch result {
                case .success(let receipt): (receipt.sequence, nil, event)
                // What the storage has no room for, and what is about a collaboration that is not there.
                case .failure(let error) where error.code == .storageFull || error.code == .unknownCollaboration:
                    (nil, nil, event)
                case .failure(let error): (nil, error, event)
                }
            results.withLock { $0[index] = noted }
        }
    }
}
