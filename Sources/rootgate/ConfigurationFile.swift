import Foundation

/// Options of a service in a file. A line is `name = value`, where the name is that of the command line without its
/// hyphens. The value is the rest of the line. Empty lines and those that begin with # don't count.
struct ConfigurationFile {
    /// The name of the option that names the file.
    static let option = "config"

    let path: String
    private let values: [String: String]

    /// Reads the file.
    ///
    /// Throws a `UsageError` that names the line: for an option that is not in `options`, is given twice or has no
    /// value, and for a switch that is neither on nor off. Throws `FileFailure` when the file can't be read.
    init(_ path: String, options: [Option]) throws {
        guard path != "-" else { throw UsageError("--config takes a file, which SIGHUP reads again, not -") }
        self.path = path
        guard let text = String(validating: try contents(of: path), as: UTF8.self) else {
            throw UsageError("\(path) is not UTF-8")
        }
        let declared = Dictionary(uniqueKeysWithValues: options.map { ($0.name, $0) })
        var values: [String: String] = [:]
        // Not by characters: a carriage return and a line feed are one.
        let lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            let line = String(line).trimmingCharacters(in: .whitespacesAndNewlines)
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            func fault(_ text: String) -> UsageError { UsageError("line \(index + 1) of \(path): \(text)") }
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
            guard parts.count == 2 else { throw fault("this is not name = value") }
            guard let option = declared[parts[0]], option.name != ConfigurationFile.option else {
                let others = declared.keys.filter { $0 != ConfigurationFile.option }
                let nearest = NearestName.findSimilar(parts[0], among: others).map { ", but there is \($0)" } ?? ""
                throw fault("there is no option \(parts[0])\(nearest)")
            }
            guard !parts[1].isEmpty else { throw fault("\(option.name) has no value") }
            guard !option.isSwitch || Option.isOn(parts[1]) != nil else {
                throw fault("\(option.name) is on or off, not \(parts[1])")
            }
            guard values.updateValue(parts[1], forKey: option.name) == nil else {
                throw fault("\(option.name) is given twice")
            }
        }
        self.values = values
    }

    /// The value of an option, if the file has it.
    subscript(name: String) -> String? { values[name] }
}
