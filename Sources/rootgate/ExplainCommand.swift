import Core
import Foundation
import RootgateClient
import Server
import Verification

/// Lines that are explained when none is chosen.
private let explainedLinesMax = 100

let explainCommand = Command(
    "explain", operands: "[FILE|-]", operandsMax: 1,
    "show a proof's way to its root hash, and what each check says about it",
    options: [
        Option("line", "N", "explain this line only, from 1 (default: each of the first \(explainedLinesMax))"),
        Option("roots", "FILE", "known root hashes, one in hexadecimal a line; without it membership is not checked"),
        Option("server", "HOST:PORT", "ask a service too: a proof that it grants is spent, as by verify"),
        Option("collaboration", "ID", "with --server: the collaboration"),
        Option("at-least", "SEQUENCE", standard: "0", "with --server: a change that must have been applied"),
        .timeout, .json,
    ]
) { arguments in
    let path = arguments.operands.first ?? "-"
    let input = try ProofLines(path: path)
    let chosen = arguments.text("line") == nil ? nil : try arguments.number("line", in: 1...Int.max)
    let explainer: ProofExplainer
    var judge: (([ProofLine]) async throws -> [LineVerdict])?
    if arguments.text("server") != nil {
        guard arguments.text("roots") == nil else { throw UsageError("--roots and --server exclude each other") }
        let client = try connect(arguments)
        let collaboration = try collaborationOption(arguments)
        let atLeast = UInt64(try arguments.number("at-least", in: 0...Int.max))
        explainer = try ProofExplainer(roots: nil)
        judge = { lines in try await judgeByService(lines, client, collaboration, atLeast: atLeast) }
    } else {
        guard arguments.text("collaboration") == nil else {
            throw UsageError("--collaboration needs --server: without a service no collaboration is known")
        }
        explainer = try ProofExplainer(roots: arguments.text("roots").map { try readRoots($0) }.map(Set.init))
    }
    let isJSON = arguments.isOn("json")
    try arguments.checkAllRead()
    let (first, lines) = try read(input, path, chosen: chosen)
    let verdicts = try await judge?(lines)
    var refused = false
    for (place, line) in lines.enumerated() {
        let explained = try ExplainedLine(first + place, line, explainer, service: verdicts?[place])
        refused = refused || explained.isRefused
        let text = isJSON ? [try json(explained.object)] : (place == 0 ? [] : [""]) + explained.text
        printNow(text.joined(separator: "\n"))
    }
    return refused ? .refused : .success
}

/// The lines to explain, and the number of the first one.
private func read(_ input: ProofLines, _ path: String, chosen: Int?) throws -> (first: Int, lines: [ProofLine]) {
    guard let chosen else {
        let lines = try input.next(explainedLinesMax)
        if try !input.next(1).isEmpty {
            complain("only the first \(explainedLinesMax) lines are explained: --line N explains another one")
        }
        return (1, lines)
    }
    var count = 0
    while case let lines = try input.next(min(256, chosen - count)), !lines.isEmpty {
        count += lines.count
        if count == chosen { return (chosen, lines.suffix(1)) }
    }
    throw UsageError("\(path) has only \(count) lines")
}
