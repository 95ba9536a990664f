import Testing

/// A rule that the repository's files keep, and the function that finds what breaks it.
struct Rule: Sendable, CustomTestStringConvertible {
    /// The rule as a sentence.
    let name: String
    /// Finds every place that breaks the rule. A pure function of the files.
    let violations: @Sendable ([TrackedFile]) -> [Violation]

    var testDescription: String { name }

    static let all: [Rule] = [
        Rule(name: "Lines of code have at most \(lineColumnsMax) columns", each: longLines),
        Rule(name: "Files have no tabs, no trailing white space, and one line break at their end", each: untidySpace),
        Rule(name: "No note of work to be done is left in a file", each: leftNotes),
        Rule(name: "Functions have at most \(functionLinesMax) lines", each: longFunctions),
        Rule(name: "No banned call is made", each: bannedCalls),
        Rule(name: "Locks are seen by ThreadSanitizer", each: hiddenLocks),
        Rule(name: "Functions in locks are properties of structs", violations: lockedFunctions),
        Rule(name: "Nothing is named after a drawer for odds and ends", each: drawerNames),
        Rule(name: "The client's public declarations are documented", each: undocumentedDeclarations),
        Rule(name: "Tests are named by a sentence", each: testNames),
        Rule(name: "C modules are imported by listed files only") { misplacedImports($0, allowed: filesThatImportC) },
        Rule(name: "LMDB is called with a guard", violations: unguardedCalls),
        Rule(name: "Memory is deallocated by listed owners only") {
            misplacedDeallocations($0, owners: ownersOfMemory, max: deallocationsMax)
        },
        Rule(name: "No two files have one name", violations: equalNames),
        Rule(name: "Files are named after a type that they declare or extend", each: misnamedFiles),
        Rule(name: "The root holds what is looked for there, and nothing else", each: strayRootEntries),
        Rule(name: "Targets are those of ARCHITECTURE.md's table", violations: undocumentedTargets),
        Rule(name: "Every layer has its tests, and every test target its layer", violations: unmirroredTests),
        Rule(name: "Options of the service are those of the handbook", violations: undocumentedOptions),
        Rule(name: "Paths that comments and documents name exist", violations: danglingPaths),
        Rule(name: "Documents are no walls of text", each: wallsOfText),
        Rule(name: "Every item that the model follows has a test", violations: brokenLedger),
    ]

    init(name: String, violations: @escaping @Sendable ([TrackedFile]) -> [Violation]) {
        self.name = name
        self.violations = violations
    }

    /// A rule that looks at one file at a time.
    init(name: String, each violations: @escaping @Sendable (TrackedFile) -> [Violation]) {
        self.init(name: name) { $0.flatMap(violations) }
    }
}
