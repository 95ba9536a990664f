/// Finds what somebody may have meant who misspelt a name.
enum NearestName {
    /// The name that differs in the fewest characters; of several, the first one in alphabetical order.
    static func find(_ name: String, among names: some Sequence<String>) -> String? {
        names.sorted().map { (name: $0, distance: distance($0, name)) }.min { $0.distance < $1.distance }?.name
    }

    /// The same when the names are similar: a third of the characters differ at most, or two. `nil`: none
    /// is.
    static func findSimilar(_ name: String, among names: some Sequence<String>) -> String? {
        find(name, among: names).flatMap { 3 * distance($0, name) <= max(6, name.utf8.count) ? $0 : nil }
    }

    /// How many characters have to be inserted, removed or replaced to make one name of the other.
    private static func distance(_ first: String, _ second: String) -> Int {
        // Longer names are far from every known one.
        let (first, second) = (Array(first.utf8.prefix(64)), Array(second.utf8.prefix(64)))
        var row = Array(0...second.count)
        for (index, byte) in first.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for (place, other) in second.enumerated() {
                let replaced = diagonal + (byte == other ? 0 : 1)
                diagonal = row[place + 1]
                row[place + 1] = min(replaced, diagonal + 1, row[place] + 1)
            }
        }
        return row[second.count]
    }
}
