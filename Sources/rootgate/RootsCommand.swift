import Core
import Foundation
import Hashing
import Kernels
import LoadHarness
import RootgateClient
import Server
import Signatures

private let rootsVerbs = [
    Verb("add", "[HEX ...]", 0...Verb.operandsMax, options: ["file", "quiet"], "add root hashes"),
    Verb("remove", "[HEX ...]", 0...Verb.operandsMax, options: ["file", "quiet"], "remove root hashes"),
    Verb("test", "[HEX ...]", 0...Verb.operandsMax, options: ["file", "quiet"], "tell which are in the set"),
    Verb("list", "", 0...0, options: ["after", "limit", "all"], "list the root hashes in the set"),
    Verb("count", "", 0...0, "count the root hashes in the set"),
    Verb("export", "", 0...0, options: ["after", "quiet"], "write all root hashes to standard output"),
    Verb(
        "import", "FILE", 1...1, options: ["resume", "quiet"], "add the root hashes of a file (-: standard input)"),
]

let rootsCommand = Command(
    "roots",
    verbs: rootsVerbs,
    "list and change a collaboration's set of root hashes",
    options: [
        .server, .collaboration, .timeout,
        Option("file", "FILE", "add, remove, test: root hashes, one in hexadecimal a line (-: standard input)"),
        Option("after", "HEX", "list, export: only root hashes after this one"),
        Option("limit", "N", "list: so many root hashes (default: all)"),
        Option(switch: "all", "list: all root hashes, --limit at a time"),
        Option("resume", "FILE", "import: a file that tells another run where to go on; removed at the end"), .quiet,
        .json,
    ]
) { verb, arguments in
    let collaboration = try collaborationOption(arguments)
    let client = try connect(arguments)
    defer { client.close() }
    switch verb.name {
    case "export":
        try await exportRoots(collaboration, after: try afterOption(arguments), client, arguments)
        return .success
    case "import":
        try await importRoots(arguments.operands[1], to: collaboration, client, arguments)
        return .success
    default: break
    }
    var roots = try arguments.operands.dropFirst().map { try rootHash($0) }
    if let file = arguments.text("file") { roots += try readRoots(file) }
    let progress = progressMeter(arguments)
    defer { progress.end() }
    switch verb.name {
    case "add", "remove":
        guard !roots.isEmpty else { throw UsageError("give root hashes as operands or with --file") }
        let isAddition = verb.name == "add"
        progress.begin(isAddition ? "adding root hashes" : "removing root hashes", share: 0...1)
        try await roots.inChunks(of: Limits.rootsPerRequestMax, progress) { roots in
            let receipt =
                isAddition
                ? try await client.addRoots(roots, to: collaboration)
                : try await client.removeRoots(roots, from: collaboration)
            try progress.aside { try report(receipt, isAddition ? "added" : "removed", arguments) }
        }
    case "test":
        guard !roots.isEmpty else { throw UsageError("give root hashes as operands or with --file") }
        var isMissing = false
        progress.begin("testing root hashes", share: 0...1)
        try await roots.inChunks(of: Limits.rootsPerRequestMax, progress) { roots in
            let members = try await client.testRoots(roots, in: collaboration)
            isMissing = isMissing || members.contains(false)
            for (root, isMember) in zip(roots, members) {
                progress.printAside(
                    arguments.isOn("json")
                        ? try json(["rootHash": root.description, "member": isMember])
                        : "\(root) \(isMember ? "member" : "not a member")")
            }
        }
        return isMissing ? .refused : .success
    case "list":
        try await list(collaboration, client, arguments)
    case "count":
        let state = try await client.state(of: collaboration)
        printNow(arguments.isOn("json") ? try json(describe(state)) : "\(state.rootCount)")
    default:
        preconditionFailure("roots lists the verb \(verb.name) and does not have it")
    }
    return .success
}

/// Prints a collaboration's root hashes: those after `--after`, as many as `--limit` says.
private func list(
    _ collaboration: CollaborationIdentifier, _ client: RootgateClient, _ arguments: Arguments
) async throws {
    let start = try afterOption(arguments)
    let isPage = arguments.text("limit") != nil
    let limit = isPage ? try arguments.number("limit", in: 1...Limits.rootsPerPageMax) : Limits.rootsPerPageMax
    try await arguments.eachPage(from: start, isWhole: !isPage) { start in
        let page = try await client.roots(of: collaboration, after: start, limit: limit)
        let lines = try page.items.map { root in
            arguments.isOn("json") ? try json(["rootHash": root.description]) : root.description
        }
        if !lines.isEmpty { printNow(lines.joined(separator: "\n")) }
        guard page.hasMore, let last = page.items.last else { return nil }
        return (last, last.description)
    }
}

/// The root hash behind which a list begins; `nil`: it begins with the first one.
private func afterOption(_ arguments: Arguments) throws -> Digest? {
    try arguments.text("after").map { try rootHash($0) }
}

private func rootHash(_ text: String) throws -> Digest {
    guard let root = Digest(hexadecimal: text) else { throw UsageError("\(text) is not a root hash in hexadecimal") }
    return root
}

func report(_ receipt: MutationReceipt, _ done: String, _ arguments: Arguments) throws {
    printNow(
        arguments.isOn("json")
            ? try json(["sequence": receipt.sequence, "changed": receipt.changed, "repeat": receipt.isRepeat])
            : "\(done) \(receipt.changed) (sequence \(receipt.sequence))")
}
