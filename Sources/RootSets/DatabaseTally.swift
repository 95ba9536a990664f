/// How many values a database has, and the sum of their checksums modulo 2^64. A value that is missing, twice there or
/// older than the others makes another sum, although it is intact by itself.
struct DatabaseTally: Equatable {
    private(set) var count: UInt64 = 0
    private(set) var sum: UInt64 = 0

    init() {}

    init(count: UInt64, sum: UInt64) {
        (self.count, self.sum) = (count, sum)
    }

    // A tally of changes may be below zero, so it is kept modulo 2^64.

    mutating func add(_ checksum: UInt64) {
        count &+= 1
        sum &+= checksum
    }

    mutating func subtract(_ checksum: UInt64) {
        count &-= 1
        sum &-= checksum
    }

    static func += (left: inout DatabaseTally, right: DatabaseTally) {
        left.count &+= right.count
        left.sum &+= right.sum
    }
}
