import Foundation

/// Reads metrics as strictly as OpenMetrics 1.0 describes its text format. It shares no code with what writes them.
struct OpenMetricsReader {
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    struct Sample {
        let name: String
        let labels: [String: String]
        let value: Double
    }

    struct Family {
        let name: String
        var type: String?
        var unit: String?
        var help: String?
        var samples: [Sample] = []
    }

    private(set) var families: [Family] = []

    /// Throws at the first thing that the format does not allow.
    init(_ text: String) throws {
        guard text.hasSuffix("\n# EOF\n") || text == "# EOF\n" else { throw Fault(description: "no end") }
        guard !text.contains("\r") else { throw Fault(description: "a carriage return") }
        for line in text.dropLast("# EOF\n".count).split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            do {
                if line.hasPrefix("#") { try readDescription(line) } else { try readSample(line) }
            } catch {
                throw Fault(description: "\(error) in “\(line)”")
            }
        }
        for family in families { try OpenMetricsReader.check(family) }
    }

    /// The value of a sample; `nil` when there is none.
    func value(_ name: String, _ labels: [String: String] = [:]) -> Double? {
        families.flatMap(\.samples).first { $0.name == name && $0.labels == labels }?.value
    }

    private mutating func readDescription(_ line: Substring) throws {
        let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false).map(String.init)
        guard words.count == 4, words[0] == "#", OpenMetricsReader.isName(words[2], allowsColon: true) else {
            throw Fault(description: "a malformed description")
        }
        if families.last?.name != words[2] {
            guard !families.contains(where: { $0.name == words[2] }) else { throw Fault(description: "a split family") }
            families.append(Family(name: words[2]))
        }
        let last = families.count - 1
        guard families[last].samples.isEmpty else { throw Fault(description: "a description behind samples") }
        switch words[1] {
        case "TYPE" where families[last].type == nil: families[last].type = words[3]
        case "UNIT" where families[last].unit == nil: families[last].unit = words[3]
        case "HELP" where families[last].help == nil: families[last].help = try OpenMetricsReader.unescaped(words[3])
        default: throw Fault(description: "another description, or a second one")
        }
    }

    private mutating func readSample(_ line: Substring) throws {
        var rest = line
        let name = String(rest.prefix { $0 != "{" && $0 != " " })
        guard OpenMetricsReader.isName(name, allowsColon: true) else { throw Fault(description: "a malformed name") }
        rest = rest.dropFirst(name.count)
        var labels: [String: String] = [:]
        if rest.first == "{" {
            rest = rest.dropFirst()
            while rest.first != "}" {
                let (label, value) = try OpenMetricsReader.readLabel(&rest)
                guard labels.updateValue(value, forKey: label) == nil else { throw Fault(description: "a label twice") }
                guard rest.first == "," else { break }
                rest = rest.dropFirst()
                guard rest.first != "}" else { throw Fault(description: "a comma behind the last label") }
            }
            guard rest.first == "}" else { throw Fault(description: "labels without an end") }
            rest = rest.dropFirst()
        }
        guard rest.first == " ", let value = OpenMetricsReader.number(String(rest.dropFirst())) else {
            throw Fault(description: "a malformed value")
        }
        guard let last = families.indices.last else { throw Fault(description: "a sample without a family") }
        guard !families[last].samples.contains(where: { $0.name == name && $0.labels == labels }) else {
            throw Fault(description: "a sample twice")
        }
        families[last].samples.append(Sample(name: name, labels: labels, value: value))
    }

    private static func readLabel(_ rest: inout Substring) throws -> (name: String, value: String) {
        let name = String(rest.prefix { $0 != "=" })
        rest = rest.dropFirst(name.count)
        guard isName(name, allowsColon: false), rest.hasPrefix("=\"") else {
            throw Fault(description: "a malformed label")
        }
        rest = rest.dropFirst(2)
        var value = ""
        while let next = rest.popFirst(), next != "\"" {
            value.append(next)
            if next == "\\", let escaped = rest.popFirst() { value.append(escaped) }
        }
        return (name, try unescaped(value))
    }

    private static func unescaped(_ text: String) throws -> String {
        var result = ""
        var rest = text[...]
        while let next = rest.popFirst() {
            guard next == "\\" else {
                result.append(next)
                continue
            }
            switch rest.popFirst() {
            case "n": result.append("\n")
            case "\\": result.append("\\")
            case "\"": result.append("\"")
            default: throw Fault(description: "an unknown escape")
            }
        }
        return result
    }

    private static func isName(_ name: String, allowsColon: Bool) -> Bool {
        guard let first = name.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else {
            return false
        }
        return name.unicodeScalars.allSatisfy {
            ("a"..."z").contains($0) || ("A"..."Z").contains($0) || ("0"..."9").contains($0) || $0 == "_"
                || allowsColon && $0 == ":"
        }
    }

    private static func number(_ text: String) -> Double? {
        guard !text.isEmpty, text.allSatisfy({ "0123456789+-.e".contains($0) }) else { return nil }
        return Double(text)
    }

    // MARK: Families

    private static func check(_ family: Family) throws {
        func demand(_ condition: Bool, _ what: String) throws {
            guard condition else { throw Fault(description: "\(family.name): \(what)") }
        }
        try demand(family.help?.isEmpty == false, "no help")
        if let unit = family.unit { try demand(family.name.hasSuffix("_" + unit), "a name without its unit") }
        for unit in ["seconds", "bytes"] where family.name.hasSuffix("_" + unit) {
            try demand(family.unit == unit, "no unit")
        }
        for ending in ["_total", "_count", "_sum", "_bucket", "_info", "_created"] {
            try demand(!family.name.hasSuffix(ending), "a name that ends as a sample's")
        }
        try demand(!family.samples.isEmpty, "no sample")
        let names = Set(family.samples.map(\.name))
        switch family.type {
        case "counter":
            try demand(names == [family.name + "_total"], "samples of another type")
            try demand(family.samples.allSatisfy { $0.value >= 0 }, "a negative count")
        case "gauge": try demand(names == [family.name], "samples of another type")
        case "info":
            try demand(names == [family.name + "_info"], "samples of another type")
            try demand(family.samples.allSatisfy { $0.value == 1 }, "information that is not 1")
        case "histogram": try checkHistogram(family)
        default: try demand(false, "no type")
        }
        let labels = Set(family.samples.map { Set($0.labels.keys).subtracting(["le"]) })
        try demand(labels.count == 1, "samples with different labels")
    }

    /// Each histogram of the family: buckets with ascending bounds up to infinity, a count and a sum, in that order.
    private static func checkHistogram(_ family: Family) throws {
        var rest = family.samples[...]
        while let first = rest.first {
            var labels = first.labels
            labels["le"] = nil
            var bound = -Double.infinity
            var count = 0.0
            while let bucket = rest.first, bucket.name == family.name + "_bucket" {
                var own = bucket.labels
                guard let text = own.removeValue(forKey: "le"), own == labels,
                    let next = text == "+Inf" ? .infinity : Double(text), next > bound, bucket.value >= count,
                    text == "+Inf" || text.contains(".") || text.contains("e")
                else { throw Fault(description: "\(family.name): a bucket out of order, or without a bound") }
                (bound, count) = (next, bucket.value)
                rest.removeFirst()
            }
            guard bound == .infinity, let total = rest.popFirst(), let sum = rest.popFirst(),
                total.name == family.name + "_count", sum.name == family.name + "_sum", total.labels == labels,
                sum.labels == labels, total.value == count, sum.value >= 0
            else { throw Fault(description: "\(family.name): a histogram without an end") }
        }
    }
}
