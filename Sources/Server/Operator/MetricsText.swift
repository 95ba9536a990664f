import Core

/// Writes metrics in OpenMetrics' text format, version 1.0.
struct MetricsText {
    static let contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

    /// The labels of a sample, in the order in which they are written.
    typealias Labels = [(name: String, value: String)]

    private(set) var text = ""

    /// What every name begins with.
    static let prefix = "rootgate_"

    /// Counts that only grow. `name`: without the ending `_total`, which the samples get.
    mutating func counter(_ name: String, _ help: String, _ samples: [(labels: Labels, value: UInt64)]) {
        describe(name, "counter", help)
        for sample in samples { write(name + "_total", sample.labels, String(sample.value)) }
    }

    mutating func counter(_ name: String, _ help: String, _ value: UInt64) {
        counter(name, help, [([], value)])
    }

    /// Values that go up and down.
    mutating func gauge(_ name: String, _ help: String, _ samples: [(labels: Labels, value: Double)]) {
        describe(name, "gauge", help)
        for sample in samples { write(name, sample.labels, MetricsText.number(sample.value)) }
    }

    mutating func gauge(_ name: String, _ help: String, _ value: Double) {
        gauge(name, help, [([], value)])
    }

    /// What never changes while the service runs. `name`: without the ending `_info`, which the sample gets.
    mutating func information(_ name: String, _ help: String, _ labels: Labels) {
        describe(name, "info", help)
        write(name + "_info", labels, "1")
    }

    /// Values by size. A histogram of durations has a name that ends with `_seconds`.
    mutating func histogram(
        _ name: String, _ help: String, _ samples: [(labels: Labels, values: PowerHistogram)]
    ) {
        describe(name, "histogram", help)
        for (labels, values) in samples {
            var count: UInt64 = 0
            for (exponent, inBucket) in zip(values.exponents, values.counts) {
                count += inBucket
                write(name + "_bucket", labels + [("le", MetricsText.bound(exponent))], String(count))
            }
            write(name + "_bucket", labels + [("le", "+Inf")], String(values.count))
            write(name + "_count", labels, String(values.count))
            let sum = values.unit == .nanoseconds ? Double(values.sum) / 1e9 : Double(values.sum)
            write(name + "_sum", labels, MetricsText.number(sum))
        }
    }

    /// The whole text, with the line that ends it.
    func finished() -> [UInt8] { Array((text + "# EOF\n").utf8) }

    private mutating func describe(_ name: String, _ type: String, _ help: String) {
        let family = MetricsText.prefix + name
        text += "# TYPE \(family) \(type)\n"
        for unit in ["seconds", "bytes"] where name.hasSuffix("_" + unit) { text += "# UNIT \(family) \(unit)\n" }
        text += "# HELP \(family) \(MetricsText.escaped(help))\n"
    }

    private mutating func write(_ name: String, _ labels: Labels, _ value: String) {
        text += MetricsText.prefix + name
        if !labels.isEmpty {
            let list = labels.map { "\($0.name)=\"\(MetricsText.escaped($0.value))\"" }
            text += "{" + list.joined(separator: ",") + "}"
        }
        text += " " + value + "\n"
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }

    /// Whole numbers are written without a fraction and without an exponent.
    static func number(_ value: Double) -> String {
        value.rounded() == value && abs(value) < 1e15 ? String(Int64(value)) : "\(value)"
    }

    /// Two to the power of the exponent. Bounds are floating-point numbers, so that each is always written alike.
    static func bound(_ exponent: Int) -> String {
        exponent < 0 ? "\(1 / Double(UInt64(1) << -exponent))" : "\(Double(UInt64(1) << exponent))"
    }
}
