/// The requests of a recording, in portions that are small enough to be made before they are sent.
package struct ReplayedTraffic: Sendable {
    /// What is sent in some time.
    package struct Slice: Sendable, Equatable {
        package let seconds: Double
        /// The requests' kinds, in order.
        package let kinds: [LoadKind]
        /// Proofs or grants of a request, on average.
        package let batch: Double
        /// The part of the proofs that are refused.
        package let invalidPart: Double
    }

    private let periods: [TrafficShape.Period]
    private let scale: Double
    private let itemsMax: Double
    /// The period that is next, and its parts that were taken.
    private var place = 0
    private var taken = 0
    /// Parts of requests that have not been sent.
    private var owed = [Double](repeating: 0, count: LoadKind.allCases.count)

    /// `scale`: how many requests are sent for each that was recorded. `itemsMax`: the most proofs and other requests
    /// of a portion, about.
    package init(_ shape: TrafficShape, scale: Double, itemsMax: Int) {
        precondition(scale > 0 && itemsMax > 0, "nothing is to be sent")
        periods = shape.periods
        self.scale = scale
        self.itemsMax = Double(itemsMax)
    }

    /// The part of the recording that was taken, from 0 to 1.
    package var done: Double { periods.isEmpty ? 1 : Double(place) / Double(periods.count) }

    /// What is to be sent next; `nil` at the end. Periods with too much are divided.
    package mutating func nextPortion() -> [Slice]? {
        guard place < periods.count else { return nil }
        var slices: [Slice] = []
        var items = 0.0
        while place < periods.count {
            let period = periods[place]
            let whole = self.items(of: period)
            let parts = max(1, Int((whole / itemsMax).rounded(.up)))
            guard slices.isEmpty || items + whole / Double(parts) <= itemsMax else { break }
            items += whole / Double(parts)
            slices.append(slice(period, parts: parts))
            taken += 1
            if taken == parts { (place, taken) = (place + 1, 0) }
        }
        return slices
    }

    /// Proofs and other requests of a period.
    private func items(of period: TrafficShape.Period) -> Double {
        LoadKind.allCases.reduce(0) { $0 + scale * period.count($1) * ($1.hasProofs ? period.batch : 1) }
    }

    private mutating func slice(_ period: TrafficShape.Period, parts: Int) -> Slice {
        var counts: [(kind: LoadKind, weight: Double)] = []
        for kind in LoadKind.allCases {
            owed[kind.place] += scale * period.count(kind) / Double(parts)
            // A sum of many parts that make a whole is a little less than one.
            let count = (owed[kind.place] + 1e-9).rounded(.down)
            owed[kind.place] -= count
            if count > 0 { counts.append((kind, count)) }
        }
        var mix = TrafficMix(counts)
        let total = Int(counts.reduce(0) { $0 + $1.weight })
        return Slice(
            seconds: period.seconds / Double(parts), kinds: (0..<total).compactMap { _ in mix?.next() },
            batch: period.batch, invalidPart: period.invalidPart)
    }
}

extension ReplayedTraffic.Slice {
    /// When each request is due, in ascending order: seconds from the beginning, at random as of many clients.
    package func moments() -> [Double] {
        kinds.map { _ in .random(in: 0..<seconds) }.sorted()
    }
}
