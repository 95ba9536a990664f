/// What one verb of a command takes: its operands, and those options of the command that it uses.
struct Verb: Sendable {
    let name: String
    /// What stands behind the verb in the usage line.
    let operands: String
    /// How many operands it takes.
    let counts: ClosedRange<Int>
    /// The names of the options that it uses, besides those that all verbs of the command use.
    let options: Set<String>
    let summary: String

    /// The end of `counts` for a verb that takes as many operands as there are.
    static let operandsMax = 4095

    init(
        _ name: String, _ operands: String, _ counts: ClosedRange<Int>, options: Set<String> = [], _ summary: String
    ) {
        self.name = name
        self.operands = operands
        self.counts = counts
        self.options = options
        self.summary = summary
    }

    /// Throws `UsageError` when the arguments, the verb among them, have too many or too few operands, or an option
    /// that neither the verb nor all verbs (`common`) use.
    func check(_ arguments: Arguments, common: Set<String>) throws {
        if let stranger = arguments.givenNames.first(where: { !common.contains($0) && !options.contains($0) }) {
            throw UsageError("\(name) takes no --\(stranger)")
        }
        let given = arguments.operands.dropFirst()
        guard given.count >= counts.lowerBound else { throw UsageError("\(name) needs more operands: \(operands)") }
        guard given.count <= counts.upperBound else {
            throw UsageError("\(name) takes no operand \(given[given.startIndex + counts.upperBound])")
        }
    }
}
