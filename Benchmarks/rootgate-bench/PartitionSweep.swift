import Foundation
import LoadHarness

/// How even partitions are, and what moves when one is added, in a simulation of 10^9 root hashes. Slots move between
/// real storages besides.
func byPartitions(_ scale: SweepScale) throws -> SweepResult {
    let move = try PartitionMove(collaborations: scale.scale.size(1000, tiny: 40))
    scale.scale.progress.show("moving slots")
    try move.run()
    let collaborations = scale.scale.size(200_000_000, tiny: 20_000)
    let load = SlotLoad(collaborations: collaborations) { done in
        scale.scale.progress.show("\(grouped(collaborations)) collaborations", done: done)
    }
    let counts = [2, 4, 8, 16, 32, 64]
    let measured = counts.map { count -> (roots: Double, requests: Double, moved: Double) in
        let table = PartitionTable(partitions: count)
        func largest(_ bySlot: [Double]) -> Double {
            var sums = [Double](repeating: 0, count: count)
            for (slot, part) in bySlot.enumerated() { sums[table.partitions[slot]] += part }
            return (sums.max() ?? 0) * Double(count) / bySlot.reduce(0, +)
        }
        let moved = table.slotsOfOneMore.reduce(0) { $0 + load.roots[$1] } / load.roots.reduce(0, +)
        return (largest(load.roots), largest(load.requests), 100 * moved)
    }
    return SweepResult(
        header: [
            "partitions", "root hashes in the fullest, against the mean",
            "requests at the busiest, against the mean", "root hashes that move when one is added, %",
        ],
        rows: zip(counts, measured).map { count, measured in
            [grouped(count), twoDecimals(measured.roots), twoDecimals(measured.requests), twoDecimals(measured.moved)]
        },
        plots: [
            Plot(
                title: "The fullest and the busiest partition, against the mean",
                x: Plot.Axis(label: "partitions", isLogarithmic: true, ticks: counts.map { Double($0) }),
                y: Plot.Axis(label: "times the mean"),
                series: [
                    Plot.Series("root hashes", counts, measured.map { [$0.roots] }),
                    Plot.Series("requests", counts, measured.map { [$0.requests] }),
                ])
        ],
        conditions: "\(grouped(Int(load.roots.reduce(0, +)))) root hashes in \(grouped(collaborations)) "
            + "collaborations, the largest with \(grouped(load.largest)); the most popular collaboration gets "
            + "\(twoDecimals(100 * load.topShare)) % of the requests. \(grouped(move.moved)) collaborations moved "
            + "between real storages during \(grouped(move.changes)) changes and \(grouped(move.lookups)) look-ups, "
            + "all of which were answered rightly; "
            + "\(grouped(move.refused)) more changes were refused because their slot moved"
    )
}

/// How many root hashes and requests the slots have when collaborations are spread by a hash. Sizes follow a power law
/// with a mean of five root hashes, and requests Zipf's law.
private struct SlotLoad {
    private(set) var roots = [Double](repeating: 0, count: PartitionTable.slots)
    private(set) var requests = [Double](repeating: 0, count: PartitionTable.slots)
    /// Root hashes of the largest collaboration.
    private(set) var largest = 0
    /// The part of all requests that the most popular one gets.
    private(set) var topShare = 0.0

    private static let exponent = 1.5
    private static let rootsMax = 1_000_000.0

    init(collaborations: Int, progress: (Double) -> Void) {
        // The mean of a power law with this exponent is three times its least value.
        let least = Double(Synthetic.rootsPerCollaboration) / 3
        var sum = 0.0
        for number in 0..<collaborations {
            if number % (1 << 24) == 0 { progress(Double(number) / Double(collaborations)) }
            let hash = Synthetic.mix(UInt64(number))
            let slot = PartitionTable.slot(of: hash)
            let random = (Double(Synthetic.mix(hash) >> 11) + 1) / Double(UInt64(1) << 53)
            let size = min(SlotLoad.rootsMax, (least * pow(random, -1 / SlotLoad.exponent)).rounded())
            roots[slot] += size
            largest = max(largest, Int(size))
            let weight = 1 / Double(number + 1)
            requests[slot] += weight
            sum += weight
        }
        topShare = 1 / sum
    }
}
