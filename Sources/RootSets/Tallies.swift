/// The tallies of all databases.
struct Tallies: Equatable {
    static let byteCount = 16 * DatabaseName.allCases.count

    private var tallies = [DatabaseTally](repeating: DatabaseTally(), count: DatabaseName.allCases.count)

    init() {}

    /// `bytes`: exactly `byteCount`; otherwise `nil`.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Tallies.byteCount else { return nil }
        func word(_ index: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
        }
        for index in tallies.indices {
            tallies[index] = DatabaseTally(count: word(2 * index), sum: word(2 * index + 1))
        }
    }

    subscript(name: DatabaseName) -> DatabaseTally {
        get { tallies[name.rawValue] }
        set { tallies[name.rawValue] = newValue }
    }

    static func += (left: inout Tallies, right: Tallies) {
        for name in DatabaseName.allCases { left[name] += right[name] }
    }

    func append(to bytes: inout [UInt8]) {
        for tally in tallies {
            bytes.appendInteger(tally.count)
            bytes.appendInteger(tally.sum)
        }
    }
}
