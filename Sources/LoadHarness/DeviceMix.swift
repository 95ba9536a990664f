/// Which device gives which proof: `knownPercent` of 100 come from the first `known` devices of a population,
/// which take turns; each of the others comes from the next device behind those.
package struct DeviceMix: Sendable {
    package let known: Int
    package let knownPercent: Int
    /// Proofs that the known devices gave before.
    package var firstKnown = 0
    /// Devices behind the known ones that gave a proof before.
    package var firstNew = 0

    package init(known: Int, knownPercent: Int) {
        self.known = known
        self.knownPercent = knownPercent
    }

    /// The device that gives proof number `index`. Known ones are spread evenly.
    package func device(_ index: Int) -> Int {
        let before = knownProofs(among: index)
        return knownProofs(among: index + 1) > before
            ? (firstKnown + before) % known
            : known + firstNew + index - before
    }

    /// How many of the first `count` proofs come from known devices.
    package func knownProofs(among count: Int) -> Int { count * knownPercent / 100 }

    /// Goes on behind the first `count` proofs.
    package mutating func advance(by count: Int) {
        firstKnown += knownProofs(among: count)
        firstNew += count - knownProofs(among: count)
    }
}
