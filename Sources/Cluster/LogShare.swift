import Core

/// How much of a cluster's log etcd keeps: at least so many bytes of the newest segments, at most about twice as many.
/// It knows the segments since the start of this process.
struct LogShare {
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

    /// The segment before which nothing has to be kept; `nil`: everything has to be.
    mutating func firstKept() -> UInt64? {
        let old = marks.prefix { bytes - $0.bytes >= bytesMax }
        guard let last = old.last else { return nil }
        marks.removeFirst(old.count - 1)
        return last.segment
    }
}
