import Audit
import Core
import Foundation
import Hashing
import LoadHarness
import Secrets

let auditCommand = Command(
    "audit", operands: "verify FILE...", operandsMax: 10_000, "find lines of an audit that were changed or dropped",
    options: secretFileOptions + [
        Option("contains", "HASH", "the SHA-256 of a line that must be there, as an earlier run has shown it"), .json,
        .quiet,
    ]
) { arguments in
    guard arguments.operands.first == "verify", arguments.operands.count > 1 else {
        throw UsageError("audit takes verify and the names of files")
    }
    var known: Digest?
    if let text = arguments.text("contains") {
        guard let hash = Digest(hexadecimal: text) else {
            throw UsageError("--contains takes a SHA-256 in hexadecimal, not \(text)")
        }
        known = hash
    }
    let paths = Array(arguments.operands.dropFirst())
    let progress = progressMeter(arguments)
    defer { progress.end() }
    let sizes = paths.map { path in
        (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
    }
    var shares = WorkShares(total: Double(sizes.reduce(0, +)))
    var unread = sizes[...]
    let result = try AuditVerification(paths, keys: try auditKeys(arguments), known: known) { path in
        progress.begin("verifying \(path)", share: shares.next(Double(unread.popFirst() ?? 0)))
        return try contents(of: path)
    }
    progress.end()
    if arguments.isOn("json") {
        var object: [String: Any] = [
            "lines": result.lineCount, "findings": result.findings, "notes": result.notes,
        ]
        if let last = result.last { (object["last"], object["hash"]) = (last.number, last.hash.description) }
        printNow(try json(object))
    } else {
        for finding in result.findings { printNow("found: \(finding.escapingControls)") }
        for note in result.notes { printNow("note: \(note.escapingControls)") }
        if let last = result.last {
            printNow("\(result.lineCount) lines; the last one has the number \(last.number) and the hash \(last.hash)")
        }
    }
    return result.findings.isEmpty ? .success : .refused
}

/// The audit keys of the secret that the arguments name, by the names of their generations; none without a secret.
private func auditKeys(_ arguments: Arguments) throws -> [String: MessageAuthenticator] {
    guard arguments.text("data") != nil || arguments.text("secret-file") != nil else { return [:] }
    do {
        let secret = try secretFile(arguments).load()
        var keys: [String: MessageAuthenticator] = [:]
        for generation in secret.generations {
            keys[generation.name] = try generation.authenticator(for: .audits)
        }
        return keys
    } catch let failure as SecretFailure {
        throw UsageError("\(failure)")
    }
}
