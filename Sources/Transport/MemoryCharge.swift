/// Bytes that are reserved in a `MemoryBudget`. Whoever has a charge gives it back to the account that it came from.
package struct MemoryCharge: Equatable, Sendable {
    /// Bytes of the part that every request may use.
    package fileprivate(set) var common = 0
    /// Bytes of the reserve.
    package fileprivate(set) var urgent = 0

    package init() {}

    init(common: Int = 0, urgent: Int = 0) {
        self.common = common
        self.urgent = urgent
    }

    package var bytes: Int { common + urgent }

    /// Takes up to `count` bytes out of this charge, and returns them as another one.
    package mutating func split(_ count: Int) -> MemoryCharge {
        precondition(count >= 0)
        let part = min(common, count)
        let other = MemoryCharge(common: part, urgent: min(urgent, count - part))
        common -= other.common
        urgent -= other.urgent
        return other
    }

    package static func + (first: MemoryCharge, second: MemoryCharge) -> MemoryCharge {
        MemoryCharge(common: first.common + second.common, urgent: first.urgent + second.urgent)
    }

    package static func += (sum: inout MemoryCharge, charge: MemoryCharge) {
        sum.common += charge.common
        sum.urgent += charge.urgent
    }

    static func -= (sum: inout MemoryCharge, charge: MemoryCharge) {
        sum.common -= charge.common
        sum.urgent -= charge.urgent
        precondition(sum.common >= 0 && sum.urgent >= 0, "more memory is given back than was reserved")
    }
}
