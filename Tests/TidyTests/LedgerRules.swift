/// The ledger of what the model follows: each row has a source document, an item of it, and the test that shows that
/// the item works.
let ledgerPath = "Tests/Ledger/coverage.tsv"
private let ledgerHeader = "seed\titem\ttest"

/// Rows of the ledger without three fields, items that stand in it twice, and tests that the tree does not have once.
func brokenLedger(_ files: [TrackedFile]) -> [Violation] {
    guard let ledger = files.first(where: { $0.path == ledgerPath }) else {
        return [Violation(ledgerPath, "does not exist")]
    }
    var found: [Violation] = []
    if ledger.lines.first != ledgerHeader { found.append(Violation(ledgerPath, line: 1, "has another header")) }
    var uses: [String: Int] = [:]
    for file in files where file.kind == .swift && file.path.hasPrefix("Tests/") {
        for name in displayNames(in: file) { uses[name, default: 0] += 1 }
    }
    var items: Set<String> = []
    for (index, line) in ledger.lines.enumerated().dropFirst() where !line.isEmpty {
        let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        guard fields.count == 3, fields.allSatisfy({ !$0.isEmpty }) else {
            found.append(Violation(ledgerPath, line: index + 1, "has not three fields"))
            continue
        }
        if !items.insert("\(fields[0])\t\(fields[1])").inserted {
            found.append(Violation(ledgerPath, line: index + 1, "an item stands here again"))
        }
        let count = uses[fields[2]] ?? 0
        if count != 1 {
            found.append(Violation(ledgerPath, line: index + 1, "\(count) tests are named “\(fields[2])”"))
        }
    }
    if items.isEmpty { found.append(Violation(ledgerPath, "has no items")) }
    return found
}

/// The display names of the tests in a file.
private func displayNames(in file: TrackedFile) -> [String] {
    let text = String(decoding: file.bytes, as: UTF8.self)
    return text.matches(of: /[@]Test\(\s*"((?:[^"\\]|\\.)*)"/).map { match in
        String(match.1).replacing("\\\"", with: "\"").replacing("\\\\", with: "\\")
    }
}
