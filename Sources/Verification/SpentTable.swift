/// A set of numbers in groups of 64 that follow one another: each group that has any is one place of 16 bytes.
///
/// A hash table with linear probing. At most three quarters of the places are used; when there are more, half as many
/// again are made. So a group takes at most 32 bytes.
struct SpentTable: Sendable {
    /// Bytes that a group takes at most.
    static let bytesPerGroupMax = 2 * MemoryLayout<Place>.stride
    /// Bytes of one place.
    static let placeBytes = MemoryLayout<Place>.stride

    private struct Place {
        var group: UInt64 = 0
        /// The numbers of the group that are in the set; zero when the place is free.
        var bits: UInt64 = 0
    }

    private var places: [Place] = []
    private var groupCount = 0

    /// Number of places, used or free.
    var placeCount: Int { places.count }

    /// Where the group is, or the free place where it belongs. There is at least one place, and one is free.
    @inline(__always)
    private func index(of group: UInt64, _ hash: UInt64) -> Int {
        var index = Int(((hash & 0xffff_ffff) &* UInt64(places.count)) >> 32)
        while places[index].bits != 0, places[index].group != group {
            index += 1
            if index == places.count { index = 0 }
        }
        return index
    }

    /// The numbers of the group that are in the set. `hash`: the group's; its lower half is used.
    @inline(__always)
    func bits(of group: UInt64, hash: UInt64) -> UInt64 {
        places.isEmpty ? 0 : places[index(of: group, hash)].bits
    }

    /// Adds numbers to a group that has some already.
    @inline(__always)
    mutating func add(_ bits: UInt64, to group: UInt64, hash: UInt64) {
        let index = index(of: group, hash)
        precondition(places[index].bits & bits == 0 && places[index].bits != 0, "a number is added twice")
        places[index].bits |= bits
    }

    /// Adds a group that has none yet. `hash` returns a group's hash.
    mutating func insert(_ group: UInt64, _ bits: UInt64, hash: KeyedHash) {
        assert(bits != 0, "a group without numbers is added")
        if 4 * (groupCount + 1) > 3 * places.count { grow(hash) }
        let index = index(of: group, hash(group))
        precondition(places[index].bits == 0, "a group is added twice")
        places[index] = Place(group: group, bits: bits)
        groupCount += 1
        assert(
            places.count * SpentTable.placeBytes <= groupCount * SpentTable.bytesPerGroupMax,
            "a group takes more memory than it may")
    }

    private mutating func grow(_ hash: KeyedHash) {
        let old = places
        places = [Place](repeating: Place(), count: max(2, old.count + old.count / 2))
        for place in old where place.bits != 0 { places[index(of: place.group, hash(place.group))] = place }
    }
}
