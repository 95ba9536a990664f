import Core
import Foundation
import RootgateClient
import Server
import Verification

let verifyCommand = Command(
    "verify", operands: "[FILE|-]", operandsMax: 1,
    "verify proofs from JSON Lines, here or by a service",
    options: [
        Option("roots", "FILE", "known root hashes, one in hexadecimal a line; without it they are only computed"),
        Option("server", "HOST:PORT", "let a service verify them"),
        Option("collaboration", "ID", "with --server: the collaboration"),
        Option("at-least", "SEQUENCE", standard: "0", "with --server: a change that must have been applied"),
        .timeout, .quiet,
        Option(switch: "json", "accepted for consistency: the output is JSON Lines always"),
    ]
) { arguments in
    let input = try ProofLines(path: arguments.operands.first ?? "-")
    let judge: ([ProofLine]) async throws -> [LineVerdict]
    if arguments.text("server") != nil {
        guard arguments.text("roots") == nil else { throw UsageError("--roots and --server exclude each other") }
        let client = try connect(arguments)
        let collaboration = try collaborationOption(arguments)
        let atLeast = UInt64(try arguments.number("at-least", in: 0...Int.max))
        judge = { lines in try await judgeByService(lines, client, collaboration, atLeast: atLeast) }
    } else {
        guard arguments.text("collaboration") == nil else {
            throw UsageError("--collaboration needs --server: without a service no collaboration is known")
        }
        let verifier = try StandaloneVerifier(roots: arguments.text("roots").map { try readRoots($0) }.map(Set.init))
        judge = { lines in
            try lines.map { line in
                switch line {
                case .malformed(let reason): return LineVerdict(.malformed, reason: reason)
                case .proof(let proof, _):
                    let (verdict, root) = try verifier.verify(proof)
                    return LineVerdict(verdict, root: root, reason: line.reason(for: verdict))
                }
            }
        }
    }
    var number = 0
    var refused = false
    let progress = progressMeter(arguments)
    defer { progress.end() }
    progress.begin("verifying", share: 0...1)
    while case let lines = try input.next(256), !lines.isEmpty {
        var output = ""
        for verdict in try await judge(lines) {
            number += 1
            refused = refused || verdict.verdict.isRefusal
            output += try verdict.json(line: number) + "\n"
        }
        progress.printAside(output, terminator: "")
        progress.show("\(number) proofs", done: input.readShare)
    }
    return refused ? .refused : .success
}

/// What is printed for one line.
struct LineVerdict {
    let verdict: Verdict
    let root: Digest?
    let reason: String?

    init(_ verdict: Verdict, root: Digest? = nil, reason: String? = nil) {
        self.verdict = verdict
        self.root = root
        self.reason = reason
    }

    func json(line: Int) throws -> String {
        var object: [String: Any] = ["line": line, "verdict": verdict.name]
        object["rootHash"] = root?.description
        object["reason"] = reason
        return try rootgate.json(object)
    }
}

/// Verdicts of a service. A proof that does not fit into a request gets its verdict here, by the same rules.
func judgeByService(
    _ lines: [ProofLine], _ client: RootgateClient, _ collaboration: CollaborationIdentifier, atLeast: UInt64
) async throws -> [LineVerdict] {
    var verdicts = [LineVerdict?](repeating: nil, count: lines.count)
    var requests: [AccessRequest] = []
    var positions: [Int] = []
    for (position, line) in lines.enumerated() {
        switch line {
        case .malformed(let reason): verdicts[position] = LineVerdict(.malformed, reason: reason)
        case .proof(let proof, _):
            if let verdict = proof.verdictWithoutService {
                verdicts[position] = LineVerdict(verdict)
            } else {
                requests.append(AccessRequest(collaboration: collaboration, proof: proof))
                positions.append(position)
            }
        }
    }
    if !requests.isEmpty {
        let decisions = try await client.verify(requests, wantsRoots: true, atLeast: atLeast)
        for (position, decision) in zip(positions, decisions) {
            verdicts[position] = LineVerdict(
                decision.verdict, root: decision.rootHash, reason: lines[position].reason(for: decision.verdict))
        }
    }
    return verdicts.compactMap { $0 }
}
