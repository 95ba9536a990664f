import Foundation

/// A command's options and operands as given: command line first, then environment, then the file of a service's
/// configuration, then defaults.
struct Arguments {
    /// Where an option's value comes from.
    enum Source: Equatable {
        case commandLine, environment, file, standard
    }

    /// The words behind the command's name.
    let words: [String]
    let operands: [String]
    private let options: [String: Option]
    private let given: [String: String]
    /// All values of each option, in their order.
    private let all: [String: [String]]
    private let environment: [String: String]
    /// What the option `ConfigurationFile.option` names, once it was read.
    private(set) var file: ConfigurationFile?
    private let read = ReadOptions()

    /// Throws `UsageError` for an unknown option, one that is given twice, a missing value or too many operands, and
    /// for a switch in the environment that is neither on nor off.
    init(
        _ words: [String], options: [Option], operandsMax: Int,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws {
        let declared = Dictionary(uniqueKeysWithValues: options.map { ($0.name, $0) })
        self.words = words
        self.options = declared
        self.environment = environment
        for option in options where option.isSwitch {
            guard let value = environment[option.variable], !value.isEmpty, Option.isOn(value) == nil else { continue }
            throw UsageError("\(option.variable) in the environment is 1 for --\(option.name), or 0")
        }
        var given: [String: String] = [:]
        var all: [String: [String]] = [:]
        func note(_ name: String, _ value: String) throws {
            let isRepeatable = declared[name]?.isRepeatable ?? false
            guard given.updateValue(value, forKey: name) == nil || isRepeatable else {
                throw UsageError("--\(name) is given twice")
            }
            all[name, default: []].append(value)
        }
        var operands: [String] = []
        var rest = words[...]
        while let word = rest.popFirst() {
            guard word.hasPrefix("--"), word != "--" else {
                if word == "--" {
                    operands += rest
                    break
                }
                guard word == "-" || !word.hasPrefix("-") else { throw UsageError("unknown option \(word)") }
                operands.append(word)
                continue
            }
            let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            guard let option = declared[name] else { throw UsageError("unknown option --\(name)") }
            if option.isSwitch {
                guard parts.count == 1 else { throw UsageError("--\(name) takes no value") }
                try note(name, "1")
            } else if parts.count == 2 {
                try note(name, String(parts[1]))
            } else {
                guard let value = rest.popFirst() else { throw UsageError("--\(name) needs a value (\(option.value))") }
                try note(name, value)
            }
        }
        guard operands.count <= operandsMax else { throw UsageError("unexpected \(operands[operandsMax])") }
        self.given = given
        self.all = all
        self.operands = operands
        guard declared[ConfigurationFile.option] != nil, let path = text(ConfigurationFile.option) else {
            return
        }
        file = try ConfigurationFile(path, options: options)
    }

    /// The value of an option; `nil` when it is neither given nor has a default. A switch that is given is "1".
    func text(_ name: String) -> String? { value(name)?.text }

    /// The value of an option, and where it comes from.
    func value(_ name: String) -> (text: String, source: Source)? {
        let option = declared(name)
        if let value = given[name] { return (value, .commandLine) }
        if let value = environment[option.variable], !value.isEmpty { return (value, .environment) }
        if let value = file?[name] { return (value, .file) }
        return option.standard.isEmpty ? nil : (option.standard, .standard)
    }

    /// All values of an option that may be given several times; the environment has one at most.
    func texts(_ name: String) -> [String] {
        let value = text(name)
        return all[name] ?? value.map { [$0] } ?? []
    }

    /// The value of an option that must be there.
    func required(_ name: String) throws -> String {
        guard let value = text(name) else { throw UsageError("--\(name) is needed") }
        return value
    }

    /// A whole number within `range`.
    func number(_ name: String, in range: ClosedRange<Int>) throws -> Int {
        let value = try required(name)
        guard let number = Int(value), range.contains(number) else {
            throw UsageError(
                "--\(name) takes a whole number from \(range.lowerBound) to \(range.upperBound), not \(value)")
        }
        return number
    }

    /// A decimal number within `range`.
    func decimal(_ name: String, in range: ClosedRange<Double>) throws -> Double {
        let value = try required(name)
        guard let number = Double(value), range.contains(number) else {
            throw UsageError("--\(name) takes a number from \(range.lowerBound) to \(range.upperBound), not \(value)")
        }
        return number
    }

    /// Prints a list in pages: one page, and on stderr that there are more, or all pages with `--all` or `isWhole`.
    ///
    /// `page` prints the page that begins at its argument. It returns where the next page begins and the `--after` that
    /// leads there; `nil` after the last page.
    func eachPage<Start>(
        from first: Start, isWhole: Bool = false, _ page: (Start) async throws -> (start: Start, after: String)?
    ) async throws {
        let listsAll = isOn("all") || isWhole
        var start = first
        while let next = try await page(start) {
            guard listsAll else {
                return complain("there are more: --after \(next.after) lists the next ones, --all lists all")
            }
            start = next.start
        }
    }

    /// Whether an option is given on the command line, or in the file of the configuration with another value than its
    /// default.
    func isGiven(_ name: String) -> Bool {
        let option = declared(name)
        return given[name] != nil || file?[name].map { $0 != option.standard } ?? false
    }

    /// The options that are given on the command line, in alphabetical order.
    var givenNames: [String] { given.keys.sorted() }

    /// Throws `UsageError` when an option is given on the command line that nobody has read.
    func checkAllRead() throws {
        if let unread = givenNames.first(where: { !read.contains($0) }) {
            throw UsageError("--\(unread) has no effect with the rest of the command line")
        }
    }

    /// The option of a name, which counts as read from now on.
    private func declared(_ name: String) -> Option {
        guard let option = options[name] else { preconditionFailure("the command does not declare --\(name)") }
        read.insert(name)
        return option
    }

    /// Whether a switch is on: given, or set in the environment or in the file to 1, yes, true or on.
    func isOn(_ name: String) -> Bool { text(name).flatMap { Option.isOn($0) } ?? false }
}
