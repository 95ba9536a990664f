/// Which device signs which proof. Of 100 proofs, `knownPercent` are signed by the first `known` devices of a
/// population in turn, and each of the others by a device that signed none before.
package struct DeviceMix: Sendable {
    package let known: Int
    package let knownPercent: Int
    /// Proofs that the known devices signed before.
    package var firstKnown = 0
    /// Devices behind the known ones that signed a proof before.
    package var firstNew = 0

    package init(known: Int, knownPercent: Int) {
        precondition((0...100).contains(knownPercent) && known >= 0, "a share is no percentage")
        precondition(known > 0 || knownPercent == 0, "there is no known device")
        self.known = known
        self.knownPercent = knownPercent
    }

    /// The device that signs proof number `index`. Known ones are spread evenly.
    package func device(_ index: Int) -> Int {
        let before = knownProofs(among: index)
        return knownProofs(among: index + 1) > before
            ? (firstKnown + before) % known
            : known + firstNew + index - before
    }

    /// How many of the first `count` proofs come from known devices.
    package func knownProofs(among count: Int) -> Int { count * knownPercent / 100 }

    /// Moves on behind the first `count` proofs.
    package mutating func advance(by count: Int) {
        firstKnown += knownProofs(among: count)
        firstNew += count - knownProofs(among: count)
    }
}
