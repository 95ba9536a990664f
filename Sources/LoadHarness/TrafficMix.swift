/// Kinds of requests, and how much of the whole each is.
package struct TrafficMix: Sendable {
    /// A kind's weight; those of all kinds together are the whole.
    private let weights: [(kind: LoadKind, weight: Double)]
    private let total: Double
    /// How much each kind lags behind its part.
    private var lags: [Double]

    /// All requests are of one kind.
    package init(_ kind: LoadKind) {
        (weights, total, lags) = ([(kind, 1)], 1, [0])
    }

    /// `text`: `verify=80,open=15,mutate=5`. The weights are positive numbers up to a million, and no kind is named
    /// twice; otherwise `nil`.
    package init?(_ text: String) {
        var weights: [(kind: LoadKind, weight: Double)] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(separator: "=", omittingEmptySubsequences: false)
            guard words.count == 2, let kind = LoadKind(rawValue: String(words[0])), let weight = Double(words[1]),
                weight > 0, weight <= 1e6, !weights.contains(where: { $0.kind == kind })
            else { return nil }
            weights.append((kind, weight))
        }
        self.init(weights)
    }

    /// `nil` when there is no kind. The weights are positive.
    init?(_ weights: [(kind: LoadKind, weight: Double)]) {
        guard !weights.isEmpty else { return nil }
        self.weights = weights
        total = weights.reduce(0) { $0 + $1.weight }
        lags = weights.map { _ in 0 }
    }

    package var kinds: [LoadKind] { weights.map(\.kind) }

    /// The part of the requests that are of the kind, from 0 to 1.
    package func part(of kind: LoadKind) -> Double {
        (weights.first { $0.kind == kind }?.weight ?? 0) / total
    }

    /// The next request's kind. Each kind comes as evenly as its weight allows.
    package mutating func next() -> LoadKind {
        for place in lags.indices { lags[place] += weights[place].weight }
        let place = lags.indices.max { lags[$0] < lags[$1] } ?? 0
        lags[place] -= total
        return weights[place].kind
    }
}
