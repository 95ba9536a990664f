/// What may stand in the repository's root. What begins with a dot may, too.
private let rootEntries: Set<String> = [
    "Package.swift", "Sources", "Tests", "Benchmarks", "deploy", "README.md", "LICENSE", "PROTOCOL.md",
    "ARCHITECTURE.md", "CHANGELOG.md",
]

/// Files and folders in the root that nobody looks for there.
func strayRootEntries(_ file: TrackedFile) -> [Violation] {
    let entry = file.path.prefix { $0 != "/" }
    return rootEntries.contains(String(entry)) || entry.hasPrefix(".")
        ? [] : [Violation(file.path, "stands in the root")]
}

/// Names that a system library's folder prescribes.
private let prescribedNames: Set<String> = ["module.modulemap", "shim.h"]

/// Where the reports of benchmarks go: those of different kinds of machines have the same names.
private let reportsFolder = "Benchmarks/results/"

/// Source files with the name of another one, whatever the case of its letters.
func equalNames(_ files: [TrackedFile]) -> [Violation] {
    let sources = files.filter { file in
        ["Sources/", "Tests/", "Benchmarks/"].contains { file.path.hasPrefix($0) }
            && !prescribedNames.contains(file.name) && !file.path.hasPrefix(reportsFolder)
    }
    return Dictionary(grouping: sources) { $0.name.lowercased() }.values.filter { $0.count > 1 }
        .flatMap { same in same.map { Violation($0.path, "\(same.count) files have this name") } }
        .sorted { $0.path < $1.path }
}

/// Files that hold functions, values or several systems' calls, and no type of their own.
private let filesWithoutType: Set<String> = [
    "Sources/Collaboration/Rules/Checks.swift", "Sources/Core/LimitChecks.swift", "Sources/Platform/Elsewhere.swift",
    "Sources/Platform/Linux.swift", "Sources/RootgateClient/ReexportedTypes.swift",
    "Sources/rootgate/ServiceOptions.swift",
]

/// The command line's files are named after the commands and verbs that they define.
private func isNamedAfterCommand(_ file: TrackedFile) -> Bool {
    file.path.hasPrefix("Sources/rootgate/") && ["Command.swift", "Verbs.swift"].contains { file.name.hasSuffix($0) }
}

private let typeDeclarations: Set<String> = ["struct", "class", "enum", "actor", "protocol", "extension"]

/// Files of `Sources` that neither declare nor extend the type before the `+` or the dot of their name.
func misnamedFiles(_ file: TrackedFile) -> [Violation] {
    guard file.kind == .swift, file.path.hasPrefix("Sources/"), !filesWithoutType.contains(file.path),
        !isNamedAfterCommand(file)
    else { return [] }
    let type = String(file.name.prefix { $0 != "+" && $0 != "." })
    let isDeclared = zip(file.codeWords, file.codeWords.dropFirst()).contains { keyword, name in
        typeDeclarations.contains(keyword.text) && name.text == type
    }
    return isDeclared ? [] : [Violation(file.path, "declares and extends no \(type)")]
}

/// The targets of a manifest, in order, by how they are declared there.
struct ManifestTargets {
    /// Libraries, layers, programs and what tests share.
    var sources: [String] = []
    /// What the test targets are for: `Core` stands for `CoreTests`.
    var tested: [String] = []

    /// Reads `layer("Core"`, `program("rootgate"`, `name: "CLinux"` and `tests(of: "Core"`. The package's own name and
    /// its products, which stand before `targets:`, are no targets.
    init(_ manifest: TrackedFile) {
        let lines = manifest.lines.drop { $0 != "    targets: [" }
        let text = lines.filter { !$0.contains("//") }.joined(separator: "\n")
        sources = quoted(behind: ["layer(", "program(", "target(name:", "Library(name:", "name:"], in: text)
        tested = quoted(behind: ["tests(of:"], in: text)
        for name in quoted(behind: ["testTarget(name:"], in: text) { sources.removeAll { $0 == name } }
    }
}

/// The string literals that follow one of the given texts, with nothing but white space between, each once.
private func quoted(behind prefixes: [String], in text: String) -> [String] {
    var names: [String] = []
    let pieces = text.split(separator: "\"", omittingEmptySubsequences: false)
    for index in stride(from: 1, to: pieces.count, by: 2) {
        let before = pieces[index - 1].filter { !$0.isWhitespace }
        let name = String(pieces[index])
        guard prefixes.contains(where: { before.hasSuffix($0) }), !names.contains(name) else { continue }
        names.append(name)
    }
    return names
}

/// What stands between the first two code marks of each row of the table under a heading.
private func firstNames(under heading: String, of document: TrackedFile) -> [String]? {
    guard let start = document.lines.firstIndex(of: heading) else { return nil }
    return document.lines[(start + 1)...].drop { !$0.hasPrefix("|") }.prefix { $0.hasPrefix("|") }.dropFirst(2)
        .map { row in
            String(row.drop { $0 != "`" }.dropFirst().prefix { $0 != "`" })
        }
}

/// Targets of the manifest that ARCHITECTURE.md does not list under “Targets”, and the reverse.
func undocumentedTargets(_ files: [TrackedFile]) -> [Violation] {
    guard let manifest = files.first(where: { $0.path == "Package.swift" }),
        let map = files.first(where: { $0.path == "ARCHITECTURE.md" })
    else { return [] }
    guard let listed = firstNames(under: "## Targets", of: map) else {
        return [Violation(map.path, "there is no table under “## Targets”")]
    }
    let targets = ManifestTargets(manifest).sources
    return targets.filter { !listed.contains($0) }.map { Violation(map.path, "the target \($0) is not listed") }
        + listed.filter { !targets.contains($0) }.map { Violation(map.path, "\($0) is no target of the manifest") }
}

/// Test targets that mirror no target, and layers, programs and kernels that no test target mirrors.
func unmirroredTests(_ files: [TrackedFile]) -> [Violation] {
    guard let manifest = files.first(where: { $0.path == "Package.swift" }) else { return [] }
    let targets = ManifestTargets(manifest)
    // System libraries have no code of their own, and what tests share is tested by its use.
    let untested: Set<String> = [
        "COpenSSL", "CLibSSL", "CLMDB", "CLinux", "KernelInternals", "KernelEmulation", "ToyCurve",
        "KernelMutants", "KernelProofs", "SandboxProbe", "StorageProbe", "FailingDisk", "DiskImages",
        "DamageTrials", "PowerCuts", "TestProcess",
    ]
    return targets.tested.filter { !targets.sources.contains($0) }
        .map { Violation(manifest.path, "\($0)Tests mirrors no target") }
        + targets.sources.filter {
            !targets.tested.contains($0) && !untested.contains($0) && !$0.hasSuffix("TestSupport")
        }
        .map { Violation(manifest.path, "\($0) has no test target") }
}

/// Options of `rootgate serve` that the operators' handbook does not list, and the reverse.
func undocumentedOptions(_ files: [TrackedFile]) -> [Violation] {
    let definitions = files.filter { file in
        ["Configuration", "ClusterSettings"].contains { file.path == "Sources/rootgate/\($0)+Arguments.swift" }
    }
    guard !definitions.isEmpty, let page = files.first(where: { $0.path == "deploy/handbook/options.md" })
    else { return [] }
    let listed = firstNames(under: "## Options of serve", of: page) ?? []
    let options = quoted(
        behind: ["Option(", "Option(switch:"], in: definitions.flatMap(\.lines).joined(separator: "\n")
    ).map {
        "--" + $0
    }
    return options.filter { !listed.contains($0) }.map { Violation(page.path, "the option \($0) is not listed") }
        + listed.filter { !options.contains($0) }.map { Violation(page.path, "\($0) is no option of serve") }
}
