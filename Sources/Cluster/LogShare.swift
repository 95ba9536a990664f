import Core

/// How much of a cluster's log etcd keeps: at least so many bytes of the newest segments, and more for services that
/// are behind, but not much more than `Limits.clusterLateFactor` times as many of those since the start of this
/// process, which are all that it knows. For those who begin with a snapshot it is `Limits.clusterSnapshotFactor`.
struct LogShare {
    /// The first segments that are kept.
    struct Bounds: Equatable {
        /// When no service needs an earlier one.
        let usual: UInt64
        /// Whatever services need; `nil`: everything.
        let least: UInt64?
        /// Whatever snapshots need; `nil`: everything.
        let leastForSnapshots: UInt64?

        /// The segment before which the log is removed. `applied`: the one that everybody has applied. `snapshots`: the
        /// last one of the oldest snapshot that is given; `nil`: there is none.
        func removal(applied: UInt64, snapshots: UInt64?) -> UInt64 {
            min(usual, max(applied, least ?? 0), max(snapshots ?? .max, leastForSnapshots ?? 0))
        }
    }

    private let bytesMax: Int
    /// How many bytes were appended up to some segments, in order.
    private var marks: [(segment: UInt64, bytes: Int)] = []
    private var bytes = 0
    /// How far marks are apart.
    private var step: Int { bytesMax / 32 }

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// A segment is in the log.
    mutating func note(_ segment: UInt64, bytes count: Int) {
        bytes += count
        if let last = marks.last {
            guard segment > last.segment, bytes - last.bytes >= step else { return }
        }
        marks.append((segment, bytes))
    }

    /// `nil`: everything has to be kept.
    mutating func bounds() -> Bounds? {
        guard let usual = marks.last(where: { bytes - $0.bytes >= bytesMax })?.segment else { return nil }
        let old = marks.prefix { bytes - $0.bytes >= Limits.clusterSnapshotFactor * bytesMax }
        if !old.isEmpty { marks.removeFirst(old.count - 1) }
        let late = marks.last { bytes - $0.bytes >= Limits.clusterLateFactor * bytesMax }
        return Bounds(usual: usual, least: late?.segment, leastForSnapshots: old.last?.segment)
    }
}
