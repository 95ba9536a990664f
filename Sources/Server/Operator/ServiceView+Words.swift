import Foundation

/// Numbers and faults as people read them.
extension ServiceView {
    /// What an operator should see first.
    package var alarms: [String] {
        [
            ("storage-damaged", "the storage is damaged"), ("storage-failed", "the storage has failed"),
            ("cross-check-disagreements", "a kernel and OpenSSL disagreed"),
        ].filter { sample[$0.0] != 0 }.map(\.1)
    }

    /// A rate; a hyphen when there is none.
    package static func rate(_ rate: Double?) -> String {
        guard let rate else { return "-/s" }
        if rate > 0, rate < 10 { return String(format: "%.1f/s", rate) }
        // A figure that nobody can have counted is shown as it is.
        return UInt64(exactly: rate.rounded()).map { "\(grouped($0))/s" } ?? "\(rate)/s"
    }

    /// 1234567 as 1,234,567.
    package static func grouped(_ number: UInt64) -> String {
        var text = ""
        for (place, digit) in "\(number)".reversed().enumerated() {
            if place > 0, place % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return String(text.reversed())
    }

    package static func size(_ bytes: UInt64) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"]
        var (value, unit) = (Double(bytes), 0)
        while value >= 1024, unit < units.count - 1 { (value, unit) = (value / 1024, unit + 1) }
        return (unit == 0 || value >= 100 ? "\(Int(value))" : String(format: "%.1f", value)) + " \(units[unit])"
    }
}
