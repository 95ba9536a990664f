import Core
import Synchronization
import Wire

/// How many requests there were of each operation.
final class OperationCounts: Sendable {
    private final class Count: Sendable {
        let value = Atomic<UInt64>(0)
    }

    /// One for each operation that clients may send, and the last one for numbers that are no operation's.
    private let values: [Count]
    /// The places of the operations, by their numbers.
    private let places: [UInt8]

    private static let operations = Operation.allCases.filter { $0 != .edit }
    private static let names = operations.map { hyphenatedName(of: $0) } + ["unknown"]

    init() {
        values = OperationCounts.names.map { _ in Count() }
        let unknown = UInt8(OperationCounts.operations.count)
        var places = [UInt8](repeating: unknown, count: 1 + Int(Operation.allCases.map(\.rawValue).max() ?? 0))
        for (place, operation) in OperationCounts.operations.enumerated() {
            places[Int(operation.rawValue)] = UInt8(place)
        }
        self.places = places
    }

    /// Counts requests of an operation; `nil`: of one that does not exist. A negative number takes back what was
    /// counted.
    func add(_ count: Int, to operation: Wire.Operation?) {
        let place = operation.map { Int(places[Int($0.rawValue)]) } ?? values.count - 1
        values[place].value.wrappingAdd(UInt64(truncatingIfNeeded: Int64(count)), ordering: .relaxed)
    }

    /// The counts, by stable names.
    var counts: [(name: String, count: UInt64)] {
        zip(OperationCounts.names, values).map { ($0, $1.value.load(ordering: .relaxed)) }
    }
}
